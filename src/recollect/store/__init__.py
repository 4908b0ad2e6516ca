"""Storage of records and the journal: one contract, two databases."""
