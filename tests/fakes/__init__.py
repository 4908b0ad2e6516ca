"""Fakes and generators that only our own tests and benchmarks use."""
