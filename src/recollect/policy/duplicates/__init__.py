"""Comparison of statements: `comparison` decides, the other modules prepare the words."""
