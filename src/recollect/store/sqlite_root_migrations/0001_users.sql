-- The root database: what is not a person's memory.

CREATE TABLE users (
    user_id TEXT PRIMARY KEY,
    folder TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL
) STRICT;
