"""The console script, and `python -m hloopt`.

Kept apart from `cli` because starting up is felt in every one-liner: what needs no command line
is answered before click is imported, or anything else that Python has not imported by itself.
"""

from __future__ import annotations

import os
import sys

from hloopt import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def main() -> int:
    """Run the command line of this process, and end it with its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]) and _show_version():
        return 0
    run_to_the_end("main")


def run_to_the_end(name: str) -> NoReturn:
    """Run a command line, a function of `hloopt.cli`, and end the process with its exit code."""
    import gc

    gc.set_threshold(100_000)  # a module is made of many objects, and nearly all of them stay
    exit_code = _command_line(name)()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(exit_code)  # else a module of a million objects would be taken apart first


def _command_line(name: str) -> Callable[[], int]:
    """A command line, imported.

    Ctrl-C ends the process at once meanwhile: imports would show its traceback, or swallow it.
    """
    import signal

    interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts:  # a shell's background job ignores it
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from hloopt import cli

    if interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run: Callable[[], int] = getattr(cli, name)
    return run


def _show_version() -> bool:
    """Print the version; if that fails, the command line is to say so."""
    try:
        print(f"hloopt {__version__}", flush=True)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
