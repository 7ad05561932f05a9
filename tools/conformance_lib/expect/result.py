"""Expectations about the run of a pass and the module as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance_lib.equality import Tolerance, differences
from conformance_lib.errors import RecordError
from conformance_lib.expect.filecheck import mentions_elements, unmatched, with_elements
from conformance_lib.expectations import More, compare, expectation
from conformance_lib.forms import (
    ANY,
    BOOL,
    INT,
    TEXT,
    Form,
    list_of,
    row,
    unknown_words,
)
from conformance_lib.literals import evaluate, values_agree
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, SELECTOR
from conformance_lib.selectors import find_computation, select_one
from hloopt.ir import Computation, Instruction
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import VerifierOptions, verify_module


@expectation("changed", BOOL)
def changed(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    if scene.changed is None:
        raise RecordError("nothing reports whether the module changed")
    yield from compare("changed", scene.changed, expected)


@expectation("second_run_changed", BOOL)
def second_run_changed(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    yield from compare("changed by a second run", scene.run_again(), expected)


@expectation("error", TEXT)
def error(scene: Scene, expected: str, more: More) -> Iterator[str]:
    if scene.error is None:
        yield f"expected an error ('{expected}'), the pass ran to its end"
    elif expected not in scene.error.message:
        yield f"expected an error with '{expected}', found '{scene.error.message}'"


@expectation("deterministic_runs", INT)
def deterministic_runs(scene: Scene, expected: int, more: More) -> Iterator[str]:
    """So many runs of the pass on the text give one and the same module."""
    if scene.reference is None or expected < 2:
        raise RecordError(f"{expected} runs cannot be compared with each other")
    texts = {print_module(scene.reference(scene.options)) for _ in range(expected)}
    yield from compare("different results", len(texts), 1)


@expectation("verifies", BOOL)
def verifies(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    """Some texts break a rule as they are: what is wrong with them beforehand does not count."""
    options = VerifierOptions(allow_mixed_precision=scene.mixes_precision)
    errors = [found.message for found in verify_module(scene.module, options)]
    if errors and scene.reference is not None:
        known = {found.message for found in verify_module(scene.reference(None), options)}
        errors = [message for message in errors if message not in known]
    if bool(errors) == expected:
        yield "; ".join(errors) or "expected an invalid module"


@expectation("scheduled", BOOL)
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


@expectation("schedule_before", list_of(row(SELECTOR, SELECTOR)))
def schedule_before(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        earlier, later = select_one(scene, first), select_one(scene, second)
        order = list(earlier.parent.instructions)
        if not order.index(earlier) < order.index(later):
            yield f"{first} is not scheduled before {second}"


@expectation("evaluates_to", ANY)
def evaluates_to(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    entry = scene.module.entry
    found = evaluate(entry)
    if not values_agree(entry.root, found, expected):
        yield from compare("value of ENTRY", found, expected)


@expectation("equals_module", TEXT, modulo=TEXT, exact_text=BOOL)
def equals_module(scene: Scene, text: str, more: More) -> Iterator[str]:
    if "modulo" not in more:
        raise RecordError("equals_module without modulo")
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


_PRINT = Form(
    lambda value: (
        unknown_words("print option", value, PrintOptions._fields)
        if isinstance(value, dict)
        else f"{value!r} is not an object"
    ),
    frozenset(PrintOptions._fields),
)


@expectation("filecheck", TEXT, print=_PRINT, of=COMPUTATION)
def filecheck(scene: Scene, lines: str, more: More) -> Iterator[str]:
    options = _print_options(more.get("print", {}))
    if "of" in more and "]{" not in lines:  # a shape is compared without layout, then
        options = options._replace(include_layout_in_shapes=False)
    text = print_module(scene.module, options)
    if "of" in more:
        text = _computation_text(find_computation(scene, more["of"]), text)
    reason = unmatched(lines, with_elements(text) if mentions_elements(lines) else text)
    if reason is not None:
        yield reason


def _computation_text(computation: Computation, text: str) -> str:
    """The block of one computation in a printed module."""
    start = "ENTRY " if computation.is_entry else f"%{computation.name} "
    return next(block for block in text.split("\n\n") if block.startswith(start))


def _print_options(changes: Mapping[str, bool]) -> PrintOptions:
    return PrintOptions.default()._replace(**changes)
