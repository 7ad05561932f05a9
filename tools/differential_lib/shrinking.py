"""Smaller programs and shorter chains with the same difference."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

from differential_lib.chains import Step
from sweep_lib.reduction import without_pieces

_LINE = re.compile(r"^(\s*)(ROOT )?(%?[\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\((.*)$")

StillFails = Callable[[str, Sequence[Step]], bool]


def shrunk(
    text: str, chain: Sequence[Step], still_fails: StillFails, seconds: float
) -> tuple[str, list[Step]]:
    """The smallest program and chain found in `seconds` that still fail; the given ones do."""
    deadline = time.monotonic() + seconds
    steps = list(chain)
    for number in reversed(range(len(steps))):
        fewer = steps[:number] + steps[number + 1 :]
        if fewer and still_fails(text, fewer):
            steps = fewer
    for number, step in enumerate(steps):
        plain = [*steps[:number], Step(step.name, {}), *steps[number + 1 :]]
        if step.options and still_fails(text, plain):
            steps = plain

    def fails(candidate: str) -> bool:
        return still_fails(candidate, steps)

    before = ""
    while text != before and time.monotonic() < deadline:
        before = text
        text = _replaced(text, fails, deadline)
        text = without_pieces(re.split(r"(?<=\n)(?=\n)", text), fails, deadline)
        text = without_pieces(text.splitlines(keepends=True), fails, deadline)
    return text, steps


def _replaced(text: str, fails: Callable[[str], bool], deadline: float) -> str:
    """Let users of a value read an earlier one of its shape; let the root be one output alone."""
    done = False
    while not done and time.monotonic() < deadline:
        done = True
        for candidate in _simpler(text):
            if time.monotonic() > deadline:
                break
            if fails(candidate):
                text, done = candidate, False
                break
    return text


def _simpler(text: str) -> Iterator[str]:
    lines = text.split("\n")
    earlier: dict[str, list[str]] = {}
    is_entry = False
    for number, line in enumerate(lines):
        if line.endswith("{"):
            earlier, is_entry = {}, line.startswith("ENTRY")
        found = _LINE.match(line)
        if not found:
            continue
        _, root, name, shape, opcode, operands = found.groups()
        if root:
            if is_entry and opcode == "tuple":
                yield from _single_outputs(lines, number, name, operands.rstrip(")"))
            continue
        for other in earlier.get(shape, [])[:3]:
            rest = "\n".join(lines[number + 1 :])
            fewer = re.sub(rf"(?<![\w.\-%]){re.escape(name)}(?![\w.\-])", other, rest)
            if fewer != rest:
                yield "\n".join([*lines[:number], fewer])
        earlier.setdefault(shape, []).insert(0, name)


def _single_outputs(lines: list[str], number: int, name: str, operands: str) -> Iterator[str]:
    for operand in operands.split(", "):
        shape = next(
            (
                found[4]
                for line in lines[:number]
                if (found := _LINE.match(line)) and found[3] == operand
            ),
            None,
        )
        if shape is not None:
            root = f"  ROOT {name} = {shape} copy({operand})"
            yield "\n".join([*lines[:number], root, *lines[number + 1 :]])
