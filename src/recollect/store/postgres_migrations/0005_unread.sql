-- What is needed to read everything once, however late it comes: when the host reported it, and messages by time.

-- Of what is there, nobody knows better than that it was reported when it happened.
ALTER TABLE memory_interactions ADD COLUMN reported_at TIMESTAMPTZ;
UPDATE memory_interactions SET reported_at = at;
ALTER TABLE memory_interactions ALTER COLUMN reported_at SET NOT NULL;

CREATE INDEX memory_interactions_by_report ON memory_interactions (user_id, reported_at);
CREATE INDEX memory_by_time ON memory (user_id, kind, status, valid_from) WHERE latest;
