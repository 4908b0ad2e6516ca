"""Finding what fits a question: the user's own index of words. Knows no database; takes records and a path."""
