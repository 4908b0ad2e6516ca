"""Benchmarks a reader can run: how well memories are found (`recall`), and how fast (`speed`).

They use the public API, in a folder of their own that is gone afterwards; only to time and weigh the index alone does
`speed` reach for it.
"""
