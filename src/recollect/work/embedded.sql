-- Statements of the embedded queue only; the rest is in queue.sql.

-- name: take
-- The rows chosen by one of the two statements below.
UPDATE {jobs} SET state = 'running', fence = fence + 1, attempts = attempts + 1, worker = :worker,
    lease_until = :until
WHERE seq IN (
    SELECT seq FROM {jobs} WHERE state = 'ready' AND seq IN ({{chosen}})
)
RETURNING {columns}, fence, seq

-- name: renew
UPDATE {jobs} SET lease_until = :until WHERE id = :id AND fence = :fence AND state = 'running'

-- name: completion
-- From when a job was queued until it was done; from its due time if it was queued for later. After a retry,
-- the due time is lost, so the creation time counts.
SELECT {step}, count(*)
FROM (
    SELECT round(86400000.0 * (julianday(finished_at)
        - julianday(CASE WHEN attempts = 1 THEN max(run_at, created_at) ELSE created_at END))) AS latency_ms
    FROM {jobs} WHERE state = 'done' AND {{whose}}
)
GROUP BY 1

-- name: of_tenant
substr(user_id, 1, length(:prefix)) = :prefix

-- name: of_no_tenant
-- No id that begins with @, the name of a tenant and a slash.
(user_id IS NULL OR substr(user_id, 1, 1) <> '@' OR instr(user_id, '/') NOT BETWEEN 3 AND 34
    OR substr(user_id, 2, 1) NOT GLOB '[a-z0-9]' OR substr(user_id, 2, instr(user_id, '/') - 2) GLOB '*[^a-z0-9-]*')
