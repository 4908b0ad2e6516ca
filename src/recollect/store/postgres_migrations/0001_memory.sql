-- The tables of the seeds, with their names and columns, and what Recollect needs beside them. Every key begins
-- with the user, so that the tables can be sharded by user. Texts that are compared or ordered use the collation
-- "C", the order of code points, whatever the locale of the database.

CREATE TABLE recollect_migrations (
    version INTEGER PRIMARY KEY,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The seed's table. An application's own table of this name is used and extended; its id must be a UUID.
CREATE TABLE IF NOT EXISTS users (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at TIMESTAMPTZ DEFAULT now()
);
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_enabled BOOLEAN DEFAULT true;
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_last_extracted_at TIMESTAMPTZ;

-- The users who have a memory. account: their row in users, which is the id itself if it is a UUID, and otherwise a UUID
-- made from it (version 5). made_account: the row was made by Recollect and goes with the memory.
CREATE TABLE memory_users (
    id TEXT COLLATE "C" PRIMARY KEY,
    account UUID NOT NULL UNIQUE REFERENCES users (id),
    made_account BOOLEAN NOT NULL,
    memory_created_at TIMESTAMPTZ NOT NULL,
    memory_seq BIGINT NOT NULL,
    memory_mode TEXT NOT NULL,
    memory_secret BYTEA NOT NULL
);

-- All versions of all records; latest marks the newest version of each id. type is the category of the seed, fact_type
-- the finer type. extra is JSON and not JSONB, so that numbers and escapes come back as they were.
CREATE TABLE memory_records (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
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

CREATE INDEX memory_by_text ON memory_records USING GIN (to_tsvector('english', content)) WHERE active;
CREATE UNIQUE INDEX memory_latest ON memory_records (user_id, id) WHERE latest;
CREATE INDEX memory_by_seq ON memory_records (user_id, seq) WHERE latest;
CREATE INDEX memory_by_kind ON memory_records (user_id, kind, status, created_at) WHERE latest;
CREATE INDEX memory_by_key ON memory_records (user_id, key) WHERE latest AND key IS NOT NULL;
CREATE INDEX memory_by_tier ON memory_records (user_id, tier) WHERE latest AND tier IS NOT NULL AND status = 'active';
CREATE INDEX memory_by_time ON memory_records (user_id, kind, status, valid_from) WHERE latest;
CREATE INDEX memory_by_creation ON memory_records (user_id, created_at, id) WHERE latest;
CREATE INDEX memory_by_session ON memory_records (user_id, session, created_at, id) WHERE latest AND session IS NOT NULL;
-- It also tells what was said right before and after.
CREATE INDEX memory_by_conversation ON memory_records (user_id, session, valid_from, id)
    WHERE latest AND session IS NOT NULL;
CREATE INDEX memory_replaced ON memory_records (user_id, kind, created_at) WHERE status = 'superseded';
CREATE INDEX memory_by_expiry ON memory_records (user_id, expires_at) WHERE latest AND expires_at IS NOT NULL;

-- Runs of extraction, several kinds of them for a day. created_at is when the run began.
CREATE TABLE memory_runs (
    id TEXT COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    run_date DATE NOT NULL,
    interactions_processed BIGINT DEFAULT 0,
    memories_written BIGINT DEFAULT 0,
    memories_updated BIGINT DEFAULT 0,
    tokens_used BIGINT DEFAULT 0,
    duration_ms BIGINT,
    status TEXT DEFAULT 'pending',
    error_message TEXT,
    created_at TIMESTAMPTZ DEFAULT now(),
    kind TEXT COLLATE "C" NOT NULL DEFAULT 'batch',
    tier TEXT,
    details JSON NOT NULL DEFAULT '{}',
    PRIMARY KEY (user_id, id),
    UNIQUE (user_id, run_date, kind)
);

-- before and after are JSON in plain text: nothing asks the database to look inside.
CREATE TABLE memory_journal (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
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
CREATE INDEX memory_journal_by_call ON memory_journal (user_id, call) WHERE call IS NOT NULL;
CREATE INDEX memory_journal_by_undoes ON memory_journal (user_id, undoes) WHERE undoes IS NOT NULL;

-- versions: those that somebody may have open in an editor, as sequence numbers in JSON.
CREATE TABLE memory_files (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    name TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT NOT NULL,
    seq BIGINT NOT NULL,
    previous_fingerprint TEXT NOT NULL,
    previous_seq BIGINT NOT NULL,
    boot TEXT NOT NULL,
    versions TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (user_id, name)
);

CREATE TABLE memory_tombstones (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    hash TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, hash, record_id)
);

CREATE TABLE memory_recalls (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    record_id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, record_id)
);

-- Vectors of records: derived data, never exported, computed again where they are missing.

-- last: the highest number given to a vector of this embedder. It stays when the vectors go, so that no number
-- is ever given twice.
CREATE TABLE memory_embedders (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    name TEXT COLLATE "C" NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);

-- One row for each record and embedder; data holds the passages of that version, float16, which no compression
-- makes smaller.
CREATE TABLE memory_vectors (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    embedder TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    number BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (user_id, record_id, embedder)
);

ALTER TABLE memory_vectors ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX memory_vectors_by_number ON memory_vectors (user_id, embedder, number);

-- The log of tool calls, the ledger of what was spent, and what the person consented to. Beside the memory: none
-- of it takes a sequence number.

CREATE TABLE memory_calls (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    suite TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT NOT NULL,
    latency_ms DOUBLE PRECISION NOT NULL,
    tokens_in BIGINT NOT NULL,
    tokens_out BIGINT NOT NULL,
    session TEXT COLLATE "C",
    agent TEXT,
    PRIMARY KEY (user_id, id)
);

CREATE INDEX memory_calls_by_time ON memory_calls (user_id, at, id);
CREATE INDEX memory_calls_by_session ON memory_calls (user_id, session, at) WHERE session IS NOT NULL;

CREATE TABLE memory_spending (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    day DATE NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    tokens_in BIGINT NOT NULL,
    tokens_out BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (user_id, day, operation)
);

-- Only what holds: what was withdrawn leaves the table, and stays in the journal.
CREATE TABLE memory_consents (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    name TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, name)
);

