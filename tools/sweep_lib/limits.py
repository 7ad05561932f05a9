"""Processor time and memory that the examination of one input may take. Needs Linux."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sweep_lib.findings import TooSlow


@contextmanager
def clock() -> Iterator[None]:
    """Let `Limits` interrupt what takes too long. In the main thread of a process."""
    before = signal.signal(signal.SIGPROF, _too_slow)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def _too_slow(signum: int, frame: object) -> None:
    raise TooSlow


class Limits:
    """A context that raises TooSlow after `seconds`, and MemoryError beyond `megabytes`.

    `next_step` begins the seconds anew. Contexts cannot be nested.
    """

    def __init__(self, seconds: float, megabytes: int) -> None:
        self.seconds = seconds
        self.megabytes = megabytes

    def __enter__(self) -> None:
        limit = _address_space() + (self.megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        _seconds.append(self.seconds)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        _seconds.pop()
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def next_step() -> None:
    """Give what follows as much time as the limits allow for all, where they are in force.

    For an input that is put to many things, each of which has to be fast.
    """
    if _seconds and signal.getitimer(signal.ITIMER_PROF)[0]:
        signal.setitimer(signal.ITIMER_PROF, _seconds[-1])


_seconds: list[float] = []
"""Of the limits in force."""


def _address_space() -> int:
    """Bytes of address space this process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
