-- Every statement the PostgreSQL store runs on a user's data. Each names the user it is about.

-- name: lock
-- Held until the after-commit hooks are done; the server releases it when the connection dies.
SELECT pg_advisory_lock(%s)

-- name: lock_if_free
-- False also where nothing can be written.
SELECT CASE WHEN pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' THEN false
    ELSE pg_try_advisory_lock(%s) END

-- name: unlock
SELECT pg_advisory_unlock(%s)

-- name: begin_reading
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: home
-- Where tables are searched for and created: the first schema of the search path, if it exists.
SELECT current_setting('search_path'), current_schema(),
    to_regclass(quote_ident(current_schema()) || '.recollect_migrations') IS NOT NULL

-- name: version
SELECT coalesce(max(version), 0) FROM recollect_migrations

-- name: set_version
INSERT INTO recollect_migrations (version) VALUES (%s)

-- name: strangers
-- Before the first migration: tables with our names, the type of their id, and their columns.
SELECT c.relname, max(format_type(a.atttypid, NULL)) FILTER (WHERE a.attname = 'id'), array_agg(a.attname::text)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = current_schema() AND c.relname IN ('users', 'memory', 'memory_extraction_runs', 'memory_users',
    'memory_records', 'memory_runs', 'memory_journal', 'memory_files', 'memory_tombstones', 'memory_recalls',
    'memory_embedders', 'memory_vectors', 'memory_calls', 'memory_spending', 'memory_consents', 'memory_interactions',
    'memory_large', 'memory_words', 'memory_terms', 'memory_meanings')
GROUP BY c.relname ORDER BY c.relname

-- name: users
SELECT id FROM memory_users WHERE id COLLATE "C" > %(after)s AND id COLLATE "C" >= %(first)s

-- name: users_before
-- A part of it, as the next ones.
AND id COLLATE "C" < %(beyond)s

-- name: users_of_no_tenant
AND (id COLLATE "C" < '@' OR id COLLATE "C" >= 'A' OR id !~ '^@[a-z0-9][a-z0-9-]{0,31}/')

-- name: users_in_order
ORDER BY id COLLATE "C" LIMIT %(limit)s

-- name: exists
SELECT 1 FROM memory_users WHERE id = %s

-- name: state
-- memory_enabled follows the mode; where it differs the application has switched it, and that counts. NULL does not.
SELECT memory_created_at, memory_seq,
    CASE WHEN coalesce(users.memory_enabled = (memory_mode = 'on'), true) THEN memory_mode
        WHEN users.memory_enabled THEN 'on' ELSE 'paused' END,
    memory_secret
FROM memory_users, users WHERE memory_users.id = %s AND users.id = memory_users.account

-- name: create_state
-- First write of a user. An application's row is used, and its memory_enabled is left as it is. Not an upsert: that
-- would fail on an application's NOT NULL columns even where the row exists.
WITH made AS (
    INSERT INTO users (id, memory_enabled) SELECT %(account)s::uuid, %(mode)s::text = 'on'
    WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = %(account)s::uuid) RETURNING id
)
INSERT INTO memory_users (id, account, made_account, memory_created_at, memory_seq, memory_mode, memory_secret)
SELECT %(user_id)s::text, %(account)s::uuid, EXISTS (SELECT 1 FROM made), %(created_at)s::timestamptz, %(seq)s::bigint,
    %(mode)s::text, %(secret)s::bytea

-- name: set_state
WITH own AS (
    UPDATE memory_users SET memory_created_at = %(created_at)s, memory_seq = %(seq)s, memory_mode = %(mode)s,
        memory_secret = %(secret)s
    WHERE id = %(user_id)s RETURNING account
)
UPDATE users SET memory_enabled = (%(mode)s = 'on') FROM own WHERE users.id = own.account

-- name: set_seq
-- Once at the end of a transaction: the last number taken.
UPDATE memory_users SET memory_seq = %(seq)s WHERE id = %(user_id)s

-- name: set_mode
WITH own AS (UPDATE memory_users SET memory_mode = %(mode)s WHERE id = %(user_id)s RETURNING account)
UPDATE users SET memory_enabled = (%(mode)s = 'on') FROM own WHERE users.id = own.account