-- What the host reports about the person. Beside the memory: no sequence numbers.

-- reported_at: when the host reported it, however late that was. topics and metadata are JSON and not JSONB, so that numbers and escapes come back as they were.
CREATE TABLE memory_interactions (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    item TEXT,
    title TEXT,
    value TEXT,
    topics JSON NOT NULL,
    text TEXT,
    session TEXT COLLATE "C",
    metadata JSON NOT NULL,
    reported_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, id)
);

CREATE INDEX memory_interactions_by_time ON memory_interactions (user_id, at, id);
CREATE INDEX memory_interactions_by_report ON memory_interactions (user_id, reported_at);
CREATE INDEX memory_interactions_by_session ON memory_interactions (user_id, session, at) WHERE session IS NOT NULL;

-- Words of users too large to be loaded by each process: derived data, kept only for them, filled in steps and caught
-- up by sequence number. Words are hashed with the user's own secret, so that one index serves everybody and no word
-- of one user meets those of another.

-- life: for which life of the user, and by which rules words were made. seq: everything up to here is in it.
-- complete: the first filling has come to its end.
CREATE TABLE memory_large (
    user_id TEXT COLLATE "C" PRIMARY KEY REFERENCES memory_users (id),
    life TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL DEFAULT 0,
    complete BOOLEAN NOT NULL DEFAULT false,
    records BIGINT NOT NULL DEFAULT 0,
    passages BIGINT NOT NULL DEFAULT 0,
    words BIGINT NOT NULL DEFAULT 0
);

-- A row for each passage of each record, of whatever status. terms: its words, those it has several times once more
-- with a 2 behind, and with the first passage the marks by which duplicates are found. counts: the words again, with
-- how often each is there, so that no text is read to rank it. kind to expires_at: as in memory, so that most searches
-- need not look there.
CREATE TABLE memory_words (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    record_id TEXT COLLATE "C" NOT NULL,
    passage INTEGER NOT NULL,
    begins INTEGER NOT NULL,
    length INTEGER NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    speaker TEXT COLLATE "C",
    valid_from TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    asks BOOLEAN NOT NULL,
    tells_when BOOLEAN NOT NULL,
    event_from TIMESTAMPTZ,
    event_until TIMESTAMPTZ,
    terms TSVECTOR NOT NULL,
    counts BYTEA NOT NULL,
    PRIMARY KEY (user_id, record_id, passage)
);

