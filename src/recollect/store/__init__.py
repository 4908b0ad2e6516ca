"""Where records and the journal live: one contract, two databases. Knows no policy and no Markdown."""
