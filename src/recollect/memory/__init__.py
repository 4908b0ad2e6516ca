"""The core: one write path and one read path. Everything else in Recollect calls them."""
