"""Benchmarks that you can run from a checkout.

``recollect bench recall|speed|rules`` measures how well and how fast memories are found (`command`); the other modules
are programs of their own: ``python -m benchmarks.writing``, for example. They use the public API and keep their data
in a temporary folder.
"""
