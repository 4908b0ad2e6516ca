"""Everything that is served over HTTP, in one process: `server` puts the API, MCP and the web console together."""
