"""Everything Recollect can raise, named by who must act.

::

    RecollectError
    ├── InvalidInputError      the caller: an argument is wrong; names the field and what is allowed
    ├── NotFoundError          the caller: no such record, key, entry, run or user
    ├── AmbiguousError         the caller: several records match; use an id
    ├── QueueFullError         the caller: too many jobs are waiting; try again later
    ├── UndoError              the caller: this change can no longer be undone, and why
    ├── LinkError              the person: two channels cannot be linked; its kind says why
    ├── NothingToRebuildError  the caller: the database is intact
    ├── DocumentError          the person: a file they edited cannot be read; it is left as it is
    ├── ConfigError            the operator: a setting is wrong; names the variable
    ├── MissingExtraError      the operator: an optional package is not installed; names the extra
    ├── EmbedderError          the operator: the embedder failed; search continues with words alone
    ├── ModelError             the operator: the model failed; its kind says how; rules continue without it
    └── StoreError             the operator: the storage failed; nothing was half-written
        ├── StoreBusyError         another process holds the lock too long; try again
        ├── StoreReadOnlyError     the folder or database cannot be written to
        ├── StoreFullError         the disk or quota is full
        ├── StoreUnavailableError  the database cannot be reached; try again
        └── StoreCorruptError      the stored data is damaged; run ``recollect rebuild``

The docstring of an error is its default message, which people see. Policy decisions (a duplicate, a secret, a pause)
are outcomes, not errors; see ``recollect.records``.
"""

from __future__ import annotations

import errno
import os
from datetime import datetime
from pathlib import Path


class RecollectError(Exception):
    """Something went wrong in Recollect."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class InvalidInputError(RecollectError):
    """An argument is not valid."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        super().__init__(f"{field}: {problem}")


class NotFoundError(RecollectError):
    """This record does not exist."""


class AmbiguousError(RecollectError):
    """Several records match; use the id of one."""


class QueueFullError(RecollectError):
    """The queue is full; nothing was added. Try again later, or raise MEMORY_TOOL_QUEUE_SIZE."""


class UndoError(RecollectError):
    """This change can no longer be undone."""


class LinkError(RecollectError):
    """These two channels cannot be linked.

    ``kind`` says why: ``wrong``, ``expired`` or ``used`` (the code), ``own`` (the code is from this channel),
    ``joined`` (they are already linked), ``limited`` (too many wrong codes; retry at ``retry_at``), ``nothing`` (no
    link is pending, or there is none), ``paused`` (memory is off) or ``final`` (it can no longer be undone). The
    message reveals nothing about anyone else.
    """

    def __init__(self, kind: str, message: str, *, retry_at: datetime | None = None) -> None:
        self.kind = kind
        self.retry_at = retry_at
        super().__init__(message)


class NothingToRebuildError(RecollectError):
    """The database is intact, so there is nothing to rebuild; pass force=True to rebuild it anyway."""


class DocumentError(RecollectError):
    """The file cannot be read; it was left unchanged."""


class ConfigError(RecollectError):
    """A setting is not valid."""


class MissingExtraError(RecollectError):
    """An optional package is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        self.extra = extra
        super().__init__(f"{needed_for} requires an optional package: pip install 'recollect[{extra}]'")


class EmbedderError(RecollectError):
    """The embedder failed; search continues with words alone. Check that its server runs and has the model."""


class ModelError(RecollectError):
    """The model failed; what works by rules continues without it.

    ``kind`` says how: ``unavailable`` (down, overloaded, disconnected), ``timeout``, ``rate_limited``, ``rejected`` (a
    wrong key, an unknown model, an unsupported request), ``garbage`` (an unusable response), ``refused`` (a filter of
    the provider) or ``budget`` (it was not called). ``form`` is True if the model may accept the same request in
    another form, such as without tools. The message contains nothing of what was said.
    """

    def __init__(self, kind: str, message: str, *, tokens_in: int = 0, tokens_out: int = 0, form: bool = False) -> None:
        self.kind, self.form = kind, form
        self.tokens_in, self.tokens_out = tokens_in, tokens_out
        super().__init__(message)


class StoreError(RecollectError):
    """The storage failed; nothing was left half written."""


class StoreBusyError(StoreError):
    """Another process has been writing to this memory for too long; try again."""


class StoreReadOnlyError(StoreError):
    """This memory cannot be written to: its folder or database is read-only."""


class StoreFullError(StoreError):
    """The disk is full; nothing was written. Free some space and try again."""


class StoreUnavailableError(StoreError):
    """The database cannot be reached; try again. If this was a write, it may have been done; repeating it is safe."""


class StoreCorruptError(StoreError):
    """The stored data is damaged; run `recollect rebuild`."""


def storage_error(error: OSError, folder: Path) -> StoreError:
    """Return the store error for an error of the file system."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFullError()
    if error.errno in (errno.EACCES, errno.EPERM) and folder.exists() and not os.access(folder, os.R_OK | os.X_OK):
        return StoreError(f"cannot read {folder}: {error.strerror}; check its permissions")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StoreReadOnlyError(f"cannot write to {folder}: {error.strerror}; check its permissions")
    return StoreError(f"cannot use {folder}: {error.strerror or error}; check this folder, or choose another")
