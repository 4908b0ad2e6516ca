"""The memory as an MCP server, over stdio and streamable HTTP, with the official SDK.

The connection decides who the user is (`authentication`), never an argument that a model could change. `server` offers
tools, resources and prompts; `stdio` and `http` are the transports. Needs the extra ``mcp``.
"""
