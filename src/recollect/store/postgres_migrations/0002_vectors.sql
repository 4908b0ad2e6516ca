-- Vectors of records: derived data, never exported, computed again where they are missing.

-- last: the highest number given to a vector of this embedder. It stays when the vectors go, so that no number
-- is ever given twice.
CREATE TABLE memory_embedders (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    name TEXT COLLATE "C" NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);

-- One row for each record and embedder; data holds the passages of that version, float16, which no compression
-- makes smaller.
CREATE TABLE memory_vectors (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    embedder TEXT COLLATE "C" NOT NULL,
    record_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    number BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (user_id, record_id, embedder)
);

ALTER TABLE memory_vectors ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX memory_vectors_by_number ON memory_vectors (user_id, embedder, number);
