"""The web console in a real browser, served by the real server."""
