-- Every statement the distributed queue runs. {columns} are those of rows.COLUMNS.

-- name: home
-- Where tables are looked for and made: the first schema of the search path, if it is there.
SELECT current_setting('search_path'), current_schema(),
    to_regclass(quote_ident(current_schema()) || '.memory_jobs_migrations') IS NOT NULL

-- name: lock
SELECT pg_advisory_lock(%s)

-- name: unlock
SELECT pg_advisory_unlock(%s)

-- name: make_versions
CREATE TABLE IF NOT EXISTS memory_jobs_migrations (version integer PRIMARY KEY)

-- name: version
SELECT coalesce(max(version), 0) FROM memory_jobs_migrations

-- name: set_version
INSERT INTO memory_jobs_migrations (version) VALUES (%s)

-- name: time
SELECT clock_timestamp()

-- name: notify
-- Arrives when the transaction commits.
SELECT pg_notify('recollect_jobs', '')

-- name: listen
LISTEN recollect_jobs

-- name: put
-- Nothing happens if a job with the same key is there.
INSERT INTO memory_jobs (id, name, user_id, payload, priority, run_at, max_attempts, key, once, created_at)
VALUES (%(id)s, %(name)s, %(user_id)s, %(payload)s, %(priority)s, %(run_at)s, %(max_attempts)s, %(key)s, %(once)s,
    %(created_at)s)
ON CONFLICT DO NOTHING
RETURNING id

-- name: same_key
SELECT id FROM memory_jobs WHERE key = %(key)s AND state IN ('ready', 'running')
UNION ALL SELECT id FROM memory_jobs WHERE key = %(key)s AND once
LIMIT 1

-- name: active
SELECT (SELECT count(*) FROM (SELECT 1 FROM memory_jobs WHERE state = 'ready' LIMIT %(most)s) AS waiting)
    + (SELECT count(*) FROM memory_jobs WHERE state = 'running')

-- name: one_taker
-- Until the transaction ends. Whoever took meanwhile is seen by the next statement: what is the first in a line
-- depends on rows that a lock on the first would not hold. What the server knows about a table that fills and
-- empties is always out of date, so it is told to go by the indexes.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.memory_jobs', 0)),
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_sort', 'off', true)

-- name: take
-- The rows chosen by one of the two statements below. A row that is just being removed is passed over.
WITH chosen (seq) AS MATERIALIZED ({{chosen}}), held (seq) AS MATERIALIZED (
    SELECT memory_jobs.seq FROM memory_jobs JOIN chosen ON memory_jobs.seq = chosen.seq
    WHERE state = 'ready' FOR UPDATE OF memory_jobs SKIP LOCKED
)
UPDATE memory_jobs SET state = 'running', fence = fence + 1, attempts = attempts + 1, worker = %(worker)s,
    lease_until = %(until)s
FROM held WHERE memory_jobs.seq = held.seq
RETURNING {columns}, fence, memory_jobs.seq

-- name: first_of_some
-- Of the jobs that have waited longest, the first in each user's line, unless another of this user is running or
-- the first waits to be tried again. A job put for later is not in the line before it is due.
SELECT j.seq FROM (
    SELECT seq, user_id, priority FROM memory_jobs WHERE state = 'ready' AND run_at <= %(now)s AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s::text[]))
    ORDER BY priority DESC, seq LIMIT %(some)s
) AS j
WHERE j.user_id IS NULL OR (
    NOT EXISTS (
        SELECT 1 FROM memory_jobs AS other
        WHERE other.state = 'running' AND other.user_id IS NOT NULL AND other.user_id = j.user_id
    )
    AND j.seq = (
        SELECT other.seq FROM memory_jobs AS other
        WHERE other.state = 'ready' AND other.user_id = j.user_id AND (other.run_at <= %(now)s OR other.attempts > 0)
        ORDER BY other.priority DESC, other.seq LIMIT 1
    )
)
ORDER BY j.priority DESC, j.seq LIMIT %(limit)s

-- name: first_of_all
-- The same of all jobs, when a few users with long lines are in front: from user to user, whatever their lines.
WITH RECURSIVE waiting (user_id) AS (
    SELECT min(user_id) FROM memory_jobs WHERE state = 'ready' AND user_id IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(other.user_id) FROM memory_jobs AS other
        WHERE other.state = 'ready' AND other.user_id > waiting.user_id
    )
    FROM waiting WHERE waiting.user_id IS NOT NULL
), first (seq) AS (
    SELECT (
        SELECT other.seq FROM memory_jobs AS other
        WHERE other.state = 'ready' AND other.user_id = waiting.user_id
            AND (other.run_at <= %(now)s OR other.attempts > 0)
        ORDER BY other.priority DESC, other.seq LIMIT 1
    )
    FROM waiting WHERE waiting.user_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM memory_jobs AS other
        WHERE other.state = 'running' AND other.user_id IS NOT NULL AND other.user_id = waiting.user_id
    )
    UNION ALL
    SELECT seq FROM (
        SELECT seq FROM memory_jobs WHERE state = 'ready' AND user_id IS NULL AND run_at <= %(now)s
            AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s::text[]))
        ORDER BY priority DESC, seq LIMIT %(limit)s
    ) AS nobodys
)
SELECT seq FROM memory_jobs WHERE seq IN (SELECT seq FROM first) AND run_at <= %(now)s
    AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s::text[]))
