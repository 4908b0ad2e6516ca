"""One write path, one recall path. Everything else in Recollect is a way in or a way out."""
