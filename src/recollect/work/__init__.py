"""Durable background work: one contract, queues on SQLite and PostgreSQL, a worker, a schedule."""
