"""Memory as tools for models: four dialects over one core.

A tool is declared once, as a typed function (`tool`). Its JSON Schema, the parsing of its arguments (`parameters`), its
documentation page, its MCP tool and its Python callable are derived from that. All calls go through `suite`; `catalog`
lists the suites; `wire` implements the formats of the providers.
"""
