-- The vectors of users too large to load as their signs, a bit for each dimension, which any PostgreSQL compares.
-- Before, this table was made when it was first needed and held vectors of the extension pgvector. All of it is derived
-- from memory_vectors and made again. The extension stays where it is: others may use it.

DO $$ BEGIN EXECUTE format('DROP TABLE IF EXISTS %I.memory_meanings', current_schema()); END $$;

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
