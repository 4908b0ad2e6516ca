"""Looking for a word in text that also carries ids: an id may spell any short word inside itself."""

import re


def mentions(text: str, word: str) -> bool:
    """Return whether the text has the word as a word of its own."""
    return re.search(rf"\b{re.escape(word)}\b", text) is not None
