"""The memories over HTTP: every verb of `Memory` under ``/v1``, for host applications in any language.

`api` takes requests apart and answers them, `routes` says what there is, `schema` and `openapi` describe it exactly,
`authentication` says who asks. `memories`, `operators`, `toolbox`, `links` and `streams`
do what is asked, `idempotency` sees to it that a request sent twice is done once. `server` runs it all, with MCP and a
worker. Everything that takes time happens in a thread. Needs the extra ``web``; nothing here is imported before it is
used.
"""