-- What waits to be sorted in is read by every search, so it is kept short.
CREATE INDEX memory_words_by_term ON memory_words USING GIN (terms) WITH (gin_pending_list_limit = 512);
CREATE INDEX memory_words_by_speaker ON memory_words (user_id, speaker) WHERE speaker IS NOT NULL;
CREATE INDEX memory_words_by_time ON memory_words (user_id, kind, valid_from) WHERE passage = 0;
CREATE INDEX memory_words_by_event ON memory_words (user_id, event_from) WHERE event_from IS NOT NULL;

-- In how many passages that count each word is.
CREATE TABLE memory_terms (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES memory_users (id),
    term TEXT COLLATE "C" NOT NULL,
    passages BIGINT NOT NULL,
    PRIMARY KEY (user_id, term)
) WITH (fillfactor = 70);

CREATE INDEX memory_terms_unused ON memory_terms (user_id) WHERE passages <= 0;

-- The vectors of users too large to load as their signs, a bit for each dimension, which any PostgreSQL compares. All of
-- it is derived from memory_vectors.
CREATE TABLE memory_meanings (
    user_id TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    embedder TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    signs BIT VARYING NOT NULL,
    PRIMARY KEY (user_id, record_id, embedder),
    FOREIGN KEY (user_id, record_id, embedder) REFERENCES memory_vectors (user_id, record_id, embedder) ON DELETE CASCADE
);

CREATE INDEX memory_meanings_by_number ON memory_meanings (user_id, embedder, number);

-- The tables of the seed, as written there, for applications and for SQL: a mirror of facts and daily entries, and of the
-- daily runs, kept by triggers in the same transaction. An application's own tables of these names are used. record_id
-- is the id in memory_records; rows without one are the application's own, which Recollect neither reads nor changes.

CREATE TABLE IF NOT EXISTS memory (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id UUID NOT NULL REFERENCES users (id),
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    source TEXT,
    source_post_id UUID,
    confidence DECIMAL(3,2) DEFAULT 1.0,
    active BOOLEAN DEFAULT true,
    created_at TIMESTAMPTZ DEFAULT now(),
    updated_at TIMESTAMPTZ DEFAULT now(),
    expires_at TIMESTAMPTZ
);
ALTER TABLE memory ADD COLUMN IF NOT EXISTS record_id TEXT COLLATE "C";

CREATE INDEX IF NOT EXISTS idx_memory_user_active ON memory (user_id) WHERE active = true;
CREATE INDEX IF NOT EXISTS idx_memory_type ON memory (user_id, type);
CREATE INDEX IF NOT EXISTS idx_memory_fts ON memory USING GIN (to_tsvector('english', content));
CREATE INDEX IF NOT EXISTS idx_memory_created ON memory (user_id, created_at DESC);

CREATE TABLE IF NOT EXISTS memory_extraction_runs (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id UUID NOT NULL REFERENCES users (id),
    run_date DATE NOT NULL,
    interactions_processed INTEGER DEFAULT 0,
    memories_written INTEGER DEFAULT 0,
    memories_updated INTEGER DEFAULT 0,
    tokens_used INTEGER DEFAULT 0,
    duration_ms INTEGER,
    status TEXT DEFAULT 'pending',
    error_message TEXT,
    created_at TIMESTAMPTZ DEFAULT now(),
    UNIQUE (user_id, run_date)
);

CREATE FUNCTION recollect_row_id(user_id TEXT, record_id TEXT) RETURNS UUID LANGUAGE sql IMMUTABLE
    RETURN md5(user_id || chr(10) || record_id)::uuid;

-- The post that a record is about: the item of the discussion or of the reaction it was learned from, if that is a UUID
-- and, where there is a table posts, one of it.
CREATE FUNCTION recollect_post_of(whose TEXT, origin TEXT, talk TEXT) RETURNS UUID LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    name TEXT := substring(origin FROM '^(?:discussion|reaction|save|read|delivery):(.+)$');
    found TEXT;
    known BOOLEAN;
