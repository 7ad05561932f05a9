"""Records of the verifier: whether a module is accepted or refused, and in whose words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.forms import INT, TEXT, either, keys, only, unknown_words
from conformance_lib.mutate import mutate
from conformance_lib.records import Record
from conformance_lib.scene import Scene
from conformance_lib.source_names import SourceNames
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import VerifierOptions, verify_module

VERIFIER = "verifier"
"""The pass name of these records."""

EXPECTED = either(
    keys({"ok": only(True)}),
    keys({"error": TEXT}, {"after_step": INT}, what="expectation"),
    keys({"parse_error": TEXT}, what="expectation"),
)
_COUNTS = ("replica_count", "num_partitions")


def check_verdict(record: Record) -> tuple[list[str], bool | None]:
    """Mismatches with the record; and whether a refusal has XLA's words, None where none was
    wanted or given.

    A refusal by the parser counts where the record expects a `parse_error` only: an `error` has
    to be found by the verifier, or by the library that refuses an edit. Our parser leaves the
    values of attributes to the verifier, so either may refuse what has a `parse_error`.
    """
    record.check_fields()
    for expected in record.expectations:
        if reason := _problem(expected):
            raise RecordError(reason)
    options = _options(record.fields.get("options", {}))
    steps = list(record.steps())
    if any(step.pass_name != VERIFIER for step in steps):
        raise RecordError("only the verifier can run here")
    wanted = [e for e in record.expectations if "ok" not in e]
    try:
        module = parse_module(record.hlo)
    except HloError as error:
        if not any("parse_error" in expected for expected in wanted):
            return [f"the parser refuses the text: {error.message}"], None
        messages = [[error.message]]
    else:
        before = _text(module)
        messages = _verify(module, record, options, len(steps))
        if not record.fields.get("mutate") and not record.config and _text(module) != before:
            return ["the verifier changed the module"], None
    failures = list(_failures(messages, wanted))
    if failures or not wanted:
        return failures, None
    return [], all(_says(messages, expected) for expected in wanted)


def _problem(expected: Mapping[str, Any]) -> str | None:
    known = ("ok", "error", "parse_error", "after_step")
    return unknown_words("expectation", expected, known) or EXPECTED.problem(expected)


def _options(given: Mapping[str, Any]) -> VerifierOptions:
    if reason := unknown_words("option of the verifier", given, VerifierOptions._fields):
        raise RecordError(reason)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    return VerifierOptions(**values)


def _verify(module: Module, record: Record, options: VerifierOptions, runs: int) -> list[list[str]]:
    """The messages of each run over the module."""
    for name, value in record.config.items():
        if name in _COUNTS:
            module.set_attribute(name, str(value))
        elif name != "use_spmd_partitioning" or "num_partitions" not in record.config:
            raise RecordError(f"config {name}={value} has no meaning for the verifier")
    try:
        mutate(Scene(module, SourceNames(module), lambda: None), record.fields.get("mutate", ()))
    except (HloError, AssertionError) as error:  # the library refuses the edit
        return [[str(error)]] * runs
    return [[error.message for error in verify_module(module, options)] for _ in range(runs)]


def _failures(messages: list[list[str]], wanted: list[Mapping[str, Any]]) -> Iterator[str]:
    if not wanted:
        if any(messages):
            yield "expected to be accepted: " + "; ".join(messages[0])
        return
    for number, found in enumerate(messages):
        if not found:
            yield f"run {number}: expected to be refused: {wanted}"


def _says(messages: list[list[str]], expected: Mapping[str, Any]) -> bool:
    text: str = expected.get("error", expected.get("parse_error"))
    run = min(expected.get("after_step", 0), len(messages) - 1)
    return any(text in message for message in messages[run])


def _text(module: Module) -> str:
    return print_module(module, PrintOptions())
