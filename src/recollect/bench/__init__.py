"""Benchmarks a reader can run: how well memories are found (`recall`), and how fast (`speed`).

They use the public API only, in a folder of their own that is gone afterwards.
"""
