-- Statements of the distributed queue only; the rest is in queue.sql.

-- name: home
-- Where tables are searched for and created: the first schema of the search path, if it exists.
SELECT current_setting('search_path'), current_schema(),
    to_regclass(quote_ident(current_schema()) || '.memory_jobs_migrations') IS NOT NULL

-- name: lock
SELECT pg_advisory_lock(:lock)

-- name: unlock
SELECT pg_advisory_unlock(:lock)

-- name: make_versions
CREATE TABLE IF NOT EXISTS memory_jobs_migrations (version integer PRIMARY KEY)

-- name: version
SELECT coalesce(max(version), 0) FROM memory_jobs_migrations

-- name: set_version
INSERT INTO memory_jobs_migrations (version) VALUES (:version)

-- name: time
SELECT clock_timestamp()

-- name: notify
-- Arrives when the transaction commits.
SELECT pg_notify('recollect_jobs', '')

-- name: listen
LISTEN recollect_jobs

-- name: one_taker
-- Until the transaction ends. Whoever took meanwhile is seen by the next statement: what is the first in a line
-- depends on rows that a lock on the first would not hold. What the server knows about a table that fills and
-- empties is always out of date, so it is told to go by the indexes.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.memory_jobs', 0)),
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_sort', 'off', true)

-- name: take
-- The rows chosen by one of the two statements below. A row that is being removed is skipped.
WITH chosen (seq) AS MATERIALIZED ({{chosen}}), held (seq) AS MATERIALIZED (
    SELECT memory_jobs.seq FROM memory_jobs JOIN chosen ON memory_jobs.seq = chosen.seq
    WHERE state = 'ready' FOR UPDATE OF memory_jobs SKIP LOCKED
)
UPDATE memory_jobs SET state = 'running', fence = fence + 1, attempts = attempts + 1, worker = :worker,
    lease_until = :until
FROM held WHERE memory_jobs.seq = held.seq
RETURNING {columns}, fence, memory_jobs.seq

-- name: renew
UPDATE memory_jobs SET lease_until = :until
WHERE state = 'running' AND (id, fence) IN (SELECT * FROM unnest(:ids::text[], :fences::bigint[]))
RETURNING id, fence

-- name: completion
-- From when a job was queued until it was done; from its due time if it was queued for later. After a retry,
-- the due time is lost, so the creation time counts.
SELECT width_bucket(1000 * extract(epoch FROM finished_at
    - CASE WHEN attempts = 1 THEN greatest(run_at, created_at) ELSE created_at END)::float8, :bounds::float8[]), count(*)
FROM memory_jobs WHERE state = 'done' AND {{whose}} GROUP BY 1

-- name: of_tenant
starts_with(user_id, :prefix)

-- name: of_no_tenant
-- No id that begins with @, the name of a tenant and a slash.
(user_id IS NULL OR user_id COLLATE "C" < '@' OR user_id COLLATE "C" >= 'A' OR user_id !~ '^@[a-z0-9][a-z0-9-]{{{{0,31}}}}/')
