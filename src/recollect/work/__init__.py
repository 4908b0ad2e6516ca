"""Durable background work: one contract, embedded in SQLite or on PostgreSQL, a worker, a schedule."""
