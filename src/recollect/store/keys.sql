-- Every statement about API keys and kept answers, for both databases; :name is a value.

-- name: keys
SELECT id, tenant, name, scope, hash, made_at, revoked_at FROM memory_keys ORDER BY made_at, id

-- name: key
SELECT id, tenant, name, scope, hash, made_at, revoked_at FROM memory_keys WHERE id = :id

-- name: any_key
-- Revoked keys count: once there was a key, access requires one.
SELECT 1 FROM memory_keys LIMIT 1

-- name: add_key
INSERT INTO memory_keys (id, tenant, name, scope, hash, made_at)
VALUES (:id, :tenant, :name, :scope, :hash, :made_at)

-- name: revoke_key
UPDATE memory_keys SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL

-- name: secret
SELECT secret FROM memory_key_secret

-- name: add_secret
-- If two processes create one, the first stays.
INSERT INTO memory_key_secret (id, secret) VALUES (1, :secret) ON CONFLICT (id) DO NOTHING

-- name: drop_secret
DELETE FROM memory_key_secret

-- name: answer
SELECT request, status, sealed FROM memory_http_answers WHERE id = :id AND made_at > :since

-- name: keep_answer
-- If two made the same request, the first answer stays.
INSERT INTO memory_http_answers (id, user_id, request, status, sealed, made_at)
VALUES (:id, :user_id, :request, :status, :sealed, :now)
ON CONFLICT (id) DO NOTHING

-- name: answers_of
SELECT id FROM memory_http_answers WHERE user_id = :user_id LIMIT 1

-- name: forget_answers
-- The row stays without the answer: a late request must not repeat what was erased.
UPDATE memory_http_answers SET user_id = '', sealed = :nothing WHERE user_id = :user_id

-- name: tidy_answers
DELETE FROM memory_http_answers WHERE made_at <= :before
