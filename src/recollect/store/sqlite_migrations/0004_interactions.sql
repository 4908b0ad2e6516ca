-- What the host reports about the person, and how learning from it went. Beside the memory: no sequence numbers.

-- topics and metadata are JSON.
CREATE TABLE interactions (
    id TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    item TEXT,
    title TEXT,
    value TEXT,
    topics TEXT NOT NULL,
    text TEXT,
    session TEXT,
    metadata TEXT NOT NULL
) STRICT;

CREATE INDEX interactions_by_time ON interactions (at, id);
CREATE INDEX interactions_by_session ON interactions (session, at) WHERE session IS NOT NULL;

-- The seed's table, one row for each day and kind. day is YYYY-MM-DD, details is JSON.
CREATE TABLE extraction_runs (
    id TEXT NOT NULL UNIQUE,
    run_date TEXT NOT NULL,
    interactions_processed INTEGER NOT NULL,
    memories_written INTEGER NOT NULL,
    memories_updated INTEGER NOT NULL,
    tokens_used INTEGER NOT NULL,
    duration_ms INTEGER,
    status TEXT NOT NULL,
    error_message TEXT,
    created_at TEXT NOT NULL,
    kind TEXT NOT NULL,
    tier TEXT,
    details TEXT NOT NULL,
    PRIMARY KEY (run_date, kind)
) STRICT, WITHOUT ROWID;
