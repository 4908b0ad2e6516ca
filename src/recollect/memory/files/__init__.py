"""The files a person edits, MEMORY.md and the daily notes, kept in step with the records."""
