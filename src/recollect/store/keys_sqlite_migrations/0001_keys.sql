-- Who may use the HTTP API, and what was answered to requests that may be repeated.
-- Moments are text that sorts as time does.

CREATE TABLE memory_keys (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    hash TEXT NOT NULL,
    made_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;

CREATE TABLE memory_key_secret (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    secret TEXT NOT NULL
) STRICT;

CREATE TABLE memory_http_answers (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    request TEXT NOT NULL,
    status INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    made_at TEXT NOT NULL
) STRICT;

CREATE INDEX memory_http_answers_user ON memory_http_answers (user_id);

CREATE INDEX memory_http_answers_made ON memory_http_answers (made_at);
