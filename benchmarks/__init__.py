"""Benchmarks that you can run from a checkout.

``recollect bench recall|speed|rules|learning`` measures how well memories are found and learned, and how fast
(`command`); the other modules are programs of their own: ``python -m benchmarks.writing``, for example. They use the
public API and keep their data in a temporary folder.
"""
