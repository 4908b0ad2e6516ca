"""The web console: pages where people see, search and change their memory, and operators see metrics.

`console` handles requests and `rendering` fills templates. `views`, `edits` and `settings` are a person's pages,
`operator_views` those of operators. Every page works without scripts, and slow work runs in a thread. Needs the extra
``web``.
"""
