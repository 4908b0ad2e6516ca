"""The memories over HTTP: every verb of `Memory` under ``/v1``, for host applications in any language.

`api` parses and answers requests, the modules ending in ``_routes`` and `streams` handle them, `schema` and `openapi`
describe them, `authentication` identifies callers, and `idempotency` makes retries safe. Slow work runs in threads.
Needs the extra ``web``.
"""