-- name: drop_user
-- An application's own row in users stays.
WITH own AS (DELETE FROM memory_users WHERE id = %s RETURNING account, made_account),
    gone AS (DELETE FROM users USING own WHERE users.id = own.account AND own.made_account)
UPDATE users SET memory_last_extracted_at = NULL FROM own WHERE users.id = own.account AND NOT own.made_account

-- name: erase_user
-- Everything except the rows in memory_users and users; returns the counts. The application's own entries go too.
WITH erased_entries AS (DELETE FROM memory WHERE user_id = (SELECT account FROM memory_users WHERE id = %(user_id)s)),
    erased_entry_runs AS (
        DELETE FROM memory_extraction_runs WHERE user_id = (SELECT account FROM memory_users WHERE id = %(user_id)s)),
    erased_records AS (DELETE FROM memory_records WHERE user_id = %(user_id)s RETURNING 1),
    erased_journal AS (DELETE FROM memory_journal WHERE user_id = %(user_id)s RETURNING 1),
    erased_files AS (DELETE FROM memory_files WHERE user_id = %(user_id)s RETURNING 1),
    erased_tombstones AS (DELETE FROM memory_tombstones WHERE user_id = %(user_id)s RETURNING 1),
    erased_recalls AS (DELETE FROM memory_recalls WHERE user_id = %(user_id)s RETURNING 1),
    erased_vectors AS (DELETE FROM memory_vectors WHERE user_id = %(user_id)s RETURNING 1),
    erased_embedders AS (DELETE FROM memory_embedders WHERE user_id = %(user_id)s),
    erased_runs AS (DELETE FROM memory_runs WHERE user_id = %(user_id)s RETURNING 1),
    erased_calls AS (DELETE FROM memory_calls WHERE user_id = %(user_id)s RETURNING 1),
    erased_spending AS (DELETE FROM memory_spending WHERE user_id = %(user_id)s RETURNING 1),
    erased_consents AS (DELETE FROM memory_consents WHERE user_id = %(user_id)s RETURNING 1),
    erased_interactions AS (DELETE FROM memory_interactions WHERE user_id = %(user_id)s RETURNING 1),
    erased_words AS (DELETE FROM memory_words WHERE user_id = %(user_id)s RETURNING 1),
    erased_terms AS (DELETE FROM memory_terms WHERE user_id = %(user_id)s),
    erased_large AS (DELETE FROM memory_large WHERE user_id = %(user_id)s)
SELECT (SELECT count(*) FROM erased_records), (SELECT count(*) FROM erased_journal),
    (SELECT count(*) FROM erased_files), (SELECT count(*) FROM erased_tombstones),
    (SELECT count(*) FROM erased_recalls), (SELECT count(*) FROM erased_runs),
    (SELECT count(*) FROM erased_calls), (SELECT count(*) FROM erased_spending),
    (SELECT count(*) FROM erased_consents), (SELECT count(*) FROM erased_interactions),
    (SELECT count(*) FROM erased_vectors), (SELECT count(*) FROM erased_words),
    (SELECT count(*) FROM memory_users WHERE id = %(user_id)s)

-- name: put
-- A version of a record, the latest or a closed one; or the same version again with other values.
INSERT INTO memory_records (user_id, latest, tags, id, version, seq, kind, status, key, type, fact_type, tier, session,
    source, content, confidence, created_at, updated_at, valid_from, valid_until, expires_at, extra)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (user_id, id, version) DO UPDATE SET latest = excluded.latest, tags = excluded.tags,
    seq = excluded.seq, kind = excluded.kind, status = excluded.status, key = excluded.key, type = excluded.type,
    fact_type = excluded.fact_type, tier = excluded.tier, session = excluded.session, source = excluded.source,
    content = excluded.content, confidence = excluded.confidence, created_at = excluded.created_at,
    updated_at = excluded.updated_at, valid_from = excluded.valid_from, valid_until = excluded.valid_until,
    expires_at = excluded.expires_at, extra = excluded.extra

