-- Which users were erased, and when: a MEMORY.md of before is not read again. who is a hash.

CREATE TABLE memory_erased_users (
    who TEXT PRIMARY KEY,
    at TEXT NOT NULL
);

CREATE INDEX memory_link_failures_who ON memory_link_failures (who, at);
