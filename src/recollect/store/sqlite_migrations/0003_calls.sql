-- The log of tool calls, the ledger of what was spent, and what the person consented to. Beside the memory: none
-- of it takes a sequence number.

CREATE TABLE calls (
    id TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    tool TEXT NOT NULL,
    suite TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT NOT NULL,
    latency_ms REAL NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    session TEXT,
    agent TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX calls_by_time ON calls (at, id);
CREATE INDEX calls_by_session ON calls (session, at) WHERE session IS NOT NULL;

-- day is YYYY-MM-DD.
CREATE TABLE spending (
    day TEXT NOT NULL,
    operation TEXT NOT NULL,
    calls INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (day, operation)
) STRICT, WITHOUT ROWID;

-- Only what holds: what was withdrawn leaves the table, and stays in the journal.
CREATE TABLE consents (
    name TEXT PRIMARY KEY,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX journal_by_call ON journal (call) WHERE call IS NOT NULL;
