"""Whether two statements say the same: `comparison` decides, the other modules prepare the words."""
