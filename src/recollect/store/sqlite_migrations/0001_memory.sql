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

CREATE INDEX records_by_kind ON records (kind, status, created_at) WHERE latest = 1;
CREATE INDEX records_by_key ON records (key) WHERE latest = 1 AND key IS NOT NULL;
CREATE INDEX records_by_session ON records (session) WHERE latest = 1 AND session IS NOT NULL;
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
CREATE INDEX journal_by_undoes ON journal (undoes) WHERE undoes IS NOT NULL;

CREATE TABLE files (
    name TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    seq INTEGER NOT NULL,
    previous_fingerprint TEXT NOT NULL,
    previous_seq INTEGER NOT NULL,
    boot TEXT NOT NULL
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
