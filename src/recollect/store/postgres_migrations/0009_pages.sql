-- Records in the order they are listed, so that a page costs what it shows.

CREATE INDEX IF NOT EXISTS memory_by_session ON memory (user_id, session, created_at, id)
    WHERE latest AND session IS NOT NULL;
CREATE INDEX IF NOT EXISTS memory_by_creation ON memory (user_id, created_at, id) WHERE latest;
