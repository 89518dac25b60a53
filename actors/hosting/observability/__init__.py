"""Traces and metrics of a gateway, in modules of their own that need `pip install 'kizuki[observability]'`.

No span and no metric carries a session key, or anything else of which there can be any number.
"""
