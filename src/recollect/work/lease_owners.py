"""Owners of leases: a process on a machine, named so that others on the same machine see when it has ended.

A process id is reused after a while, and means something else in every container; so the name includes the boot of the
machine, the pid namespace, the id, and the start time of the process. Where the system does not provide these, no
process is ever considered dead, and leases expire.
"""

from __future__ import annotations

import itertools
import os
import secrets
from pathlib import Path

_count = itertools.count(1)


def new_owner() -> str:
    """Return a unique name for a worker of this process."""
    pid = os.getpid()
    return f"{_machine()} {pid} {_began(pid) or 0} {next(_count)} {secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """Return True if the process of this owner has certainly ended."""
    parts = owner.split(" ")
    if len(parts) != 5 or parts[0] != _machine() or parts[0] == "unknown":
        return False
    pid, began = int(parts[1]), int(parts[2])
    if not began:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it lives, and belongs to another user
    now = _began(pid)
    return now is not None and now != began


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return "unknown"


def _began(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot; 0 if it is a zombie, None if unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()  # the name before it may contain anything
    return 0 if state in ("Z", "X") else int(rest[18])
