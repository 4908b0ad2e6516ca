"""One person on several channels: which user an identity is, linking two by a one-time code, and undoing it.

`links` holds the verbs, `merge` merges one memory into another and reverts it, `copies` keeps the state before,
`erasure` also erases from these copies, `codes` makes the codes, `identities` defines the nouns.
"""
