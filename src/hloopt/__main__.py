"""The console script, and `python -m hloopt`.

Kept apart from `cli` because starting up is felt in every one-liner: what needs no command line
is answered before click is imported.
"""

from __future__ import annotations

import os
import sys

from hloopt import __version__


def main() -> int:
    """Run the command line of this process, and end it with its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"hloopt {__version__}")
        return 0
    import gc

    gc.set_threshold(100_000)  # a module is made of many objects, and nearly all of them stay
    from hloopt.cli import main as run

    exit_code = run()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(exit_code)  # else a module of a million objects would be taken apart first


if __name__ == "__main__":
    sys.exit(main())