-- name: drop_latest
-- Before another version is stored: removes the old row; only `keep` stores a closed copy of it.
DELETE FROM memory_records WHERE user_id = %s AND id = %s AND version <> %s AND latest

-- name: find
-- More conditions and the order are appended by the store from a fixed list.
SELECT id, version, seq, kind, status, key, type, fact_type, tier, session, source, content, confidence,
    created_at, updated_at, valid_from, valid_until, expires_at, extra
FROM memory_records WHERE user_id = %s

-- name: held_at
-- A condition of find: the highest version that held at a moment, unless the record is archived by now.
version = (SELECT max(held.version) FROM memory_records AS held
    WHERE held.user_id = memory_records.user_id AND held.id = memory_records.id AND held.status <> 'archived'
        AND held.valid_from <= %s AND (held.valid_until IS NULL OR held.valid_until > %s))
AND NOT EXISTS (SELECT 1 FROM memory_records AS gone
    WHERE gone.user_id = memory_records.user_id AND gone.id = memory_records.id AND gone.latest AND gone.status = 'archived')

-- name: text_search
-- PostgreSQL's own search: all words, stemmed as English. ts_rank considers only the text itself.
SELECT id, ts_rank(to_tsvector('english', content), wanted) FROM memory_records, plainto_tsquery('english', %s) AS wanted
WHERE user_id = %s AND kind = ANY(%s) AND active = true AND to_tsvector('english', content) @@ wanted
ORDER BY ts_rank(to_tsvector('english', content), wanted) DESC, created_at DESC, id DESC LIMIT %s

-- name: count
SELECT kind, status, count(*) FROM memory_records WHERE user_id = %s AND latest GROUP BY kind, status

-- name: ids_ending
SELECT id FROM memory_records WHERE user_id = %(user_id)s AND latest AND right(id, length(%(ending)s)) = %(ending)s ORDER BY id LIMIT 10

-- name: entries
SELECT seq, at, actor, op, record_id, before, after, reason, source, run, call, undoes, erased
FROM memory_journal WHERE user_id = %s

-- name: sessions
-- Each session by its last message: the one that no other follows.
SELECT ended.session, said.messages, said.began, ended.valid_from
FROM (SELECT session, valid_from FROM memory_records AS one
    WHERE user_id = %(user_id)s AND latest AND kind = 'message' AND status = 'active' AND session IS NOT NULL
        AND created_at <= %(stored)s::timestamptz AND valid_from <= %(ended)s::timestamptz
        AND (valid_from < %(ended)s::timestamptz OR session COLLATE "C" > %(session)s)
        AND NOT EXISTS (SELECT 1 FROM memory_records AS later WHERE later.user_id = one.user_id AND later.latest
            AND later.kind = 'message' AND later.status = 'active' AND later.session = one.session
            AND (later.valid_from, later.id) > (one.valid_from, one.id)
            AND later.created_at <= %(stored)s::timestamptz)
    ORDER BY valid_from DESC, session COLLATE "C" LIMIT %(limit)s OFFSET %(offset)s) AS ended,
    LATERAL (SELECT count(*) AS messages, min(valid_from) AS began FROM memory_records
        WHERE user_id = %(user_id)s AND latest AND kind = 'message' AND status = 'active'
            AND session = ended.session AND created_at <= %(stored)s::timestamptz) AS said
ORDER BY ended.valid_from DESC, ended.session COLLATE "C"

-- name: numbers
-- The rest is appended.
SELECT record_id, min(seq) FROM memory_journal WHERE user_id = %s

-- name: changed
SELECT seq, record_id FROM memory_journal WHERE user_id = %s AND seq > %s ORDER BY seq

-- name: log
INSERT INTO memory_journal (user_id, seq, at, actor, op, record_id, before, after, reason, source, run, call,
    undoes, erased)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: files
SELECT name, fingerprint, seq, previous_fingerprint, previous_seq, boot, versions FROM memory_files WHERE user_id = %s

