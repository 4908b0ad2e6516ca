"""The memory as an MCP server, over stdio and streamable HTTP, with the official SDK.

Who the user is, is decided by the connection (`callers`), never by an argument that a model could change. `server`
offers the tools of the suites, `resources` the files, `prompts` a few prompts, `changes` tells subscribers what
changed; `stdio` and `http` carry it. Needs the extra ``mcp``; nothing here is imported before it is used.
"""
