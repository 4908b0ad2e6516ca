-- Every statement about identities and links, for both databases; :name is a value.

-- name: resolve
-- An identity's own user id, or the one it was bound to, and from there the user its memory was joined with: until an
-- unlinking has restored the memory.
WITH RECURSIVE home (user_id, steps) AS (
    SELECT coalesce((SELECT user_id FROM memory_identities WHERE channel = :channel AND name = :name), :own), 0
    UNION ALL
    SELECT memory_links.survivor, home.steps + 1 FROM home
        JOIN memory_links ON memory_links.joined = home.user_id
            AND memory_links.state IN ('joining', 'joined', 'unlinking')
    WHERE home.steps < 1000)
SELECT user_id FROM home ORDER BY steps DESC LIMIT 1

-- name: bound
SELECT user_id FROM memory_identities WHERE channel = :channel AND name = :name

-- name: bind
INSERT INTO memory_identities (channel, name, user_id) VALUES (:channel, :name, :user_id)
ON CONFLICT (channel, name) DO UPDATE SET user_id = excluded.user_id

-- name: identities
-- Everyone who was bound, or takes part in a link.
SELECT channel, name FROM memory_identities
UNION SELECT shown_channel, shown_name FROM memory_links WHERE state IN ('joining', 'joined', 'unlinking')
UNION SELECT entered_channel, entered_name FROM memory_links WHERE state IN ('joining', 'joined', 'unlinking')
ORDER BY 1, 2

-- name: show
INSERT INTO memory_links (id, code, state, made_at, until, shown_channel, shown_name, shown_user)
VALUES (:id, :code, 'shown', :now, :until, :channel, :name, :user_id)

-- name: link
SELECT {columns} FROM memory_links WHERE id = :id

-- name: of_code
-- The latest link that had this code.
SELECT {columns} FROM memory_links WHERE code = :code ORDER BY made_at DESC, id DESC LIMIT 1

-- name: enter
-- Only while the code is valid: if two enter it at once, one succeeds.
UPDATE memory_links SET state = 'entered', until = :until, entered_channel = :channel, entered_name = :name,
    entered_user = :user_id
WHERE id = :id AND state = 'shown' AND until > :now

-- name: open
-- The open links of an identity: confirmed by both sides but not complete, or still to be confirmed.
SELECT {columns} FROM memory_links
WHERE ((shown_channel = :channel AND shown_name = :name) OR (entered_channel = :channel AND entered_name = :name))
    AND (state = 'joining' OR (state = 'entered' AND until > :now))
ORDER BY state DESC, made_at DESC, id DESC LIMIT 1

-- name: shown
SELECT {columns} FROM memory_links
WHERE shown_channel = :channel AND shown_name = :name AND state = 'shown' AND until > :now
ORDER BY made_at DESC, id DESC LIMIT 1

-- name: close_open
-- Close the codes and unconfirmed links of an identity: they are replaced or declined.
UPDATE memory_links SET state = :state
WHERE ((shown_channel = :channel AND shown_name = :name) OR (entered_channel = :channel AND entered_name = :name))
    AND state IN ('shown', 'entered')

-- name: agree_shown
UPDATE memory_links SET shown_ok = 1 WHERE id = :id AND state = 'entered'

-- name: agree_entered
UPDATE memory_links SET entered_ok = 1 WHERE id = :id AND state = 'entered'

-- name: begin_joining
UPDATE memory_links SET state = 'joining', survivor = :survivor, joined = :joined WHERE id = :id AND state = 'entered'

-- name: unfinished
-- Links begun by a process that was stopped, to be completed.
SELECT {columns} FROM memory_links WHERE state IN ('joining', 'unlinking', 'restored') ORDER BY made_at, id

-- name: touching
-- Joinings and unlinkings in progress with one of these users.
SELECT {columns} FROM memory_links
WHERE state IN ('joining', 'unlinking', 'restored') AND (survivor IN (:one, :other) OR joined IN (:one, :other)) AND id <> :id
ORDER BY made_at, id

-- name: begin_merging
UPDATE memory_links SET secret = :secret, details = :details WHERE id = :id AND state = 'joining' AND merged = 0

-- name: keep_copy
-- Unless something was erased since: then nothing may be kept.
UPDATE memory_links SET copy = :copy WHERE id = :id AND state = 'joining' AND merged = 0 AND undoable = 1

-- name: set_merged
UPDATE memory_links SET merged = :merged WHERE id = :id AND state = 'joining'

