-- What is needed to read everything once, however late it comes: when the host reported it, and messages by time.

-- Of what is there, nobody knows better than that it was reported when it happened.
ALTER TABLE interactions ADD COLUMN reported_at TEXT NOT NULL DEFAULT '';
UPDATE interactions SET reported_at = at;

CREATE INDEX interactions_by_report ON interactions (reported_at);
CREATE INDEX records_by_time ON records (kind, status, valid_from) WHERE latest = 1;
