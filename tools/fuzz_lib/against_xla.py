"""Do we read what real XLA reads, and refuse what it refuses?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from fuzz_lib.mutations import Texts, mutated
from hloopt.diagnostics import HloError
from hloopt.text import parse_module
from hloopt.verifier import verify_module
from xla_process import XlaProcess

TIMEOUT = 20.0  # seconds XLA may take for a text: elided constants of huge shapes take minutes

Classes = dict[tuple[str, str], list[int]]
"""Numbers of texts, by what differs and the message."""


def compare(
    folders: Sequence[Path],
    seed: int,
    numbers: Sequence[int],
    show_progress: Callable[[int, int], None],
) -> Classes:
    """Where the answers to the texts with these numbers differ. Raises ImportError."""
    texts = Texts(folders)
    xla = XlaProcess(TIMEOUT)
    classes: Classes = defaultdict(list)
    for done, number in enumerate(numbers, 1):
        text = mutated(texts, seed, number)
        verdict = _verdict(text, xla.read(text).error)
        if verdict is not None:
            classes[verdict].append(number)
        show_progress(done, len(numbers))
    xla.close()
    return classes


def _verdict(text: str, refusal: str | None) -> tuple[str, str] | None:
    """The difference, and the message of the side that refuses; None where both agree."""
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
