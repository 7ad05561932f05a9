"""XLA's own reader and printer of HLO text for the tests, in a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

_CHILD = """
import json, os, sys
answers = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="surrogateescape", newline="\\n")
os.dup2(2, 1)
from jaxlib import _hlo
options = _hlo.HloPrintOptions()
options.print_large_constants = True
for line in sys.stdin:
    try:
        answer = {"text": _hlo.hlo_module_from_text(json.loads(line)).to_string(options)}
    except Exception as error:
        answer = {"error": str(error)}
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


class Reference:
    """Asks XLA what a text is."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def print_of(self, text: str) -> str | None:
        """The default print, constants in full; None where XLA refuses the text or dies of it."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(text).encode() + b"\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            self.close()
            return None
        answer: dict[str, str] = json.loads(line)
        return answer.get("text")

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None


@pytest.fixture(scope="module")
def xla_print() -> Iterator[Callable[[str], str | None]]:
    """What XLA prints for a text, constants in full; None where it refuses it or dies of it."""
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    reference = Reference()
    yield reference.print_of
    reference.close()
