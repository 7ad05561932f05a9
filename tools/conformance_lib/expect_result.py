"""Expectations about the run of a pass and the module as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance_lib.equality import Tolerance, differences
from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, expectation
from conformance_lib.filecheck import mentions_elements, unmatched, with_elements
from conformance_lib.literals import evaluate
from conformance_lib.scene import Scene
from conformance_lib.selectors import select_one
from hloopt.ir import Instruction
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module


@expectation("changed")
def changed(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    if scene.changed is None:
        raise RecordError("nothing reports whether the module changed")
    yield from compare("changed", scene.changed, expected)


@expectation("second_run_changed")
def second_run_changed(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    yield from compare("changed by a second run", scene.run_again(), expected)


@expectation("error")
def error(scene: Scene, expected: str, more: More) -> Iterator[str]:
    if scene.error is None:
        yield f"expected an error ('{expected}'), the pass ran to its end"
    elif expected not in scene.error.message:
        yield f"expected an error with '{expected}', found '{scene.error.message}'"


@expectation("verifies")
def verifies(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    """Some texts break a rule as they are: what is wrong with them beforehand does not count."""
    errors = [found.message for found in verify_module(scene.module)]
    if errors and scene.reference is not None:
        known = {found.message for found in verify_module(scene.reference(None))}
        errors = [message for message in errors if message not in known]
    if bool(errors) == expected:
        yield "; ".join(errors) or "expected an invalid module"


@expectation("scheduled")
def scheduled(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    yield from compare("is_scheduled", scene.module.is_scheduled, expected)
    for computation in scene.module.computations.values() if expected else ():
        if computation.is_fusion:
            continue
        done: set[Instruction] = set()
        for instruction in computation.instructions:
            if not done.issuperset((*instruction.operands, *instruction.control_predecessors)):
                yield f"%{instruction.name} is scheduled before what it depends on"
            done.add(instruction)


@expectation("schedule_before")
def schedule_before(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        earlier, later = select_one(scene, first), select_one(scene, second)
        order = list(earlier.parent.instructions)
        if not order.index(earlier) < order.index(later):
            yield f"{first} is not scheduled before {second}"


@expectation("evaluates_to")
def evaluates_to(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    yield from compare("value of ENTRY", evaluate(scene.module.entry), expected)


@expectation("equals_module", "modulo", "exact_text")
def equals_module(scene: Scene, text: str, more: More) -> Iterator[str]:
    tolerance = Tolerance.parse(more["modulo"])
    yield from differences(scene.module, parse_module(text), tolerance)
    if more.get("exact_text"):
        yield from _text_difference(print_module(scene.module, _MODULE_DUMP), text)


_MODULE_DUMP = PrintOptions(syntax_sugar_async_ops=False)
"""As XLA prints a module when it is given no options."""


def _text_difference(found: str, expected: str) -> Iterator[str]:
    found_lines, expected_lines = found.rstrip("\n").split("\n"), expected.rstrip("\n").split("\n")
    if len(found_lines) != len(expected_lines):
        yield f"print: expected {len(expected_lines)} lines, found {len(found_lines)}"
    lines = zip(found_lines, expected_lines, strict=False)
    for number, (line, wanted) in enumerate(lines, 1):
        if line != wanted:
            yield f"line {number} of the print: expected\n  {wanted}\nfound\n  {line}"
            return


@expectation("filecheck", "print", "of")
def filecheck(scene: Scene, lines: str, more: More) -> Iterator[str]:
    options = _print_options(more.get("print", {}))
    text = print_module(scene.module, options)
    match more.get("of", "module"):
        case "module":
            pass
        case "entry":
            (text,) = (block for block in text.split("\n\n") if block.startswith("ENTRY "))
        case other:
            raise RecordError(f"nothing is known about printing '{other}' alone")
    reason = unmatched(lines, with_elements(text) if mentions_elements(lines) else text)
    if reason is not None:
        yield reason


def _print_options(changes: Mapping[str, bool]) -> PrintOptions:
    default = PrintOptions.default()
    if unknown := [name for name in changes if name not in PrintOptions._fields]:
        raise RecordError(f"unknown print option: {', '.join(unknown)}")
    return default._replace(**changes)
