"""A deterministic world on virtual time: the real actors, gateways and SQLite code, run as a pure function of a seed. See `world`."""