-- name: set_file
INSERT INTO memory_files (user_id, name, fingerprint, seq, previous_fingerprint, previous_seq, boot, versions)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (user_id, name) DO UPDATE SET fingerprint = excluded.fingerprint, seq = excluded.seq,
    previous_fingerprint = excluded.previous_fingerprint, previous_seq = excluded.previous_seq,
    boot = excluded.boot, versions = excluded.versions

-- name: drop_file
DELETE FROM memory_files WHERE user_id = %s AND name = %s

-- name: tombstones
SELECT hash, record_id, at FROM memory_tombstones WHERE user_id = %s

-- name: bury
INSERT INTO memory_tombstones (user_id, hash, record_id, at) VALUES (%s, %s, %s, %s)
ON CONFLICT (user_id, hash, record_id) DO NOTHING

-- name: recalls
SELECT record_id, at FROM memory_recalls WHERE user_id = %s

-- name: set_recall
INSERT INTO memory_recalls (user_id, record_id, at) VALUES (%s, %s, %s)
ON CONFLICT (user_id, record_id) DO UPDATE SET at = excluded.at

-- name: calls
SELECT id, at, tool, suite, status, outcome, latency_ms, tokens_in, tokens_out, session, agent
FROM memory_calls WHERE user_id = %s

-- name: log_call
-- A call that outlived its time-out is logged again when it ends.
INSERT INTO memory_calls (user_id, id, at, tool, suite, status, outcome, latency_ms, tokens_in, tokens_out, session,
    agent)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (user_id, id) DO UPDATE SET at = excluded.at, tool = excluded.tool, suite = excluded.suite,
    status = excluded.status, outcome = excluded.outcome, latency_ms = excluded.latency_ms,
    tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out, session = excluded.session,
    agent = excluded.agent

-- name: drop_calls
WITH dropped AS (DELETE FROM memory_calls WHERE user_id = %s AND at < %s RETURNING 1) SELECT count(*) FROM dropped

-- name: one_view
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: tally_days
-- For many users at once, like the next four; a condition selects them.
SELECT (at AT TIME ZONE 'UTC')::date::text, count(*) FROM memory_calls
WHERE at >= %(since)s::date::timestamp AT TIME ZONE 'UTC' AND at < (%(until)s::date + 1)::timestamp AT TIME ZONE 'UTC'
    AND {whose}
GROUP BY (at AT TIME ZONE 'UTC')::date

-- name: tally_calls
SELECT (at AT TIME ZONE 'UTC')::date::text, tool, status, outcome, width_bucket(latency_ms, %(bounds)s::float8[]),
    count(*)
FROM memory_calls
WHERE at >= %(since)s::date::timestamp AT TIME ZONE 'UTC' AND at < (%(until)s::date + 1)::timestamp AT TIME ZONE 'UTC'
    AND {whose}
GROUP BY (at AT TIME ZONE 'UTC')::date, 2, 3, 4, 5

-- name: tally_talks
-- Sessions, each on every day it lasted, and the facts written in them.
SELECT day::text, count(*), sum(facts)::bigint
FROM (
    SELECT (at AT TIME ZONE 'UTC')::date AS day,
        count(*) FILTER (WHERE outcome = 'written' AND tool = ANY(%(tools)s)) AS facts
    FROM memory_calls
    WHERE session IS NOT NULL AND at >= %(since)s::date::timestamp AT TIME ZONE 'UTC'
        AND at < (%(until)s::date + 1)::timestamp AT TIME ZONE 'UTC' AND {whose}
    GROUP BY user_id, session, 1
) AS talks
GROUP BY 1

-- name: tally_episodes
SELECT (created_at AT TIME ZONE 'UTC')::date::text, count(*) FROM memory_records
WHERE latest AND kind = 'episode' AND created_at >= %(since)s::date::timestamp AT TIME ZONE 'UTC'
    AND created_at < (%(until)s::date + 1)::timestamp AT TIME ZONE 'UTC' AND {whose}
GROUP BY 1

-- name: tally_users
SELECT count(*) FROM (SELECT id AS user_id FROM memory_users) AS users WHERE {whose}

