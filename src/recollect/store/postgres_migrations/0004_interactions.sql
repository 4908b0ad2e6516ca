-- What the host reports about the person, and how learning from it went. Beside the memory: no sequence numbers.

-- topics and metadata are JSON and not JSONB, so that numbers and escapes come back as they were.
CREATE TABLE memory_interactions (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
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
    PRIMARY KEY (user_id, id)
);

CREATE INDEX memory_interactions_by_time ON memory_interactions (user_id, at, id);
CREATE INDEX memory_interactions_by_session ON memory_interactions (user_id, session, at) WHERE session IS NOT NULL;

-- The seed's table with what it lacks: ids of ours, which are text, and several kinds of run for a day. created_at
-- is when the run began. Rows that an application wrote keep their values.
ALTER TABLE memory_extraction_runs
    ALTER COLUMN id DROP DEFAULT,
    ALTER COLUMN id TYPE TEXT COLLATE "C" USING id::text,
    ALTER COLUMN id SET DEFAULT gen_random_uuid()::text,
    ALTER COLUMN interactions_processed TYPE BIGINT,
    ALTER COLUMN memories_written TYPE BIGINT,
    ALTER COLUMN memories_updated TYPE BIGINT,
    ALTER COLUMN tokens_used TYPE BIGINT,
    ALTER COLUMN duration_ms TYPE BIGINT,
    ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT 'batch',
    ADD COLUMN tier TEXT,
    ADD COLUMN details JSON NOT NULL DEFAULT '{}',
    DROP CONSTRAINT memory_extraction_runs_user_id_run_date_key,
    ADD UNIQUE (user_id, run_date, kind);