-- name: set_details
UPDATE memory_links SET details = :details WHERE id = :id

-- name: set_joined
UPDATE memory_links SET state = 'joined', until = :until WHERE id = :id AND state = 'joining' AND merged = 1

-- name: joins
-- The link by which a user's memory became a part of another.
SELECT {columns} FROM memory_links WHERE joined = :user_id AND state IN ('joining', 'joined', 'unlinking', 'restored')
ORDER BY made_at DESC, id DESC LIMIT 1

-- name: joined_to
SELECT {columns} FROM memory_links
WHERE survivor = :user_id AND state IN ('joining', 'joined', 'unlinking') ORDER BY made_at, id

-- name: below
-- All links whose memories were joined, directly or not, with a user.
WITH RECURSIVE below (user_id) AS (
    SELECT CAST(:user_id AS TEXT)
    UNION
    SELECT memory_links.joined FROM below
        JOIN memory_links ON memory_links.survivor = below.user_id
            AND memory_links.state IN ('joining', 'joined', 'unlinking'))
SELECT {columns} FROM memory_links
WHERE state IN ('joining', 'joined', 'unlinking') AND survivor IN (SELECT user_id FROM below) ORDER BY made_at, id

-- name: unlinkings
-- Unlinkings of one of the two users that are not complete.
SELECT {columns} FROM memory_links
WHERE state IN ('unlinking', 'restored') AND (survivor = :user_id OR joined = :user_id) ORDER BY made_at, id

-- name: copy
SELECT copy FROM memory_links WHERE id = :id

-- name: make_final
-- Afterwards nothing can be restored.
UPDATE memory_links SET copy = NULL, undoable = 0 WHERE id = :id

-- name: begin_unlinking
UPDATE memory_links SET state = 'unlinking' WHERE id = :id AND state = 'joined' AND undoable = 1

-- name: call_off
-- The joined user is erased: what they brought is removed, and nothing is restored. The copy tells until then what they had.
UPDATE memory_links SET state = 'restored', details = :details, undoable = 0 WHERE id = :id AND state IN ('joining', 'joined')

-- name: set_restored
-- From here on the joined user has a memory again, and the copy is no longer needed.
UPDATE memory_links SET state = 'restored', copy = NULL, undoable = 0 WHERE id = :id AND state = 'unlinking'

-- name: set_unlinked
UPDATE memory_links SET state = 'unlinked', copy = NULL, undoable = 0, secret = '', details = '{{}}'
WHERE id = :id AND state = 'restored'

-- name: outlived
-- Joinings that are too old to be undone.
SELECT id FROM memory_links WHERE state = 'joined' AND undoable = 1 AND until <= :now

-- name: untidy
-- Whether `outlived`, `tidy_links` or `tidy_failures` would find something; upkeep asks for every user.
SELECT 1 FROM memory_links WHERE state = 'joined' AND undoable = 1 AND until <= :now
UNION ALL SELECT 1 FROM memory_links
WHERE state IN ('shown', 'entered', 'replaced', 'declined', 'unlinked') AND until <= :links_before
UNION ALL SELECT 1 FROM memory_link_failures WHERE at <= :failures_before
LIMIT 1

-- name: tidy_links
-- Old codes; until then, entering one explains what became of it.
DELETE FROM memory_links WHERE state IN ('shown', 'entered', 'replaced', 'declined', 'unlinked') AND until <= :before

-- name: links_of
SELECT {columns} FROM memory_links
WHERE survivor = :user_id OR joined = :user_id OR shown_user = :user_id OR entered_user = :user_id

-- name: drop_link
DELETE FROM memory_links WHERE id = :id

-- name: unbind
DELETE FROM memory_identities WHERE user_id = :user_id

-- name: bury_user
INSERT INTO memory_erased_users (who, at) VALUES (:who, :at) ON CONFLICT (who) DO UPDATE SET at = excluded.at

-- name: erased_user
SELECT at FROM memory_erased_users WHERE who = :who

-- name: fail
INSERT INTO memory_link_failures (who, at) VALUES (:who, :now)

-- name: failures_of
SELECT at FROM memory_link_failures WHERE who = :who AND at > :since ORDER BY at DESC LIMIT :most

-- name: tidy_failures
DELETE FROM memory_link_failures WHERE at <= :before

-- name: salt
SELECT salt FROM memory_link_salt LIMIT 1

-- name: set_salt
INSERT INTO memory_link_salt (salt) VALUES (:salt)