BEGIN
    SELECT item INTO found FROM memory_interactions AS one
    WHERE one.user_id = whose AND (one.id = name OR one.session = coalesce(name, talk))
        AND item ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    ORDER BY one.id = name DESC, one.kind = 'discussion' DESC, at DESC LIMIT 1;
    IF found IS NOT NULL AND EXISTS (
        SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('posts') AND attname = 'id' AND atttypid = 'uuid'::regtype
    ) THEN
        EXECUTE 'SELECT EXISTS (SELECT 1 FROM posts WHERE id = $1)' INTO known USING found::uuid;
        IF NOT known THEN
            RETURN NULL;
        END IF;
    END IF;
    RETURN found::uuid;
END $$;

CREATE FUNCTION recollect_mirror_record() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.latest THEN
        DELETE FROM memory WHERE id = recollect_row_id(OLD.user_id, OLD.id);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.latest AND NEW.type IS NOT NULL THEN
        INSERT INTO memory (id, user_id, type, key, content, source, source_post_id, confidence, active, created_at,
            updated_at, expires_at, record_id)
        SELECT recollect_row_id(NEW.user_id, NEW.id), account,
            CASE NEW.type WHEN 'key_fact' THEN 'personal_context' ELSE NEW.type END,
            CASE WHEN NEW.kind = 'daily' AND NEW.tier IS NULL THEN NEW.id ELSE coalesce(NEW.key, NEW.id) END,
            NEW.content, NEW.source,
            recollect_post_of(NEW.user_id, NEW.source, NEW.session), round(NEW.confidence::numeric, 2), NEW.status = 'active',
            NEW.created_at, NEW.updated_at, NEW.expires_at, NEW.id
        FROM memory_users WHERE memory_users.id = NEW.user_id;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER memory_mirrored AFTER INSERT OR UPDATE ON memory_records FOR EACH ROW
    WHEN (NEW.kind IN ('fact', 'daily')) EXECUTE FUNCTION recollect_mirror_record();
CREATE TRIGGER memory_unmirrored AFTER DELETE ON memory_records FOR EACH ROW
    WHEN (OLD.latest AND OLD.kind IN ('fact', 'daily')) EXECUTE FUNCTION recollect_mirror_record();

-- "If they diverge, MEMORY.md wins": what an application writes into a mirrored row is not kept, except source_post_id.
CREATE FUNCTION recollect_keep_mirror() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.record_id IS NOT NULL AND pg_trigger_depth() = 1 THEN
        OLD.source_post_id := NEW.source_post_id;
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER memory_kept BEFORE UPDATE ON memory FOR EACH ROW EXECUTE FUNCTION recollect_keep_mirror();

CREATE FUNCTION recollect_mirror_run() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.kind = 'batch' THEN
        DELETE FROM memory_extraction_runs WHERE id = recollect_row_id(OLD.user_id, OLD.id);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.kind = 'batch' THEN
        INSERT INTO memory_extraction_runs (id, user_id, run_date, interactions_processed, memories_written,
            memories_updated, tokens_used, duration_ms, status, error_message, created_at)
        SELECT recollect_row_id(NEW.user_id, NEW.id), account, NEW.run_date, least(NEW.interactions_processed, 2147483647),
            least(NEW.memories_written, 2147483647), least(NEW.memories_updated, 2147483647),
            least(NEW.tokens_used, 2147483647), least(NEW.duration_ms, 2147483647), NEW.status, NEW.error_message,
            NEW.created_at
        FROM memory_users WHERE memory_users.id = NEW.user_id
        ON CONFLICT (user_id, run_date) DO UPDATE SET interactions_processed = excluded.interactions_processed,
            memories_written = excluded.memories_written, memories_updated = excluded.memories_updated,
            tokens_used = excluded.tokens_used, duration_ms = excluded.duration_ms, status = excluded.status,
            error_message = excluded.error_message, created_at = excluded.created_at;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER memory_run_mirrored AFTER INSERT OR UPDATE OR DELETE ON memory_runs FOR EACH ROW
    EXECUTE FUNCTION recollect_mirror_run();

-- Where the application has the seed's posts, an entry refers to them.
DO $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('posts') AND attname = 'id' AND atttypid = 'uuid'::regtype
    ) AND NOT EXISTS (
        SELECT 1 FROM pg_constraint WHERE conrelid = 'memory'::regclass AND confrelid = to_regclass('posts')
    ) THEN
        ALTER TABLE memory ADD FOREIGN KEY (source_post_id) REFERENCES posts (id) ON DELETE SET NULL;
    END IF;
END $$;
