"""Worker processes: what is left of them when they end."""

from __future__ import annotations

import subprocess
import sys

_ENDED = """
import signal
from multiprocessing import Pipe
from hloopt.processes import _work
ours, theirs = Pipe()
ours.send(-1)
ours.close()
_work(abs, theirs, [])
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""


def test_a_signal_does_not_interrupt_a_worker_that_has_nothing_left_to_do() -> None:
    """It would print a traceback from within the interpreter's own end."""
    subprocess.run([sys.executable, "-c", _ENDED], check=True, timeout=60)
