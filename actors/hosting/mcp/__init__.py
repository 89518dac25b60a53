"""The session tools over the Model Context Protocol: `kizuki mcp`, and `server.mcp_server` for hosts that run a server themselves.

Needs the MCP SDK, which comes with `kizuki[mcp]`.
"""
