-- The queue of one database. seq is the order in which jobs were put.

CREATE TABLE memory_jobs (
    seq bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    id text NOT NULL UNIQUE,
    name text NOT NULL,
    user_id text,
    payload text NOT NULL,
    priority integer NOT NULL,
    run_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    state text NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'running', 'done', 'dead')),
    key text,
    once boolean NOT NULL,
    created_at timestamptz NOT NULL,
    finished_at timestamptz,
    error text,
    result text,
    fence bigint NOT NULL DEFAULT 0,
    worker text,
    lease_until timestamptz
);

-- rows change their state twice and are then removed: clean up early, and leave room for new versions on the page
ALTER TABLE memory_jobs SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
    autovacuum_analyze_scale_factor = 0.1);

CREATE INDEX memory_jobs_ready ON memory_jobs (priority DESC, seq) WHERE state = 'ready';

CREATE INDEX memory_jobs_line ON memory_jobs (user_id, priority DESC, seq) WHERE state = 'ready';

CREATE INDEX memory_jobs_due ON memory_jobs (run_at) WHERE state = 'ready';

CREATE INDEX memory_jobs_running ON memory_jobs (lease_until) WHERE state = 'running';

-- One job of a user at a time, whatever the statements do.
CREATE UNIQUE INDEX memory_jobs_one_running ON memory_jobs (user_id) WHERE state = 'running' AND user_id IS NOT NULL;

CREATE UNIQUE INDEX memory_jobs_key ON memory_jobs (key) WHERE key IS NOT NULL AND state IN ('ready', 'running');

CREATE UNIQUE INDEX memory_jobs_once ON memory_jobs (key) WHERE once;

CREATE INDEX memory_jobs_user ON memory_jobs (user_id) WHERE user_id IS NOT NULL;

CREATE INDEX memory_jobs_finished ON memory_jobs (finished_at) WHERE state IN ('done', 'dead');

CREATE TABLE memory_schedules (
    name text PRIMARY KEY,
    slot timestamptz NOT NULL
);
