-- The versions of a file that somebody may have open in an editor, as sequence numbers in JSON.

ALTER TABLE files ADD COLUMN versions TEXT NOT NULL DEFAULT '[]';
