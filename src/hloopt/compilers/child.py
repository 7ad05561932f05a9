"""A compiler's child process: its time limit, its log, and what it left where it died."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.2


class Ending(NamedTuple):
    """The way a child ended."""

    answer: dict[str, Any] | None
    """Its answer; None where it died, or was ended, before it had one."""
    exit_code: int
    is_late: bool
    """Whether it was ended because time was up."""


def run_child(
    module: str,
    job: Path,
    answer: Path,
    log: Path,
    environment: Mapping[str, str],
    seconds: float | None,
    is_enough: Callable[[], bool],
) -> Ending:
    """Run `python -m module JOB`, all that it writes in `log`; end it once there `is_enough`.

    Neither it nor a process that it started is left, whatever happens here.
    """
    answer.unlink(missing_ok=True)  # that of a child before
    command = [sys.executable, "-P", "-m", module, str(job)]
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:  # a signal has to wait until there is a child to end
        with log.open("wb") as stream:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            is_late = _wait(child, seconds, is_enough)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    try:
        found = json.loads(answer.read_text(encoding="utf-8"))
    except OSError:
        found = None
    return Ending(found, child.returncode, is_late)


def _wait(
    child: subprocess.Popen[bytes], seconds: float | None, is_enough: Callable[[], bool]
) -> bool:
    """Whether time was up before it ended or there was enough."""
    begin = time.monotonic()
    pause = _FIRST_PAUSE
    while True:
        left = None if seconds is None else begin + seconds - time.monotonic()
        if left is not None and left <= 0:
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(pause if left is None else min(pause, left))
            return False
        if is_enough():
            return False
        pause = min(pause * 1.5, _LONGEST_PAUSE)
