-- Words of users too large to be loaded by each process: derived data, kept only for them, filled in steps and caught
-- up by sequence number. Words are hashed with the user's own secret, so that one index serves everybody and no word
-- of one user meets those of another.

-- life: for which life of the user, and by which rules words were made. seq: everything up to here is in it.
-- complete: the first filling has come to its end.
CREATE TABLE IF NOT EXISTS memory_large (
    user_id TEXT COLLATE "C" PRIMARY KEY REFERENCES users (id),
    life TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL DEFAULT 0,
    complete BOOLEAN NOT NULL DEFAULT false,
    records BIGINT NOT NULL DEFAULT 0,
    passages BIGINT NOT NULL DEFAULT 0,
    words BIGINT NOT NULL DEFAULT 0
);

-- A row for each passage of each record, of whatever status. terms: its words, those it has several times once more
-- with a 2 behind, and with the first passage the marks by which duplicates are found. counts: the words again, with
-- how often each is there, so that no text is read to rank it. kind to expires_at: as in memory, so that most searches
-- need not look there.
CREATE TABLE IF NOT EXISTS memory_words (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    record_id TEXT COLLATE "C" NOT NULL,
    passage INTEGER NOT NULL,
    begins INTEGER NOT NULL,
    length INTEGER NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    speaker TEXT COLLATE "C",
    valid_from TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    asks BOOLEAN NOT NULL,
    tells_when BOOLEAN NOT NULL,
    event_from TIMESTAMPTZ,
    event_until TIMESTAMPTZ,
    terms TSVECTOR NOT NULL,
    counts BYTEA NOT NULL,
    PRIMARY KEY (user_id, record_id, passage)
);

-- What waits to be sorted in is read by every search, so it is kept short.
CREATE INDEX IF NOT EXISTS memory_words_by_term ON memory_words USING GIN (terms) WITH (gin_pending_list_limit = 512);
CREATE INDEX IF NOT EXISTS memory_words_by_speaker ON memory_words (user_id, speaker) WHERE speaker IS NOT NULL;
CREATE INDEX IF NOT EXISTS memory_words_by_time ON memory_words (user_id, kind, valid_from) WHERE passage = 0;
CREATE INDEX IF NOT EXISTS memory_words_by_event ON memory_words (user_id, event_from) WHERE event_from IS NOT NULL;

-- In how many passages that count each word is.
CREATE TABLE IF NOT EXISTS memory_terms (
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    term TEXT COLLATE "C" NOT NULL,
    passages BIGINT NOT NULL,
    PRIMARY KEY (user_id, term)
) WITH (fillfactor = 70);

CREATE INDEX IF NOT EXISTS memory_terms_unused ON memory_terms (user_id) WHERE passages <= 0;

-- In the place of the one by session alone: it also tells what was said right before and after.
CREATE INDEX IF NOT EXISTS memory_by_conversation ON memory (user_id, session, valid_from, id)
    WHERE latest AND session IS NOT NULL;
DROP INDEX IF EXISTS memory_by_session;
