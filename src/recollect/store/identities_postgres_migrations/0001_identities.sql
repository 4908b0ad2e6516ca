-- Who is who on which channel. Moments are text that sorts as time does.

CREATE TABLE memory_identities (
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    PRIMARY KEY (channel, name)
);

CREATE INDEX memory_identities_user ON memory_identities (user_id);

CREATE TABLE memory_links (
    id TEXT PRIMARY KEY,
    code TEXT NOT NULL,
    state TEXT NOT NULL,
    made_at TEXT NOT NULL,
    until TEXT NOT NULL,
    shown_channel TEXT NOT NULL,
    shown_name TEXT NOT NULL,
    shown_user TEXT NOT NULL,
    shown_ok INTEGER NOT NULL DEFAULT 0,
    entered_channel TEXT,
    entered_name TEXT,
    entered_user TEXT,
    entered_ok INTEGER NOT NULL DEFAULT 0,
    survivor TEXT,
    joined TEXT,
    merged INTEGER NOT NULL DEFAULT 0,
    undoable INTEGER NOT NULL DEFAULT 1,
    secret TEXT NOT NULL DEFAULT '',
    details TEXT NOT NULL DEFAULT '{}',
    copy BYTEA
);

CREATE INDEX memory_links_code ON memory_links (code);

CREATE INDEX memory_links_shown ON memory_links (shown_channel, shown_name);

CREATE INDEX memory_links_entered ON memory_links (entered_channel, entered_name);

CREATE INDEX memory_links_survivor ON memory_links (survivor);

CREATE UNIQUE INDEX memory_links_joined ON memory_links (joined) WHERE state IN ('joining', 'joined');

CREATE TABLE memory_link_failures (
    who TEXT NOT NULL,
    at TEXT NOT NULL
);

CREATE INDEX memory_link_failures_at ON memory_link_failures (at);

CREATE INDEX memory_link_failures_who ON memory_link_failures (who, at);

CREATE TABLE memory_link_salt (
    salt TEXT NOT NULL
);

-- Which users were erased, and when: a MEMORY.md of before is not read again. who is a hash.

CREATE TABLE memory_erased_users (
    who TEXT PRIMARY KEY,
    at TEXT NOT NULL
);
