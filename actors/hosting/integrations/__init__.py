"""Adapters for agent SDKs, each in a module of its own that imports its SDK: import the one you use, and install its extra.

All have one shape: what is plugged into the SDK is made from a gateway and an explicit session key, never from ambient context, which
nested runs inherit. None raises into its host: what fails or takes too long is logged, and the run goes on without it.
"""
