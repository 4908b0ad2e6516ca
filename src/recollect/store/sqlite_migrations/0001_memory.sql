-- One user's memory. Times are UTC text of fixed width, so that text order is time order.

CREATE TABLE state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    user_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    seq INTEGER NOT NULL,
    mode TEXT NOT NULL,
    secret BLOB NOT NULL
) STRICT;

-- All versions of all records; latest marks the newest version of each id.
CREATE TABLE records (
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    latest INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    key TEXT,
    category TEXT,
    type TEXT,
    tier TEXT,
    session TEXT,
    source TEXT NOT NULL,
    content TEXT NOT NULL,
    confidence REAL NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    valid_from TEXT NOT NULL,
    valid_until TEXT,
    expires_at TEXT,
    extra TEXT NOT NULL,
    PRIMARY KEY (id, version)
) STRICT, WITHOUT ROWID;

-- In the order in which records are listed, so that a page costs what it shows. Every index ends with the id and the
-- version, as the table has no row numbers.
CREATE INDEX records_by_kind ON records (kind, status, created_at) WHERE latest = 1;
CREATE INDEX records_by_key ON records (key, kind, status, created_at) WHERE latest = 1 AND key IS NOT NULL;
CREATE INDEX records_by_session ON records (session, kind, status, created_at)
    WHERE latest = 1 AND session IS NOT NULL;
CREATE INDEX records_by_conversation ON records (session, kind, status, valid_from)
    WHERE latest = 1 AND session IS NOT NULL;
CREATE INDEX records_by_creation ON records (created_at) WHERE latest = 1;
CREATE INDEX records_replaced ON records (kind, created_at) WHERE status = 'superseded';
CREATE INDEX records_by_time ON records (kind, status, valid_from) WHERE latest = 1;
CREATE INDEX records_by_expiry ON records (expires_at) WHERE latest = 1 AND expires_at IS NOT NULL;

CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    op TEXT NOT NULL,
    record_id TEXT NOT NULL,
    before TEXT,
    after TEXT,
    reason TEXT,
    source TEXT,
    run TEXT,
    call TEXT,
    undoes INTEGER,
    erased INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX journal_by_record ON journal (record_id);
CREATE INDEX journal_by_run ON journal (run) WHERE run IS NOT NULL;
CREATE INDEX journal_by_call ON journal (call) WHERE call IS NOT NULL;
CREATE INDEX journal_by_undoes ON journal (undoes) WHERE undoes IS NOT NULL;

-- versions: those that somebody may have open in an editor, as sequence numbers in JSON.
CREATE TABLE files (
    name TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    seq INTEGER NOT NULL,
    previous_fingerprint TEXT NOT NULL,
    previous_seq INTEGER NOT NULL,
    boot TEXT NOT NULL,
    versions TEXT NOT NULL DEFAULT '[]'
) STRICT;

CREATE TABLE tombstones (
    hash TEXT NOT NULL,
    record_id TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (hash, record_id)
) STRICT;

CREATE TABLE recalls (
    record_id TEXT PRIMARY KEY,
    at TEXT NOT NULL
) STRICT;

-- Vectors of records: derived data, never exported, computed again where they are missing.

-- last: the highest number given to a vector of this embedder. It stays when the vectors go, so that no number
-- is ever given twice.
CREATE TABLE embedders (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    last INTEGER NOT NULL
) STRICT;

-- One row for each record and embedder; data holds the passages of that version, float16. Not WITHOUT ROWID:
-- rows are large, and reading goes by number.
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY,
    embedder INTEGER NOT NULL,
    record_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (record_id, embedder)
) STRICT;

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

-- What the host reports about the person, and how learning from it went. Beside the memory: no sequence numbers.

-- topics and metadata are JSON. reported_at: when the host reported it, however late that was.
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
    metadata TEXT NOT NULL,
    reported_at TEXT NOT NULL
) STRICT;

CREATE INDEX interactions_by_time ON interactions (at, id);
CREATE INDEX interactions_by_report ON interactions (reported_at);
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
