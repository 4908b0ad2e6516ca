"""Neutralising text from memory: in a prompt, it must not look like anything but data.

`neutral` makes one line of any text: invisible characters are removed, and whatever could open a section, close the
enclosing block, or pass for somebody else's turn is escaped or replaced, visibly, so that it can still be read. It does
not judge the content: "ignore all previous instructions" stays, as the words that somebody stored.
"""

from __future__ import annotations

import re
from functools import lru_cache

_INVISIBLE = (
    "\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f\\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\\ud800-\\udfff"
)
"""Control characters, zero-width ones, direction marks, fillers, tags: visible to a model but not to people."""

_BREAK = r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
_ROLES = r"system|assistant|user|human|developer|tool|function|model|ai|bot|instructions?|prompt"
_FENCED = rf"inst|sys|bos|eos|{_ROLES}|(?:begin|end|start|user|of|the|my|memory|context|profile|\s)*(?:memory|context)"
_LT, _GT, _BAR, _COLON = "<＜﹤", ">＞﹥", "|｜", ":：﹕"

_PLAIN = r"[A-Za-z](?: ?[A-Za-z0-9,.'()/&%?!;])*"  # most of what people write, which needs no care

_compiled = lru_cache(maxsize=16)(re.compile)


def neutral(text: str) -> str:
    """Return the text on one line, with nothing that could be taken for a part of the prompt around it."""
    if _compiled(_PLAIN).fullmatch(text):
        return text
    plain = _compiled(rf"[{_INVISIBLE}]+|(?<=\ufe0f)\ufe0f+").sub("", text)
    # A turn begins where a line, a sentence or a label did; within a sentence it is only a word and a colon.
    plain = _compiled(
        rf"((?:^|{_BREAK}|[.!?;。！？{_COLON}(\[{{\"'*_#>|-])[\s*_#>\"'-]{{0,9}}(?:{_ROLES})[\s*_\"']{{0,9}})(?=[{_COLON}])",
        re.IGNORECASE,
    ).sub(r"\1\\", plain)
    plain = " ".join(plain.split())
    plain = _compiled(r"(?<!\\)#(?=#)|(?<=#)#|(?<!\S)#(?!\S)").sub(r"\\#", plain)
    plain = _compiled(r"([`~])\1{2,}").sub(r"\\\1\1", plain)
    plain = _compiled(r"([-=*+_])\1{2,}").sub(_shorter, plain)
    plain = _without_tags(plain)
    plain = _compiled(rf"(?<!\\)\[(\s*/?\s*(?:{_FENCED})\s*)\]", re.IGNORECASE).sub(r"\\[\1\\]", plain)
    plain = plain.replace("![", "!\\[")
    return _compiled(r"^(?:([-*+>•–—|](?=\s|$)|>)|(\d{1,9})([.)](?=\s|$)))").sub(_unlisted, plain)


def without_markup(text: str) -> str:
    """Return the text with its lines, without invisible characters and what models take for marks of a prompt.

    For answers of tools, which are already separate from the prompt.
    """
    if _compiled(_PLAIN).fullmatch(text):
        return text
    joined = _INVISIBLE.replace("\u200b-\u200f", "\u200b\u200e\u200f")  # joiners are part of Persian and of emoji
    plain = _without_tags(_compiled(f"[{joined}]+").sub("", text))
    return _compiled(rf"(?<!\\)\[(\s*/?\s*(?:{_FENCED})\s*)\]", re.IGNORECASE).sub(r"\\[\1\\]", plain)


def _without_tags(text: str) -> str:
    """Replace the brackets of tags, comments and special tokens: ``</memory>`` becomes ``‹/memory›``."""
    if not _compiled(f"[{_LT}{_GT}]").search(text):
        return text
    tag = rf"[^\W\d]|\s?[/!?{_BAR}]|\s[^\W\d][\w-]*\s?[{_GT}]"
    text = _compiled(rf"[{_LT}]{{2,}}|[{_LT}](?={tag})").sub("‹", text)
    text = _compiled(rf"(‹[^{_LT}{_GT}‹›]*)[{_GT}]+").sub(r"\1›", text)
    return _compiled(rf"(?<=[{_BAR}])[{_GT}]|[{_GT}]{{2,}}").sub("›", text)


def _shorter(run: re.Match[str]) -> str:
    """Shorten a rule to two characters, which separate nothing. Within a word it is part of a name."""
    before, after = run.string[max(run.start() - 1, 0) : run.start()], run.string[run.end() : run.end() + 1]
    return run[0] if before.isalnum() and after.isalnum() else f"\\{run[1] * 2}"


def _unlisted(start: re.Match[str]) -> str:
    return f"\\{start[1]}" if start[1] else f"{start[2]}\\{start[3]}"
