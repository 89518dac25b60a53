"""The catalog of OpenCode, which keeps its sessions in a database."""
