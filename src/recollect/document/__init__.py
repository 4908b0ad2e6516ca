"""The files a person reads and edits: MEMORY.md and the daily notes, as text.

Knows no database, no file system and no policy.
"""