-- name: of_tenant
-- A condition of the above: a tenant's ids lie between two others.
user_id COLLATE "C" >= %(first)s AND user_id COLLATE "C" < %(beyond)s

-- name: of_no_tenant
(user_id COLLATE "C" < '@' OR user_id COLLATE "C" >= 'A' OR user_id !~ '^@[a-z0-9][a-z0-9-]{{0,31}}/')

-- name: of_everyone
true

-- name: spending
SELECT day::text, operation, calls, tokens_in, tokens_out, cost FROM memory_spending WHERE user_id = %s

-- name: charge
INSERT INTO memory_spending (user_id, day, operation, calls, tokens_in, tokens_out, cost)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (user_id, day, operation) DO UPDATE SET calls = memory_spending.calls + excluded.calls,
    tokens_in = memory_spending.tokens_in + excluded.tokens_in,
    tokens_out = memory_spending.tokens_out + excluded.tokens_out, cost = memory_spending.cost + excluded.cost

-- name: consents
SELECT name, at FROM memory_consents WHERE user_id = %s ORDER BY name

-- name: give_consent
INSERT INTO memory_consents (user_id, name, at) VALUES (%s, %s, %s)
ON CONFLICT (user_id, name) DO UPDATE SET at = excluded.at

-- name: withdraw_consent
DELETE FROM memory_consents WHERE user_id = %s AND name = %s

-- name: interactions
SELECT id, at, kind, item, title, value, topics, text, session, metadata, reported_at FROM memory_interactions
WHERE user_id = %s

-- name: last_reported
SELECT max(reported_at) FROM memory_interactions WHERE user_id = %s

-- name: put_interaction
-- Something reported twice stays as first reported.
INSERT INTO memory_interactions (user_id, id, at, kind, item, title, value, topics, text, session, metadata,
    reported_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (user_id, id) DO NOTHING

-- name: drop_interactions
WITH dropped AS (DELETE FROM memory_interactions WHERE user_id = %s AND at < %s RETURNING 1)
SELECT count(*) FROM dropped

-- name: runs
-- An application may have left out what its table does not demand.
SELECT id, run_date::text, coalesce(interactions_processed, 0), coalesce(memories_written, 0),
    coalesce(memories_updated, 0), coalesce(tokens_used, 0), duration_ms, coalesce(status, 'pending'), error_message,
    coalesce(created_at, run_date::timestamptz), kind, tier, details
FROM memory_runs WHERE user_id = %s

-- name: drop_run
-- Before one is stored: removes those with its id, or its day and kind.
DELETE FROM memory_runs WHERE user_id = %s AND (id = %s OR (run_date = %s AND kind = %s))

-- name: put_run
INSERT INTO memory_runs (user_id, id, run_date, interactions_processed, memories_written,
    memories_updated, tokens_used, duration_ms, status, error_message, created_at, kind, tier, details)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)

-- name: drop_runs
WITH dropped AS (DELETE FROM memory_runs WHERE user_id = %s RETURNING 1) SELECT count(*) FROM dropped

-- name: set_last_extracted
-- When the last completed run ended.
WITH ended AS (
    SELECT max(created_at + coalesce(duration_ms, 0) * interval '1 millisecond') AS last FROM memory_runs
    WHERE user_id = %(user_id)s AND status = 'completed')
UPDATE users SET memory_last_extracted_at = ended.last FROM ended, memory_users
WHERE memory_users.id = %(user_id)s AND users.id = memory_users.account

-- name: vectors
SELECT number, record_id, version, data FROM memory_vectors
WHERE user_id = %s AND number > %s AND embedder = %s ORDER BY number LIMIT %s

-- name: last_vector
SELECT last FROM memory_embedders WHERE user_id = %s AND name = %s

-- name: unembedded
-- A condition of find.
NOT EXISTS (SELECT 1 FROM memory_vectors WHERE memory_vectors.user_id = memory_records.user_id
    AND memory_vectors.record_id = memory_records.id AND memory_vectors.version = memory_records.version
    AND memory_vectors.embedder = %s)

-- name: last_number
-- Of all embedders of the user.
SELECT coalesce(max(last), 0) FROM memory_embedders WHERE user_id = %s

