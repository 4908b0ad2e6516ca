"""The policy's refusals, and the masking of secrets in what is stored all the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from recollect.config import TURNED_OFF, Config
from recollect.policy.code import looks_like_code
from recollect.policy.secrets import find_secrets, mask
from recollect.records import Record, Refused

ERASED = "Not stored: the person had this erased. Only they can ask to remember it again."
_SHORT_LABEL = 12


def refusal_if_paused(mode: str, config: Config) -> Refused | None:
    """Return the refusal of anything to be stored while memory is off, or None while it is on."""
    if mode == "incognito":
        return Refused(reason="incognito", message="Not stored: this conversation is incognito.")
    if not config.enabled:
        return Refused(reason="paused", message=f"Not stored: {TURNED_OFF}.")
    if mode == "paused":
        return Refused(reason="paused", message="Not stored: memory is paused. Resume it to store again.")
    return None


def refusal_to_reword(record: Record, changed: Record, *, by_person: bool) -> Refused | None:
    """Return the refusal of other words for a message: what somebody said is not put into their mouth, or None."""
    if record.kind != "message" or by_person or changed.content == record.content:
        return None
    return Refused(reason="message", message="Not changed: it is a message, and only the person can change its words.")


def refusal_of_secret(text: str) -> Refused | None:
    """Return the refusal of a text that holds a secret, without repeating the secret."""
    secrets = find_secrets(text)
    if not secrets:
        return None
    found = f"Not stored: it seems to contain a secret ({secrets[0].kind}). Leave the secret out and try again."
    return Refused(reason="secret", message=found)


@lru_cache(maxsize=256)
def refusal_of_secret_name(session: str) -> Refused | None:
    """Return the refusal of a session whose name holds a secret. Numbers, which may look like a card's, are allowed."""
    kinds = [secret.kind for secret in find_secrets(session) if secret.kind != "card number"]
    if not kinds:
        return None
    told = f"Not stored: the name of the session seems to contain a secret ({kinds[0]}). Choose another name."
    return Refused(reason="secret", message=told)


def mask_session(session: str | None) -> str | None:
    """Return the name of a session with secrets masked, for logs, which are not refused."""
    return mask(session) if session and refusal_of_secret_name(session) else session


def refusal_of_code(text: str) -> Refused | None:
    """Return the refusal of a text that is code."""
    code = looks_like_code(text)
    if not code:
        return None
    return Refused(reason="code", message=f"Not stored: it looks like {code}. Say in plain words what to remember.")


def mask_label(text: str) -> str:
    """Return a source or a reason without secrets; most are too short to hold one."""
    return mask(text) if len(text) > _SHORT_LABEL else text


def mask_data(value: Any) -> Any:
    """Return the same data with the secrets in its texts masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: mask_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_data(item) for item in value]
    return value
