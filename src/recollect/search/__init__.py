"""Search over a user's own index of words. Takes records and a path, no database."""
