-- Records in the order they are listed, so that a page costs what it shows. Every index ends with the id and the
-- version, as the table has no row numbers.

DROP INDEX IF EXISTS records_by_key;
DROP INDEX IF EXISTS records_by_session;
CREATE INDEX records_by_key ON records (key, kind, status, created_at) WHERE latest = 1 AND key IS NOT NULL;
CREATE INDEX records_by_session ON records (session, kind, status, created_at)
    WHERE latest = 1 AND session IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_by_creation ON records (created_at) WHERE latest = 1;
CREATE INDEX IF NOT EXISTS records_by_conversation ON records (session, kind, status, valid_from)
    WHERE latest = 1 AND session IS NOT NULL;
