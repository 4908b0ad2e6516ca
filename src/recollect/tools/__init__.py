"""Memory as tools for models: four dialects over one core.

A tool is declared once, as a typed function (`tool`); its JSON Schema, the reading of its arguments (`parameters`), its
page in the documentation, its MCP tool and its Python callable come from that. `suite` is the one way in for calls;
`catalog` lists the suites; `wire` speaks the formats of the providers.
"""
