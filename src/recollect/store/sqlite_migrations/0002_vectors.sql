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
