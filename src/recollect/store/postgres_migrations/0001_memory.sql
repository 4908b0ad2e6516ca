-- The tables of the seeds, with their names and columns, and what Recollect needs beside them. Every key begins
-- with the user, so that the tables can be sharded by user. Texts that are compared or ordered use the collation
-- "C", the order of code points, whatever the locale of the database.

CREATE TABLE recollect_migrations (
    version INTEGER PRIMARY KEY,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- An application's own table of this name is extended, as in the seed; its id must be text. The memory_ columns
-- are empty for a user without a memory. only_memory: the row was made by Recollect and goes with the memory.
CREATE TABLE IF NOT EXISTS users (
    id TEXT COLLATE "C" PRIMARY KEY,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_enabled BOOLEAN DEFAULT true;
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_last_extracted_at TIMESTAMPTZ;
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_created_at TIMESTAMPTZ;
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_seq BIGINT;
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_mode TEXT;
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_secret BYTEA;
ALTER TABLE users ADD COLUMN IF NOT EXISTS only_memory BOOLEAN NOT NULL DEFAULT false;

-- All versions of all records; latest marks the newest version of each id. Unlike in the seed, ids are text, a
-- fact may have no key, and confidence is exact: DECIMAL(3,2) would round it. type is the category of the seed,
-- fact_type the finer type. source_post_id is the application's to fill. extra is JSON and not JSONB, so that
-- numbers and escapes come back as they were.
CREATE TABLE memory (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    latest BOOLEAN NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C",
    fact_type TEXT COLLATE "C",
    key TEXT COLLATE "C",
    content TEXT NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    source_post_id TEXT,
    confidence DOUBLE PRECISION NOT NULL DEFAULT 1.0,
    active BOOLEAN NOT NULL GENERATED ALWAYS AS (latest AND status = 'active') STORED,
    tier TEXT COLLATE "C",
    session TEXT COLLATE "C",
    tags TEXT[] COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at TIMESTAMPTZ,
    valid_from TIMESTAMPTZ NOT NULL,
    valid_until TIMESTAMPTZ,
    extra JSON NOT NULL,
    PRIMARY KEY (user_id, id, version)
);

CREATE INDEX idx_memory_user_active ON memory (user_id) WHERE active = true;
CREATE INDEX idx_memory_type ON memory (user_id, type);
CREATE INDEX idx_memory_fts ON memory USING GIN (to_tsvector('english', content));
CREATE INDEX idx_memory_created ON memory (user_id, created_at DESC);

CREATE UNIQUE INDEX memory_latest ON memory (user_id, id) WHERE latest;
CREATE INDEX memory_by_seq ON memory (user_id, seq) WHERE latest;
CREATE INDEX memory_by_kind ON memory (user_id, kind, status, created_at) WHERE latest;
CREATE INDEX memory_by_key ON memory (user_id, key) WHERE latest AND key IS NOT NULL;
CREATE INDEX memory_by_tier ON memory (user_id, tier) WHERE latest AND tier IS NOT NULL AND status = 'active';
CREATE INDEX memory_by_session ON memory (user_id, session) WHERE latest AND session IS NOT NULL;
CREATE INDEX memory_by_expiry ON memory (user_id, expires_at) WHERE latest AND expires_at IS NOT NULL;

CREATE TABLE memory_extraction_runs (
    id UUID NOT NULL DEFAULT gen_random_uuid(),
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    run_date DATE NOT NULL,
    interactions_processed INTEGER DEFAULT 0,
    memories_written INTEGER DEFAULT 0,
    memories_updated INTEGER DEFAULT 0,
    tokens_used INTEGER DEFAULT 0,
    duration_ms INTEGER,
    status TEXT DEFAULT 'pending',
    error_message TEXT,
    created_at TIMESTAMPTZ DEFAULT now(),
    PRIMARY KEY (user_id, id),
    UNIQUE (user_id, run_date)
);

-- before and after are JSON in plain text: nothing asks the database to look inside.
CREATE TABLE memory_journal (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    seq BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    actor TEXT NOT NULL,
    op TEXT NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    before TEXT,
    after TEXT,
    reason TEXT,
    source TEXT,
    run TEXT COLLATE "C",
    call TEXT,
    undoes BIGINT,
    erased BOOLEAN NOT NULL DEFAULT false,
    PRIMARY KEY (user_id, seq)
);

CREATE INDEX memory_journal_by_record ON memory_journal (user_id, record_id);
CREATE INDEX memory_journal_by_run ON memory_journal (user_id, run) WHERE run IS NOT NULL;
CREATE INDEX memory_journal_by_undoes ON memory_journal (user_id, undoes) WHERE undoes IS NOT NULL;

CREATE TABLE memory_files (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    name TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT NOT NULL,
    seq BIGINT NOT NULL,
    previous_fingerprint TEXT NOT NULL,
    previous_seq BIGINT NOT NULL,
    boot TEXT NOT NULL,
    PRIMARY KEY (user_id, name)
);

CREATE TABLE memory_tombstones (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    hash TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, hash, record_id)
);

CREATE TABLE memory_recalls (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    record_id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, record_id)
);
