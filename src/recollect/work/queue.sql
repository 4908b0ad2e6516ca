-- The statements that both queues run. {columns} are those of rows.COLUMNS; the other words in braces are what the two
-- databases say differently: see `Dialect` in sql_queue.py. What only one of them can say is in its own file.

-- name: put
-- Does nothing if a job with the same key exists.
INSERT INTO {jobs} (id, name, user_id, payload, priority, run_at, max_attempts, key, once, created_at)
VALUES (:id, :name, :user_id, :payload, :priority, :run_at, :max_attempts, :key, :once, :created_at)
ON CONFLICT DO NOTHING
RETURNING id

-- name: same_key
SELECT id FROM {jobs} WHERE key = :key AND state IN ('ready', 'running')
UNION ALL SELECT id FROM {jobs} WHERE key = :key AND once
LIMIT 1

-- name: active
SELECT (SELECT count(*) FROM (SELECT 1 FROM {jobs} WHERE state = 'ready' LIMIT :most) AS waiting)
    + (SELECT count(*) FROM {jobs} WHERE state = 'running')

-- name: first_of_some
-- Of the jobs that have waited longest, the first in each user's line, unless another of this user is running or
-- the first waits to be tried again. A job put for later is not in the line before it is due. A job of another name
-- than those wanted is not in the line either: it may be that nobody has a handler for it.
SELECT j.seq FROM (
    SELECT seq, user_id, priority FROM {jobs} WHERE state = 'ready' AND run_at <= :now AND {named}
    ORDER BY priority DESC, seq LIMIT :some
) AS j
WHERE j.user_id IS NULL OR (
    NOT EXISTS (
        SELECT 1 FROM {jobs} AS other{one_running}
        WHERE other.state = 'running' AND other.user_id IS NOT NULL AND other.user_id = j.user_id
    )
    AND j.seq = (
        SELECT other.seq FROM {jobs} AS other{line}
        WHERE other.state = 'ready' AND other.user_id = j.user_id AND (other.run_at <= :now OR other.attempts > 0)
            AND {named}
        ORDER BY other.priority DESC, other.seq LIMIT 1
    )
)
ORDER BY j.priority DESC, j.seq LIMIT :limit

-- name: first_of_all
-- The same of all jobs, when a few users with long lines are in front: from user to user, whatever their lines.
WITH RECURSIVE waiting (user_id) AS (
    SELECT min(user_id) FROM {jobs}{line} WHERE state = 'ready' AND user_id IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(other.user_id) FROM {jobs} AS other{line}
        WHERE other.state = 'ready' AND other.user_id > waiting.user_id
    )
    FROM waiting WHERE waiting.user_id IS NOT NULL
), first (seq) AS (
    SELECT (
        SELECT other.seq FROM {jobs} AS other{line}
        WHERE other.state = 'ready' AND other.user_id = waiting.user_id
            AND (other.run_at <= :now OR other.attempts > 0) AND {named}
        ORDER BY other.priority DESC, other.seq LIMIT 1
    )
    FROM waiting WHERE waiting.user_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {jobs} AS other{one_running}
        WHERE other.state = 'running' AND other.user_id IS NOT NULL AND other.user_id = waiting.user_id
    )
    UNION ALL
    SELECT seq FROM (
        SELECT seq FROM {jobs} WHERE state = 'ready' AND user_id IS NULL AND run_at <= :now
            AND {named}
        ORDER BY priority DESC, seq LIMIT :limit
    ) AS nobodys
)
SELECT seq FROM {jobs} WHERE seq IN (SELECT seq FROM first) AND run_at <= :now
    AND {named}
ORDER BY priority DESC, seq LIMIT :limit

-- name: settle
-- By the holder of the lease only. The payload is removed once the job is done.
UPDATE {jobs} SET state = :state, attempts = :attempts, run_at = coalesce(:run_at, run_at), finished_at = :finished_at,
    error = :error, result = :result, fence = :new_fence, worker = NULL, lease_until = NULL,
    payload = CASE WHEN :state = 'done' THEN '{{}}' ELSE payload END