-- name: set_embedder
INSERT INTO memory_embedders (user_id, name, last) VALUES (%s, %s, %s)
ON CONFLICT (user_id, name) DO UPDATE SET last = excluded.last

-- name: put_vector
-- Unless the record was erased meanwhile.
INSERT INTO memory_vectors (user_id, embedder, number, record_id, version, data)
SELECT one.* FROM (SELECT %s::text, %s::text, %s::bigint, %s::text, %s::bigint, %s::bytea)
    AS one (user_id, embedder, number, record_id, version, data)
WHERE EXISTS (SELECT 1 FROM memory_records WHERE memory_records.user_id = one.user_id AND memory_records.id = one.record_id)
ON CONFLICT (user_id, record_id, embedder) DO UPDATE SET number = excluded.number, version = excluded.version,
    data = excluded.data

-- name: drop_vectors
-- Without a name to keep, all of them.
WITH dropped AS (DELETE FROM memory_vectors WHERE user_id = %s AND embedder IS DISTINCT FROM %s RETURNING 1)
SELECT count(*) FROM dropped

-- name: erase
-- Records with all versions, vectors and recalls. The journal keeps who, when and which record, but no content.
WITH erased_records AS (
        DELETE FROM memory_records WHERE user_id = %(user_id)s AND id = ANY(%(ids)s) RETURNING 1),
    erased_recalls AS (
        DELETE FROM memory_recalls WHERE user_id = %(user_id)s AND record_id = ANY(%(ids)s) RETURNING 1),
    erased_vectors AS (
        DELETE FROM memory_vectors WHERE user_id = %(user_id)s AND record_id = ANY(%(ids)s)),
    erased_journal AS (
        UPDATE memory_journal SET before = NULL, after = NULL, reason = NULL, source = NULL, call = NULL,
            erased = true
        WHERE user_id = %(user_id)s AND record_id = ANY(%(ids)s) AND (NOT erased OR before IS NOT NULL
            OR after IS NOT NULL OR reason IS NOT NULL OR source IS NOT NULL) RETURNING 1)
SELECT (SELECT count(*) FROM erased_records), (SELECT count(*) FROM erased_journal)

-- name: redact
UPDATE memory_journal SET before = %s, after = %s, reason = %s, source = %s, erased = true
WHERE user_id = %s AND seq = %s

-- name: drop_version
WITH dropped AS (DELETE FROM memory_records WHERE user_id = %s AND id = %s AND version = %s AND NOT latest RETURNING 1)
SELECT count(*) FROM dropped

-- name: erase_vectors
DELETE FROM memory_vectors WHERE user_id = %s AND record_id = ANY(%s)

-- name: erase_calls
WITH dropped AS (DELETE FROM memory_calls WHERE user_id = %s AND id = ANY(%s) RETURNING 1) SELECT count(*) FROM dropped

-- name: erase_interactions
WITH dropped AS (DELETE FROM memory_interactions WHERE user_id = %s AND id = ANY(%s) RETURNING 1)
SELECT count(*) FROM dropped

-- name: check
-- Checks what the keys and constraints of the tables cannot rule out.
SELECT 'record ' || id || ': no version is marked as the latest' FROM memory_records WHERE user_id = %(user_id)s
GROUP BY id HAVING NOT bool_or(latest)
UNION ALL
SELECT 'record ' || id || ': several versions are marked as the latest' FROM memory_records
WHERE user_id = %(user_id)s AND latest GROUP BY id HAVING count(*) > 1
UNION ALL
SELECT 'journal: entry ' || max(seq) || ' is beyond the last sequence number' FROM memory_journal
WHERE user_id = %(user_id)s HAVING max(seq) > (SELECT coalesce(max(memory_seq), 0) FROM memory_users WHERE id = %(user_id)s)
UNION ALL
SELECT 'record ' || id || ': changed at ' || seq || ', beyond the last sequence number' FROM memory_records
WHERE user_id = %(user_id)s AND seq > (SELECT coalesce(max(memory_seq), 0) FROM memory_users WHERE id = %(user_id)s)
LIMIT 20

