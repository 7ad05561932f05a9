"""The child process that XLA runs in: started when first asked, again after it ended."""

from __future__ import annotations

import atexit
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).with_name("child.py")
_FATAL = re.compile(r"^F\d{4} \S+ +\d+ \S+\] (.*)$", re.M)
"""The line in which XLA says why it ends the process."""


class XlaDied(Exception):
    """The child ended, or was ended, before it answered; says why."""


class XlaProcess:
    """XLA in a child process, for one question at a time."""

    def __init__(self, flags: str | None) -> None:
        """With these flags; None: with those of the environment."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the child
        own = {} if flags is None else {"XLA_FLAGS": flags}
        self._child = subprocess.Popen(
            [sys.executable, "-P", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ | own,
        )

    def ask(self, question: tuple[Any, ...], seconds: float) -> tuple[str, Any]:
        """The child's answer (see `child`). Raises XlaDied; this process is of no use then."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._child.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            return self._exchange(question)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._child.kill()
            self._child.wait()
            why = self._last_words()
            self.close()
            if late.is_set():
                raise XlaDied(f"XLA gave no answer in {seconds:g} s") from None
            raise XlaDied(f"XLA died: {why}") from None
        except BaseException:  # its answer would be taken for that of the next question
            self.close()
            raise
        finally:
            timer.cancel()

    def _exchange(self, question: tuple[Any, ...]) -> tuple[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._errors.seek(0)  # the child writes on from here
        self._errors.truncate()
        pickle.dump(question, self._child.stdin, protocol=5)
        self._child.stdin.flush()
        answer: tuple[str, Any] = pickle.load(self._child.stdout)
        return answer

    def _last_words(self) -> str:
        self._errors.seek(0)
        fatal: list[str] = _FATAL.findall(self._errors.read().decode(errors="replace"))
        if fatal:
            return fatal[-1]
        code = self._child.returncode
        known = {-number for number in signal.valid_signals()}
        return f"its process ended ({signal.Signals(-code).name if code in known else code})"

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()
        self._errors.close()


_running: dict[str | None, XlaProcess] = {}
"""The child of each set of flags: XLA reads them once."""


def ask_xla(question: tuple[Any, ...], seconds: float, flags: str | None = None) -> tuple[str, Any]:
    """Ask the child of this process that has these flags, which is started where there is none;
    None are the flags of the environment. Raises XlaDied."""
    if flags not in _running:
        _running[flags] = XlaProcess(flags)
        atexit.register(_running[flags].close)
    try:
        return _running[flags].ask(question, seconds)
    except BaseException:
        atexit.unregister(_running.pop(flags).close)
        raise
