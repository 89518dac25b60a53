"""Catalogs of other machines, over HTTP: the gateway's side. The node's is in `hosting.node`."""
