"""The web console: pages on which a person sees, searches, edits, pins, forgets and undoes, and an operator watches.

`console` puts it together and answers requests, `pages` fills templates. `reading`,
`changing` and `settings` are a person's pages, `operating` the operators'. `charts` and
`graph` draw them, `differences` shows what a change would do, `live` tells open pages that something changed. Every
page works without scripts; everything that takes time happens in a thread. Needs the extra ``web``; nothing here is
imported before it is used.
"""
