"""Signals that end a process: they unwind it, so that it cleans up."""

from __future__ import annotations

import signal
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """SIGTERM: it passes all that Ctrl-C passes, where SystemExit may be an exit of a plug-in."""

    exit_code = 128 + signal.SIGTERM


def unwind_on_sigterm() -> None:
    """Let SIGTERM clean up as Ctrl-C does; a second one does not interrupt that.

    Callers catch `Terminated`.
    """

    def terminate(number: int, frame: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