ORDER BY priority DESC, seq LIMIT %(limit)s

-- name: settle
-- By the holder of the lease only. What was worked on is forgotten once it is done.
UPDATE memory_jobs SET state = %(state)s, attempts = %(attempts)s, run_at = coalesce(%(run_at)s, run_at),
    finished_at = %(finished_at)s, error = %(error)s, result = %(result)s, fence = %(new_fence)s, worker = NULL,
    lease_until = NULL, payload = CASE WHEN %(state)s = 'done' THEN '{{}}' ELSE payload END
WHERE id = %(id)s AND fence = %(fence)s AND state = 'running'

-- name: settled_before
-- The same settlement was recorded before, and its answer did not arrive.
SELECT 1 FROM memory_jobs WHERE id = %(id)s AND fence = %(fence)s AND state <> 'running'

-- name: renew
UPDATE memory_jobs SET lease_until = %(until)s
WHERE state = 'running' AND (id, fence) IN (SELECT * FROM unnest(%(ids)s::text[], %(fences)s::bigint[]))
RETURNING id, fence

-- name: running
SELECT {columns}, fence, worker, lease_until FROM memory_jobs WHERE state = 'running'

-- name: next_at
SELECT min(run_at) FROM memory_jobs
WHERE state = 'ready' AND run_at > %(now)s AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s::text[]))

-- name: job
SELECT {columns} FROM memory_jobs WHERE id = %s

-- name: forget_result
UPDATE memory_jobs SET result = NULL WHERE id = %s AND result IS NOT NULL AND state IN ('done', 'dead')

-- name: depth
SELECT state, count(*) FROM memory_jobs GROUP BY state

-- name: count
-- By state, and since when the one that has waited longest could have been done.
SELECT state, count(*), min(CASE WHEN attempts = 0 THEN run_at ELSE created_at END)
    FILTER (WHERE state = 'ready' AND run_at <= %(now)s)
FROM memory_jobs WHERE {{whose}} GROUP BY state

-- name: completion
-- From when a job was put until it was done; one put for later, from then on. When it was tried again, that is forgotten.
SELECT width_bucket(1000 * extract(epoch FROM finished_at
    - CASE WHEN attempts = 1 THEN greatest(run_at, created_at) ELSE created_at END)::float8, %(bounds)s::float8[]), count(*)
FROM memory_jobs WHERE state = 'done' AND {{whose}} GROUP BY 1

-- name: of_tenant
starts_with(user_id, %(prefix)s)

-- name: of_no_tenant
-- No id that begins with @, the name of a tenant and a slash.
(user_id IS NULL OR user_id COLLATE "C" < '@' OR user_id COLLATE "C" >= 'A' OR user_id !~ '^@[a-z0-9][a-z0-9-]{{{{0,31}}}}/')

-- name: dead
SELECT {columns} FROM memory_jobs WHERE state = 'dead' AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
    AND {{whose}}
ORDER BY finished_at DESC, seq DESC LIMIT %(limit)s

-- name: retry
UPDATE memory_jobs SET state = 'ready', attempts = 0, run_at = %(now)s, finished_at = NULL, fence = fence + 1
WHERE id = %(id)s AND state = 'dead' AND NOT EXISTS (
    SELECT 1 FROM memory_jobs AS other WHERE other.key = memory_jobs.key AND other.state IN ('ready', 'running')
)

-- name: drop
DELETE FROM memory_jobs WHERE id = %s AND state <> 'running'

-- name: erase_user
DELETE FROM memory_jobs WHERE user_id = %s

-- name: every_job
SELECT {columns} FROM memory_jobs

-- name: erase_job
DELETE FROM memory_jobs WHERE id = %s

-- name: tidy
DELETE FROM memory_jobs
WHERE (state = 'done' AND finished_at < CASE WHEN once THEN %(once)s::timestamptz ELSE %(done)s::timestamptz END)
    OR (state = 'dead' AND finished_at < %(dead)s)

-- name: tidy_results
UPDATE memory_jobs SET result = NULL WHERE state = 'done' AND finished_at < %(done)s AND result IS NOT NULL

-- name: slot
SELECT slot FROM memory_schedules WHERE name = %s

-- name: advance
INSERT INTO memory_schedules (name, slot) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET slot = excluded.slot WHERE excluded.slot > memory_schedules.slot