-- name: kept_words
SELECT life, seq, complete, records, passages, words FROM memory_large WHERE user_id = %s

-- name: begin_words
INSERT INTO memory_large (user_id, life) VALUES (%s, %s)

-- name: end_words
-- Everything stored of a user's words.
WITH dropped_words AS (DELETE FROM memory_words WHERE user_id = %(user_id)s),
    dropped_terms AS (DELETE FROM memory_terms WHERE user_id = %(user_id)s)
DELETE FROM memory_large WHERE user_id = %(user_id)s

-- name: drop_words
-- The words of some records, with what they add to the statistics.
WITH dropped AS (
        DELETE FROM memory_words WHERE user_id = %(user_id)s AND record_id = ANY(%(ids)s)
        RETURNING terms, length, passage, status = 'active' AS counted),
    fewer AS (
        SELECT term, count(*) AS number FROM dropped, unnest(tsvector_to_array(terms)) AS term
        WHERE counted GROUP BY term),
    less AS (
        UPDATE memory_terms SET passages = passages - number FROM fewer
        WHERE user_id = %(user_id)s AND memory_terms.term = fewer.term),
    sums AS (
        SELECT count(*) FILTER (WHERE passage = 0) AS records, count(*) FILTER (WHERE counted) AS passages,
            coalesce(sum(length) FILTER (WHERE counted), 0) AS words FROM dropped)
UPDATE memory_large SET records = memory_large.records - sums.records,
    passages = memory_large.passages - sums.passages, words = memory_large.words - sums.words
FROM sums WHERE user_id = %(user_id)s AND sums.records > 0 RETURNING (SELECT count(*) FROM dropped)

-- name: drop_unused_terms
DELETE FROM memory_terms WHERE user_id = %s AND passages <= 0

-- name: put_words
INSERT INTO memory_words (user_id, record_id, passage, begins, length, kind, status, speaker, valid_from, expires_at,
    asks, tells_when, event_from, event_until, terms, counts)
SELECT %s, record_id, passage, begins, length, kind, status, speaker, valid_from, expires_at,
    asks, tells_when, event_from, event_until, terms::tsvector, counts
FROM unnest(%s::text[], %s::int[], %s::int[], %s::int[], %s::text[], %s::text[], %s::text[], %s::timestamptz[],
    %s::timestamptz[], %s::bool[], %s::bool[], %s::timestamptz[], %s::timestamptz[], %s::text[], %s::bytea[])
    AS one (record_id, passage, begins, length, kind, status, speaker, valid_from, expires_at,
        asks, tells_when, event_from, event_until, terms, counts)

-- name: add_terms
INSERT INTO memory_terms (user_id, term, passages) SELECT %s, term, number
FROM unnest(%s::text[], %s::bigint[]) AS one (term, number)
ON CONFLICT (user_id, term) DO UPDATE SET passages = memory_terms.passages + excluded.passages

-- name: set_words
UPDATE memory_large SET seq = %(seq)s, complete = %(complete)s, records = records + %(records)s,
    passages = passages + %(passages)s, words = words + %(words)s
WHERE user_id = %(user_id)s

-- name: frequencies
SELECT term, passages FROM memory_terms WHERE user_id = %s AND term = ANY(%s)

-- name: counted_words
SELECT tsvector_to_array(terms), length FROM memory_words WHERE user_id = %s AND record_id = ANY(%s)
    AND status = 'active'

-- name: speakers
-- From each name to the next in the index, without reading the rows in between.
WITH RECURSIVE names AS (
    SELECT min(speaker) AS name FROM memory_words WHERE user_id = %(user_id)s AND speaker IS NOT NULL
    UNION ALL
    SELECT (SELECT min(speaker) FROM memory_words WHERE user_id = %(user_id)s AND speaker > names.name)
    FROM names WHERE names.name IS NOT NULL)
SELECT name FROM names WHERE name IS NOT NULL

-- name: plan_search
-- For the rest of a transaction. Guesses of how many rows have a word are often wrong: go by the indexes, think of the
-- words at hand, and spend no time on preparations that only a long statement pays back.
SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)

