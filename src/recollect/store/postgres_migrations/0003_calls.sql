-- The log of tool calls, the ledger of what was spent, and what the person consented to. Beside the memory: none
-- of it takes a sequence number.

CREATE TABLE memory_calls (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    id TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    suite TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT NOT NULL,
    latency_ms DOUBLE PRECISION NOT NULL,
    tokens_in BIGINT NOT NULL,
    tokens_out BIGINT NOT NULL,
    session TEXT COLLATE "C",
    agent TEXT,
    PRIMARY KEY (user_id, id)
);

CREATE INDEX memory_calls_by_time ON memory_calls (user_id, at, id);
CREATE INDEX memory_calls_by_session ON memory_calls (user_id, session, at) WHERE session IS NOT NULL;

CREATE TABLE memory_spending (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    day DATE NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    tokens_in BIGINT NOT NULL,
    tokens_out BIGINT NOT NULL,
    cost DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (user_id, day, operation)
);

-- Only what holds: what was withdrawn leaves the table, and stays in the journal.
CREATE TABLE memory_consents (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    name TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, name)
);

CREATE INDEX memory_journal_by_call ON memory_journal (user_id, call) WHERE call IS NOT NULL;
