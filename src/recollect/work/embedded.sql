-- Every statement the embedded queue runs. {columns} are those of rows.COLUMNS.

-- name: put
-- Nothing happens if a job with the same key is there.
INSERT INTO jobs (id, name, user_id, payload, priority, run_at, max_attempts, key, once, created_at)
VALUES (:id, :name, :user_id, :payload, :priority, :run_at, :max_attempts, :key, :once, :created_at)
ON CONFLICT DO NOTHING

-- name: same_key
SELECT id FROM jobs WHERE key = :key AND state IN ('ready', 'running')
UNION ALL SELECT id FROM jobs WHERE key = :key AND once
LIMIT 1

-- name: active
SELECT (SELECT count(*) FROM jobs WHERE state = 'ready') + (SELECT count(*) FROM jobs WHERE state = 'running')

-- name: take
-- The rows chosen by one of the two statements below.
UPDATE jobs SET state = 'running', fence = fence + 1, attempts = attempts + 1, worker = :worker,
    lease_until = :until
WHERE seq IN (
    SELECT seq FROM jobs WHERE state = 'ready' AND seq IN ({{chosen}})
)
RETURNING {columns}, fence, seq

-- name: first_of_some
-- Of the jobs that have waited longest, the first in each user's line, unless another of this user is running or
-- the first waits to be tried again. A job put for later is not in the line before it is due.
SELECT j.seq FROM (
    SELECT seq, user_id, priority FROM jobs WHERE state = 'ready' AND run_at <= :now AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
    ORDER BY priority DESC, seq LIMIT :some
) AS j
WHERE j.user_id IS NULL OR (
    NOT EXISTS (
        SELECT 1 FROM jobs AS other INDEXED BY jobs_one_running
        WHERE other.state = 'running' AND other.user_id IS NOT NULL AND other.user_id = j.user_id
    )
    AND j.seq = (
        SELECT other.seq FROM jobs AS other INDEXED BY jobs_line
        WHERE other.state = 'ready' AND other.user_id = j.user_id AND (other.run_at <= :now OR other.attempts > 0)
        ORDER BY other.priority DESC, other.seq LIMIT 1
    )
)
ORDER BY j.priority DESC, j.seq LIMIT :limit

-- name: first_of_all
-- The same of all jobs, when a few users with long lines are in front: from user to user, whatever their lines.
WITH RECURSIVE waiting (user_id) AS (
    SELECT min(user_id) FROM jobs INDEXED BY jobs_line WHERE state = 'ready' AND user_id IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(other.user_id) FROM jobs AS other INDEXED BY jobs_line
        WHERE other.state = 'ready' AND other.user_id > waiting.user_id
    )
    FROM waiting WHERE waiting.user_id IS NOT NULL
), first (seq) AS (
    SELECT (
        SELECT other.seq FROM jobs AS other INDEXED BY jobs_line
        WHERE other.state = 'ready' AND other.user_id = waiting.user_id
            AND (other.run_at <= :now OR other.attempts > 0)
        ORDER BY other.priority DESC, other.seq LIMIT 1
    )
    FROM waiting WHERE waiting.user_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM jobs AS other INDEXED BY jobs_one_running
        WHERE other.state = 'running' AND other.user_id IS NOT NULL AND other.user_id = waiting.user_id
    )
    UNION ALL
    SELECT seq FROM (
        SELECT seq FROM jobs WHERE state = 'ready' AND user_id IS NULL AND run_at <= :now
            AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
        ORDER BY priority DESC, seq LIMIT :limit
    ) AS nobodys
)
SELECT seq FROM jobs WHERE seq IN (SELECT seq FROM first) AND run_at <= :now
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
ORDER BY priority DESC, seq LIMIT :limit

-- name: settle
-- By the holder of the lease only. What was worked on is forgotten once it is done.
UPDATE jobs SET state = :state, attempts = :attempts, run_at = coalesce(:run_at, run_at), finished_at = :finished_at,
    error = :error, result = :result, fence = :new_fence, worker = NULL, lease_until = NULL,
    payload = CASE WHEN :state = 'done' THEN '{{}}' ELSE payload END
WHERE id = :id AND fence = :fence AND state = 'running'

-- name: settled_before
-- The same settlement was recorded before, and its answer did not arrive.
SELECT 1 FROM jobs WHERE id = :id AND fence = :fence AND state <> 'running'

-- name: renew
UPDATE jobs SET lease_until = ? WHERE id = ? AND fence = ? AND state = 'running'

-- name: running
SELECT {columns}, fence, worker, lease_until FROM jobs WHERE state = 'running'

-- name: next_at
SELECT min(run_at) FROM jobs
WHERE state = 'ready' AND run_at > :now AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))

-- name: job
SELECT {columns} FROM jobs WHERE id = ?

-- name: forget_result
UPDATE jobs SET result = NULL WHERE id = ? AND result IS NOT NULL AND state IN ('done', 'dead')

-- name: depth
SELECT state, count(*) FROM jobs GROUP BY state

-- name: count
-- By state, and since when the one that has waited longest could have been done.
SELECT state, count(*), min(CASE WHEN state = 'ready' AND run_at <= :now
    THEN CASE WHEN attempts = 0 THEN run_at ELSE created_at END END)
FROM jobs WHERE {{whose}} GROUP BY state

-- name: completion
-- From when a job was put until it was done; one put for later, from then on. When it was tried again, that is forgotten.
SELECT {{step}}, count(*)
FROM (
    SELECT round(86400000.0 * (julianday(finished_at)
        - julianday(CASE WHEN attempts = 1 THEN max(run_at, created_at) ELSE created_at END))) AS latency_ms
    FROM jobs WHERE state = 'done' AND {{whose}}
)
GROUP BY 1

-- name: of_tenant
substr(user_id, 1, length(:prefix)) = :prefix

-- name: of_no_tenant
-- No id that begins with @, the name of a tenant and a slash.
(user_id IS NULL OR substr(user_id, 1, 1) <> '@' OR instr(user_id, '/') NOT BETWEEN 3 AND 34
    OR substr(user_id, 2, 1) NOT GLOB '[a-z0-9]' OR substr(user_id, 2, instr(user_id, '/') - 2) GLOB '*[^a-z0-9-]*')

-- name: dead
SELECT {columns} FROM jobs WHERE state = 'dead' AND (:user_id IS NULL OR user_id = :user_id) AND {{whose}}
ORDER BY finished_at DESC, seq DESC LIMIT :limit

-- name: retry
UPDATE jobs SET state = 'ready', attempts = 0, run_at = :now, finished_at = NULL, fence = fence + 1
WHERE id = :id AND state = 'dead' AND NOT EXISTS (
    SELECT 1 FROM jobs AS other WHERE other.key = jobs.key AND other.state IN ('ready', 'running')
)

-- name: drop
DELETE FROM jobs WHERE id = ? AND state <> 'running'

-- name: erase_user
DELETE FROM jobs WHERE user_id = ?

-- name: every_job
SELECT {columns} FROM jobs

-- name: erase_job
DELETE FROM jobs WHERE id = ?

-- name: tidy
DELETE FROM jobs WHERE (state = 'done' AND finished_at < CASE WHEN once THEN :once ELSE :done END)
    OR (state = 'dead' AND finished_at < :dead)

-- name: tidy_results
UPDATE jobs SET result = NULL WHERE state = 'done' AND finished_at < :done AND result IS NOT NULL

-- name: slot
SELECT slot FROM schedules WHERE name = ?

-- name: advance
INSERT INTO schedules (name, slot) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET slot = excluded.slot WHERE excluded.slot > schedules.slot
