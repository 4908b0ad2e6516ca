"""The in-memory index of one user: postings of words, columns of numbers, and their snapshot on disk."""