-- name: worded
SELECT memory_records.id, version, seq, memory_records.kind, memory_records.status, key, type, fact_type, tier, session, source, '', confidence,
    created_at, updated_at, memory_records.valid_from, valid_until, memory_records.expires_at, extra,
    passage, begins, length, counts, asks, tells_when, event_from, event_until
FROM memory_records, memory_words
WHERE memory_records.user_id = %s AND memory_words.user_id = memory_records.user_id AND record_id = memory_records.id
    AND memory_records.id = ANY(%s) AND latest ORDER BY memory_records.id, passage

-- name: words_and_records
-- Replaces memory_words where the conditions are on the records.
(SELECT memory_words.user_id, record_id, passage, length, speaker, event_from, event_until, terms, memory_records.kind,
    memory_records.status, type, fact_type, tier, session, source, tags, extra, memory_records.valid_from, memory_records.expires_at
FROM memory_records, memory_words
WHERE memory_words.user_id = memory_records.user_id AND record_id = memory_records.id AND latest) AS words

-- name: said_first_and_last
-- The first and the last of each kind: the others are in between.
SELECT said.record_id FROM unnest(%(kinds)s::text[]) AS sort,
    LATERAL ((SELECT record_id FROM memory_words WHERE user_id = %(user_id)s AND kind = sort AND passage = 0
        ORDER BY valid_from LIMIT 1)
    UNION ALL (SELECT record_id FROM memory_words WHERE user_id = %(user_id)s AND kind = sort AND passage = 0
        ORDER BY valid_from DESC LIMIT 1)) AS said

-- name: neighbours
-- For messages: the one said right before, and the one right after.
SELECT id,
    (SELECT id FROM memory_records WHERE user_id = asked.user_id AND latest AND session = asked.session
        AND kind = 'message' AND status = 'active' AND (valid_from, id) < (asked.valid_from, asked.id)
        ORDER BY valid_from DESC, id DESC LIMIT 1),
    (SELECT id FROM memory_records WHERE user_id = asked.user_id AND latest AND session = asked.session
        AND kind = 'message' AND status = 'active' AND (valid_from, id) > (asked.valid_from, asked.id)
        ORDER BY valid_from, id LIMIT 1)
FROM memory_records AS asked WHERE user_id = %s AND id = ANY(%s) AND latest AND kind = 'message' AND status = 'active'
    AND session IS NOT NULL

-- name: vectors_of
SELECT number, record_id, version, data FROM memory_vectors
WHERE user_id = %s AND embedder = %s AND record_id = ANY(%s)

-- name: vectors_numbered
SELECT number, record_id, version, data FROM memory_vectors
WHERE user_id = %s AND embedder = %s AND number = ANY(%s)

-- name: nearest
-- Begins a statement: a user's vectors, and in how many signs each differs from another one.
WITH kept AS (
        SELECT record_id, signs FROM memory_meanings WHERE user_id = %s AND embedder = %s AND bit_length(signs) = %s),
    near AS (
        SELECT record_id, bit_count(signs # %s::varbit) AS apart FROM kept

-- name: spoken_by
EXISTS (SELECT 1 FROM memory_words WHERE memory_words.user_id = memory_records.user_id AND memory_words.record_id = memory_records.id
    AND speaker = ANY(%s))

-- name: last_meaning
SELECT coalesce(max(number), 0) FROM memory_meanings WHERE user_id = %s AND embedder = %s

-- name: new_meanings
-- Vectors of this size that are not included yet; those of another model under the same name are skipped.
SELECT number, record_id, data FROM memory_vectors
WHERE user_id = %s AND embedder = %s AND number > %s AND octet_length(data) = %s ORDER BY number LIMIT %s

-- name: put_meanings
INSERT INTO memory_meanings (user_id, embedder, record_id, number, signs) SELECT %s, %s, record_id, number, signs::varbit
FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS one (record_id, number, signs)
ON CONFLICT (user_id, record_id, embedder) DO UPDATE SET number = excluded.number, signs = excluded.signs