WHERE id = :id AND fence = :fence AND state = 'running'

-- name: settled_before
-- The same settlement was recorded before, and its answer did not arrive.
SELECT 1 FROM {jobs} WHERE id = :id AND fence = :fence AND state <> 'running'

-- name: running
SELECT {columns}, fence, worker, lease_until FROM {jobs} WHERE state = 'running'

-- name: next_at
SELECT min(run_at) FROM {jobs}
WHERE state = 'ready' AND run_at > :now AND {named}

-- name: has_due
-- What waits behind a job that is to be tried again is not due before that one is.
SELECT EXISTS (
    SELECT 1 FROM (SELECT * FROM {jobs} WHERE state = 'ready' AND run_at <= :now AND {named}) AS j
    WHERE j.user_id IS NULL OR NOT EXISTS (
        SELECT 1 FROM {jobs} AS other{line}
        WHERE other.state = 'ready' AND other.user_id = j.user_id AND other.run_at > :now AND other.attempts > 0
            AND (other.priority > j.priority OR (other.priority = j.priority AND other.seq < j.seq)) AND {named}
    )
)

-- name: waiting
SELECT name, count(*) FROM {jobs} WHERE state = 'ready' GROUP BY name ORDER BY name

-- name: drop_waiting
DELETE FROM {jobs} WHERE name = :name AND state = 'ready'

-- name: job
SELECT {columns} FROM {jobs} WHERE id = :id

-- name: collect
-- To be followed by `forget_result`.
SELECT {columns} FROM {jobs} WHERE id = :id{held}

-- name: forget_result
UPDATE {jobs} SET result = NULL WHERE id = :id AND result IS NOT NULL AND state IN ('done', 'dead')

-- name: depth
SELECT state, count(*) FROM {jobs} GROUP BY state

-- name: count
-- By state, and when the one that has waited longest became due.
SELECT state, count(*), min(CASE WHEN state = 'ready' AND run_at <= :now
    THEN CASE WHEN attempts = 0 THEN run_at ELSE created_at END END)
FROM {jobs} WHERE {{whose}} GROUP BY state

-- name: dead
SELECT {columns} FROM {jobs} WHERE state = 'dead' AND (CAST(:user_id AS TEXT) IS NULL OR user_id = :user_id) AND {{whose}}
ORDER BY finished_at DESC, seq DESC LIMIT :limit

-- name: retry
UPDATE {jobs} SET state = 'ready', attempts = 0, run_at = :now, finished_at = NULL, fence = fence + 1
WHERE id = :id AND state = 'dead' AND NOT EXISTS (
    SELECT 1 FROM {jobs} AS other WHERE other.key = {jobs}.key AND other.state IN ('ready', 'running')
)

-- name: drop
DELETE FROM {jobs} WHERE id = :id AND state <> 'running'

-- name: erase_user
DELETE FROM {jobs} WHERE user_id = :user_id

-- name: every_job
SELECT {columns} FROM {jobs}

-- name: erase_job
DELETE FROM {jobs} WHERE id = :id

-- name: tidy
DELETE FROM {jobs} WHERE (state = 'done' AND NOT once AND finished_at < :done)
    OR (state = 'done' AND once AND finished_at < :once) OR (state = 'dead' AND finished_at < :dead)

-- name: tidy_results
UPDATE {jobs} SET result = NULL WHERE state = 'done' AND finished_at < :done AND result IS NOT NULL

-- name: slot
SELECT slot FROM {schedules} WHERE name = :name

-- name: advance
INSERT INTO {schedules} (name, slot) VALUES (:name, :slot)
ON CONFLICT (name) DO UPDATE SET slot = excluded.slot WHERE excluded.slot > {schedules}.slot
