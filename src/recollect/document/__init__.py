"""The text of the files a person reads and edits: MEMORY.md and the daily notes."""
