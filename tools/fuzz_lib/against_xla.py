"""Do we read what real XLA reads, and refuse what it refuses? Asked of a child process."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence

from fuzz_lib.mutations import Texts, mutated
from fuzz_lib.workers import Settings
from hloopt.diagnostics import HloError
from hloopt.text import parse_module
from hloopt.verifier import verify_module

TIMEOUT = 20.0  # seconds XLA may take for a text: elided constants of huge shapes take minutes

_CHILD = """
import json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from jaxlib import _hlo
print(json.dumps("ready"), file=answers, flush=True)
for line in sys.stdin:
    try:
        _hlo.hlo_module_from_text(json.loads(line))
        answer = None
    except Exception as error:
        answer = str(error)[:2000]
    print(json.dumps(answer), file=answers, flush=True)
"""

Classes = dict[tuple[str, str], list[int]]
"""Numbers of texts, by what differs and the message."""


class XlaParser:
    """XLA's parser in a process that some texts kill. Raises ImportError without jaxlib."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        if self._answer(60.0) != '"ready"\n':
            raise ImportError("jaxlib cannot be loaded: it comes with the extra 'xla'")

    def refusal(self, text: str) -> str | None:
        """Why XLA refuses `text`; None where it reads it, "crash" where it dies of it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        answer = self._answer(TIMEOUT)
        if answer:
            refusal: str | None = json.loads(answer)
            return refusal
        self.close()
        self._start()
        return "crash"

    def _answer(self, seconds: float) -> str:
        assert self.process.stdout is not None
        if select.select([self.process.stdout], [], [], seconds)[0]:
            return self.process.stdout.readline()
        return ""

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def compare(
    settings: Settings, numbers: Sequence[int], show_progress: Callable[[int, int], None]
) -> Classes:
    """Where the answers to the texts with these numbers differ. Raises ImportError."""
    texts = Texts(settings.folders)
    xla = XlaParser()
    classes: Classes = defaultdict(list)
    for done, number in enumerate(numbers, 1):
        text = mutated(texts, settings.seed, number)
        verdict = _verdict(text, xla.refusal(text))
        if verdict is not None:
            classes[verdict].append(number)
        show_progress(done, len(numbers))
    xla.close()
    return classes


def _verdict(text: str, refusal: str | None) -> tuple[str, str] | None:
    """What differs, and the message of whoever refuses; None where both agree."""
    try:
        errors: list[HloError] = verify_module(parse_module(text))
        syntax = False
    except HloError as error:
        errors, syntax = [error], True
    if refusal is None and syntax:
        return "only XLA reads", _class_of(errors[0].message)
    if refusal is None and errors:
        return "XLA reads, we find invalid", _class_of(errors[0].message)
    if refusal is not None and not errors:
        return "only we accept", _class_of(_message_of_xla(refusal))
    return None


def _message_of_xla(refusal: str) -> str:
    """The innermost message: outer ones say what was being read."""
    errors = re.findall(r"error: (.*)", refusal)
    return errors[-1] if errors else refusal.splitlines()[0]


def _class_of(message: str) -> str:
    """A message without what is particular to one text."""
    first = message.splitlines()[0] if message else ""
    first = re.sub(r"'[^']*'|\"[^\"]*\"|%[\w.\-]+:?", "…", first)
    return re.sub(r"-?\d+", "N", first)[:110]
