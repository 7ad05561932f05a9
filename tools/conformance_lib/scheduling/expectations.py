"""Expectations about schedules: one function per key of a record's `expect`.

The functions are in the modules `expect_*` beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare
from conformance_lib.forms import INT, TEXT, Form, keys, list_of, only, row, unknown_words
from conformance_lib.scheduling.outcome import KINDS, RunOutcome
from conformance_lib.scheduling.references import find, find_computation
from conformance_lib.selector_syntax import OPCODE
from hloopt.ir import Computation, Instruction
from hloopt.ir.attributes.values import parse_frontend_attributes

Check = Callable[["View", Any], Iterator[str]]


class Expectation(NamedTuple):
    """A key of `expect`: its check, and the form of its value."""

    check: Check
    form: Form
    home: str


CHECKS: dict[str, Expectation] = {}
BESIDE: Mapping[str, Form] = {"in": TEXT, "error_kind": only(*KINDS)}
"""Keys that may stand beside others: the computation, and XLA's status code."""


class View:
    """A run as seen from one computation."""

    def __init__(self, outcome: RunOutcome, computation: Computation) -> None:
        self.outcome = outcome
        self.computation = computation
        self.order = list(computation.instructions)
        self._position = {instruction: n for n, instruction in enumerate(self.order)}

    def find(self, reference: Any) -> Instruction:
        return find(self.outcome.module, self.computation, reference)

    def position(self, reference: Any) -> int:
        return self._position[self.find(reference)]


def expectation_problem(expected: object) -> str | None:
    """An objection to the words of one expectation."""
    if not isinstance(expected, dict):
        return f"{expected!r} is not an expectation"
    if reason := unknown_words("expectation", expected, [*CHECKS, *BESIDE]):
        return reason
    if not expected.keys() & CHECKS.keys():
        return "the expectation says nothing"
    if "error_kind" in expected and "error" not in expected:
        return "error_kind without error"
    for key, value in expected.items():
        form = BESIDE[key] if key in BESIDE else CHECKS[key].form
        if reason := form.problem(value):
            return f"{key}: {reason}"
    return None


EXPECTATIONS = list_of(Form(expectation_problem))


def failures(
    outcome: RunOutcome, expected: Mapping[str, Any], scope: str | None = None
) -> Iterator[str]:
    """Mismatches with one expectation. Raises RecordError for one that is not known."""
    scope = expected.get("in", scope)
    if reason := expectation_problem(expected):
        raise RecordError(reason)
    if outcome.error is not None and "error" not in expected:
        yield f"{expected}: the run failed: {outcome.error.message}"
        return
    if "error_kind" in expected:
        yield from outcome.other_kind(expected["error_kind"])
    view = View(outcome, find_computation(outcome.module, scope))
    for key in sorted(expected.keys() & CHECKS.keys()):
        for found in CHECKS[key].check(view, expected[key]):
            yield f"{key} {expected[key]}: {found}"


BETWEEN = {"start": OPCODE, "done": OPCODE, "count": OPCODE}
"""The keys of what is counted between starts and dones."""
ACROSS = keys(
    {},
    {
        "same_fingerprint_before_lhs": row(TEXT, TEXT),
        "ops_between_pairs_differ": keys(
            {**BETWEEN, "runs": row(TEXT, TEXT), "pairs": list_of(INT)}
        ),
    },
    what="expectation across runs",
)


def differences_across(
    outcomes: Mapping[str, RunOutcome], expected: Mapping[str, Any]
) -> Iterator[str]:
    """Mismatches with an expectation about several runs. Raises RecordError."""
    if reason := ACROSS.problem(expected):
        raise RecordError(reason)
    named = [name for fact in expected.values() for name in _runs(fact)]
    if reason := unknown_words("run", named, outcomes):
        raise RecordError(reason)
    if "same_fingerprint_before_lhs" in expected:
        one, other = expected["same_fingerprint_before_lhs"]
        found = [fingerprint(outcomes[name]) for name in (one, other)]
        yield from compare("fingerprints", *found)
    if "ops_between_pairs_differ" in expected:
        between = expected["ops_between_pairs_differ"]
        views = [View(outcomes[n], outcomes[n].module.entry) for n in between["runs"]]
        counts = [counts_between(view, between) for view in views]
        for number in between["pairs"]:
            if any(number >= len(found) for found in counts):
                yield f"there is no pair {number}: {counts}"
            elif len({found[number] for found in counts}) < len(counts):
                yield f"pair {number}: the same number in {between['runs']}: {counts}"


def _runs(fact: Any) -> list[str]:
    runs: list[str] = fact["runs"] if isinstance(fact, dict) else fact
    return runs


def check(key: str, form: Form) -> Callable[[Check], Check]:
    """Register the function that checks `key`."""

    def register(function: Check) -> Check:
        assert key not in CHECKS, f"{key} is registered twice"
        CHECKS[key] = Expectation(function, form, function.__module__)
        return function

    return register


def fingerprint(outcome: RunOutcome) -> str:
    text = outcome.module.attributes.get("frontend_attributes", "{}")
    return parse_frontend_attributes(text).get("fingerprint_before_lhs", "")


def counts_between(view: View, what: Mapping[str, Any]) -> list[int]:
    """Per start and done, in order of the dones, the instructions between with an opcode."""
    counts: list[int] = []
    begin: int | None = None
    for position, instruction in enumerate(view.order):
        if instruction.opcode.value == what["start"]:
            begin = position
        elif instruction.opcode.value == what["done"] and begin is not None:
            between = view.order[begin:position]
            counts.append(sum(i.opcode.value == what["count"] for i in between))
            begin = None
    return counts
