"""The console script, and `python -m hloopt`.

Kept apart from `cli` because starting up is felt in every one-liner: what needs no command line
is answered before click is imported.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hloopt import __version__


def main() -> int:
    """Run the command line of this process, and end it with its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]) and _show_version():
        return 0
    import gc

    gc.set_threshold(100_000)  # a module is made of many objects, and nearly all of them stay
    with _ended_by_interrupts():
        from hloopt.cli import main as run

    exit_code = run()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(exit_code)  # else a module of a million objects would be taken apart first


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Ctrl-C ends the process at once: imports would show its traceback, or swallow it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler:  # a shell's background job ignores it
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    yield
    signal.signal(signal.SIGINT, handler)


def _show_version() -> bool:
    """Print the version; if that fails, the command line is to say so."""
    try:
        print(f"hloopt {__version__}", flush=True)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
