-- The versions of a file that somebody may have open in an editor, as sequence numbers in JSON.

ALTER TABLE memory_files ADD COLUMN IF NOT EXISTS versions TEXT NOT NULL DEFAULT '[]';
