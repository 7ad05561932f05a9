"""The files that work has read, with digests of what was in them: so its result can be kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ReadLog:
    """Digests of files by path, as they were when they were read."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.is_steady = True
        """Whether each file was the same each time it was read."""
        self.is_open = True

    def close(self) -> None:
        """Note no more."""
        self.is_open = False

    def note(self, path: str, data: bytes) -> None:
        """Note that a file was read. O(bytes) where the log is open."""
        if self.is_open:
            from hashlib import sha256  # loads OpenSSL, which nearly no run needs

            digest = sha256(data).hexdigest()
            if self.digests.setdefault(path, digest) != digest:
                self.is_steady = False


_log: ContextVar[ReadLog | None] = ContextVar("read_log", default=None)


def note_read(path: str, data: bytes) -> None:
    """Note that a file was read, if anybody keeps a log.

    Whoever reads a file that a user names for a report calls this: modules, targets, tables,
    settings. hloopt's own files are part of its version.
    """
    if (log := _log.get()) is not None:
        log.note(path, data)


@contextmanager
def noting_reads() -> Iterator[ReadLog]:
    """A log of the files that are read meanwhile, in this thread."""
    log = ReadLog()
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)
