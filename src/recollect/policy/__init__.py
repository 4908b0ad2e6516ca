"""The policy: checks of a text before it becomes a memory.

Each module does one of them by rules alone: duplicates, code, secrets.
"""
