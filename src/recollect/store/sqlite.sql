-- Every statement the SQLite store runs. Lists of values are passed as JSON arrays. Conditions can be appended to those that
-- end with WHERE true.

-- name: state
-- The one row about the user. The last sequence number is the journal's; storing it twice would cost a page.
SELECT user_id, created_at, max(seq, (SELECT coalesce(max(journal.seq), 0) FROM journal)), mode, secret FROM state

-- name: create_state
-- First write of a user.
INSERT INTO state (only, user_id, created_at, seq, mode, secret) VALUES (1, ?, ?, ?, ?, ?)
ON CONFLICT (only) DO UPDATE SET user_id = excluded.user_id, created_at = excluded.created_at,
    seq = excluded.seq, mode = excluded.mode, secret = excluded.secret

-- name: set_mode
UPDATE state SET mode = ?

-- name: put
-- A new latest version, or the same version again with other values.
INSERT INTO records (id, version, seq, kind, status, key, category, type, tier, session, source, content,
    confidence, created_at, updated_at, valid_from, valid_until, expires_at, extra, latest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
ON CONFLICT (id, version) DO UPDATE SET seq = excluded.seq, kind = excluded.kind, status = excluded.status,
    key = excluded.key, category = excluded.category, type = excluded.type, tier = excluded.tier,
    session = excluded.session, source = excluded.source, content = excluded.content,
    confidence = excluded.confidence, created_at = excluded.created_at, updated_at = excluded.updated_at,
    valid_from = excluded.valid_from, valid_until = excluded.valid_until, expires_at = excluded.expires_at,
    extra = excluded.extra, latest = 1

-- name: drop_latest
-- Before a higher version is stored: removes the old row; only `keep` stores a closed copy of it.
DELETE FROM records WHERE id = ? AND version < ? AND latest = 1

-- name: keep
-- A closed version beside the latest one.
INSERT OR REPLACE INTO records (id, version, seq, kind, status, key, category, type, tier, session, source,
    content, confidence, created_at, updated_at, valid_from, valid_until, expires_at, extra, latest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)

-- name: find
-- Conditions and order are appended by the store from a fixed list.
SELECT id, version, seq, kind, status, key, category, type, tier, session, source, content, confidence,
    created_at, updated_at, valid_from, valid_until, expires_at, extra
FROM records WHERE true

-- name: held_at
-- A condition of find: the highest version that held at a moment, unless the record is archived by now.
version = (SELECT max(held.version) FROM records AS held WHERE held.id = records.id AND held.status <> 'archived'
    AND held.valid_from <= ? AND (held.valid_until IS NULL OR held.valid_until > ?))
AND id NOT IN (SELECT gone.id FROM records AS gone WHERE gone.latest = 1 AND gone.status = 'archived')

-- name: count
SELECT kind, status, count(*) FROM records WHERE latest = 1 GROUP BY kind, status

-- name: ids_ending
SELECT id FROM records WHERE latest = 1 AND substr(id, -length(:ending)) = :ending ORDER BY id LIMIT 10

-- name: entries
SELECT seq, at, actor, op, record_id, before, after, reason, source, run, call, undoes, erased FROM journal WHERE true

-- name: sessions
-- Each session by its last message. The plus sign excludes the index with another order.
SELECT last.session,
    (SELECT count(*) FROM records AS one WHERE one.latest = 1 AND one.kind = 'message' AND one.status = 'active'
        AND one.session = last.session AND one.created_at <= :stored),
    (SELECT min(one.valid_from) FROM records AS one WHERE one.latest = 1 AND one.kind = 'message'
        AND one.status = 'active' AND one.session = last.session AND one.created_at <= :stored),
    last.valid_from
FROM records AS last
WHERE last.latest = 1 AND last.kind = 'message' AND last.status = 'active' AND last.session IS NOT NULL
    AND last.created_at <= :stored AND last.valid_from <= :ended
    AND (last.valid_from < :ended OR last.session > :session)
    AND last.id = (SELECT final.id FROM records AS final WHERE final.latest = 1 AND final.kind = 'message'
        AND final.status = 'active' AND final.session = last.session AND +final.created_at <= :stored
        ORDER BY final.valid_from DESC, final.id DESC LIMIT 1)
ORDER BY last.valid_from DESC, last.session LIMIT :limit OFFSET :offset

-- name: numbers
-- The rest is appended.
SELECT record_id, min(seq) FROM journal WHERE true

-- name: changed
SELECT seq, record_id FROM journal WHERE seq > ? ORDER BY seq

-- name: log
INSERT INTO journal (seq, at, actor, op, record_id, before, after, reason, source, run, call, undoes, erased)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: files
SELECT name, fingerprint, seq, previous_fingerprint, previous_seq, boot, versions FROM files WHERE true

-- name: set_file
INSERT OR REPLACE INTO files (name, fingerprint, seq, previous_fingerprint, previous_seq, boot, versions)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: drop_file
DELETE FROM files WHERE name = ?

-- name: tombstones
SELECT hash, record_id, at FROM tombstones WHERE true

-- name: bury
INSERT OR IGNORE INTO tombstones (hash, record_id, at) VALUES (?, ?, ?)

-- name: recalls
SELECT record_id, at FROM recalls

-- name: set_recall
INSERT OR REPLACE INTO recalls (record_id, at) VALUES (?, ?)

-- name: calls
SELECT id, at, tool, suite, status, outcome, latency_ms, tokens_in, tokens_out, session, agent FROM calls WHERE true

-- name: log_call
-- A call that outlived its time-out is logged again when it ends.
INSERT OR REPLACE INTO calls (id, at, tool, suite, status, outcome, latency_ms, tokens_in, tokens_out, session, agent)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: drop_calls
DELETE FROM calls WHERE at < ?

-- name: erase_calls
DELETE FROM calls WHERE id IN (SELECT value FROM json_each(?))

-- name: tally_calls
-- The step is the bucket of a latency.
SELECT substr(at, 1, 10), tool, status, outcome, {step}, count(*) FROM calls GROUP BY 1, 2, 3, 4, 5

-- name: tally_talks
-- Sessions, each on every day it lasted, and the facts written in them.
SELECT substr(at, 1, 10), count(DISTINCT session), count(*) FILTER (WHERE outcome = 'written' AND tool IN ({tools}))
FROM calls WHERE session IS NOT NULL GROUP BY 1

-- name: tally_episodes
SELECT substr(created_at, 1, 10), count(*) FROM records WHERE latest = 1 AND kind = 'episode' GROUP BY 1

-- name: spending
SELECT day, operation, calls, tokens_in, tokens_out, cost FROM spending WHERE true

-- name: charge
INSERT INTO spending (day, operation, calls, tokens_in, tokens_out, cost) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (day, operation) DO UPDATE SET calls = calls + excluded.calls,
    tokens_in = tokens_in + excluded.tokens_in, tokens_out = tokens_out + excluded.tokens_out,
    cost = cost + excluded.cost

-- name: consents
SELECT name, at FROM consents ORDER BY name

-- name: give_consent
INSERT OR REPLACE INTO consents (name, at) VALUES (?, ?)

-- name: withdraw_consent
DELETE FROM consents WHERE name = ?

-- name: interactions
SELECT id, at, kind, item, title, value, topics, text, session, metadata, reported_at FROM interactions WHERE true

-- name: last_reported
SELECT max(reported_at) FROM interactions

-- name: put_interaction
-- Something reported twice stays as first reported.
INSERT INTO interactions (id, at, kind, item, title, value, topics, text, session, metadata, reported_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING

-- name: drop_interactions
DELETE FROM interactions WHERE at < ?

-- name: erase_interactions
DELETE FROM interactions WHERE id IN (SELECT value FROM json_each(?))

-- name: runs
SELECT id, run_date, interactions_processed, memories_written, memories_updated, tokens_used, duration_ms, status,
    error_message, created_at, kind, tier, details
FROM extraction_runs WHERE true

-- name: drop_run
-- Before one is stored: removes those with its id, or its day and kind.
DELETE FROM extraction_runs WHERE id = ? OR (run_date = ? AND kind = ?)

-- name: put_run
INSERT INTO extraction_runs (id, run_date, interactions_processed, memories_written, memories_updated, tokens_used,
    duration_ms, status, error_message, created_at, kind, tier, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: drop_runs
DELETE FROM extraction_runs

-- name: vectors
-- By number, so that the table is read in its own order; rows of an earlier embedder are skipped.
SELECT number, record_id, version, data FROM vectors
WHERE number > ? AND embedder = (SELECT id FROM embedders WHERE name = ?) ORDER BY number LIMIT ?

-- name: last_vector
SELECT last FROM embedders WHERE name = ?

-- name: unembedded
-- A condition of find, which has no table alias.
NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.record_id = records.id AND vectors.version = records.version
    AND vectors.embedder = (SELECT embedders.id FROM embedders WHERE embedders.name = ?))

-- name: last_number
-- Of all embedders.
SELECT coalesce(max(last), 0) FROM embedders

-- name: set_embedder
INSERT INTO embedders (name, last) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET last = excluded.last

-- name: put_vector
-- Unless the record was erased meanwhile.
INSERT OR REPLACE INTO vectors (number, embedder, record_id, version, data)
SELECT ?1, (SELECT id FROM embedders WHERE name = ?2), ?3, ?4, ?5
WHERE EXISTS (SELECT 1 FROM records WHERE id = ?3)

-- name: drop_vectors
-- Without a name to keep, all of them.
DELETE FROM vectors WHERE embedder NOT IN (SELECT id FROM embedders WHERE name = ?)

-- name: erase_vectors
DELETE FROM vectors WHERE record_id IN (SELECT value FROM json_each(?))

-- name: erase_recalls
DELETE FROM recalls WHERE record_id IN (SELECT value FROM json_each(?))

-- name: contents
SELECT content FROM records WHERE id IN (SELECT value FROM json_each(?))

-- name: erase_records
DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))

-- name: erase_journal
-- Keeps who, when and which record, but no content.
UPDATE journal SET before = NULL, after = NULL, reason = NULL, source = NULL, call = NULL, erased = 1
WHERE record_id IN (SELECT value FROM json_each(?))
    AND (erased = 0 OR before IS NOT NULL OR after IS NOT NULL OR reason IS NOT NULL OR source IS NOT NULL)

-- name: redact
UPDATE journal SET before = ?, after = ?, reason = ?, source = ?, erased = 1 WHERE seq = ?

-- name: drop_version
DELETE FROM records WHERE id = ? AND version = ? AND latest = 0

-- name: drop_stray_vectors
-- After a repair: rows of records or embedders that could not be read.
DELETE FROM vectors
WHERE embedder NOT IN (SELECT id FROM embedders) OR record_id NOT IN (SELECT id FROM records)

-- name: register_user
-- In the root database.
INSERT OR IGNORE INTO users (user_id, folder, created_at) VALUES (?, ?, ?)

-- name: registered_users
SELECT user_id, folder FROM users

-- name: unregister_user
DELETE FROM users WHERE user_id = ?
