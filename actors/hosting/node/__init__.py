"""`kizuki serve-node`: this machine's catalogs for gateways elsewhere."""
