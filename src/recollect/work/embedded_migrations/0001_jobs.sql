-- The queue of one folder. seq is the order in which jobs were put.

CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    user_id TEXT,
    payload TEXT NOT NULL,
    priority INTEGER NOT NULL,
    run_at TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'running', 'done', 'dead')),
    key TEXT,
    once INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    finished_at TEXT,
    error TEXT,
    result TEXT,
    fence INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    lease_until TEXT
) STRICT;

CREATE INDEX jobs_ready ON jobs (priority DESC, seq) WHERE state = 'ready';

CREATE INDEX jobs_line ON jobs (user_id, priority DESC, seq) WHERE state = 'ready';

CREATE INDEX jobs_due ON jobs (run_at) WHERE state = 'ready';

CREATE INDEX jobs_running ON jobs (lease_until) WHERE state = 'running';

-- One job of a user at a time, whatever the statements do.
CREATE UNIQUE INDEX jobs_one_running ON jobs (user_id) WHERE state = 'running' AND user_id IS NOT NULL;

CREATE UNIQUE INDEX jobs_key ON jobs (key) WHERE key IS NOT NULL AND state IN ('ready', 'running');

CREATE UNIQUE INDEX jobs_once ON jobs (key) WHERE once;

CREATE INDEX jobs_user ON jobs (user_id) WHERE user_id IS NOT NULL;

CREATE INDEX jobs_finished ON jobs (finished_at) WHERE state IN ('done', 'dead');

CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    slot TEXT NOT NULL
) STRICT;
