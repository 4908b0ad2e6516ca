"""One person on several channels: which user an identity is, joining two of them by a one-time code, and undoing it.

`links` holds the verbs, `joining` merges one memory into another and takes it back, `copies` keeps what was before,
`erasure` sees to it that what is erased is erased from these copies too, `codes` makes the codes, `nouns` says what
there is.
"""
