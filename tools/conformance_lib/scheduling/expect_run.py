"""Expectations about a run as a whole: errors, memory, reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from re import fullmatch
from typing import Any

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.expectations import compare
from conformance_lib.forms import (
    BOOL,
    INT,
    TEXT,
    list_of,
    only,
)
from conformance_lib.scheduling.expectations import EXPECTATIONS, View, check, failures, fingerprint


@check("ok", only(True))
def _ok(view: View, expected: bool) -> Iterator[str]:
    yield from compare("ok", view.outcome.error is None, expected)


@check("error", TEXT)
def _error(view: View, text: str) -> Iterator[str]:
    error = view.outcome.error
    if error is None:
        yield "the run did not fail"
    elif text not in error.message:
        yield f"the message is: {error.message}"


@check("changed", BOOL)
def _changed(view: View, expected: bool) -> Iterator[str]:
    yield from compare("changed", view.outcome.changed, expected)


@check("peak_memory_at_most", INT)
def _peak_at_most(view: View, most: int) -> Iterator[str]:
    peak = view.outcome.peak_memory
    if peak is None or peak > most:
        yield f"the peak is {peak}"


@check("peak_memory_equals", INT)
def _peak_equals(view: View, expected: int) -> Iterator[str]:
    yield from compare("peak", view.outcome.peak_memory, expected)


@check("peak_memory_at_least", INT)
def _peak_at_least(view: View, least: int) -> Iterator[str]:
    peak = view.outcome.peak_memory
    if peak is None or peak < least:
        yield f"the peak is {peak}"


@check("reported_peak_matches_simulation", only(True))
def _peak_matches(view: View, expected: bool) -> Iterator[str]:
    if view.outcome.peak_memory is None:
        raise RecordError("the run reports no peak")
    raise NotModelled("the tool does not simulate the heap of a schedule")


@check("logs_error", TEXT)
def _logs_error(view: View, text: str) -> Iterator[str]:
    raise NotModelled("hloopt's passes do not log")
    yield


@check("scheduler_memory_limit_equals", INT)
def _limit_equals(view: View, expected: int) -> Iterator[str]:
    yield from compare("limit", view.outcome.memory_limit, expected)


@check("scheduler_memory_limit_at_least", INT)
def _limit_at_least(view: View, least: int) -> Iterator[str]:
    limit = view.outcome.memory_limit
    if limit is None or limit < least:
        yield f"the limit is {limit}"


@check("fingerprint_before_lhs", only(True))
def _has_fingerprint(view: View, expected: bool) -> Iterator[str]:
    found = fingerprint(view.outcome)
    if not fullmatch("[0-9a-f]{32}", found):
        yield f"the fingerprint is {found!r}"


@check("repeatable", list_of(only("schedule", "peak_memory", "total_wasted_cycles")))
def _repeatable(view: View, expected: list[str]) -> Iterator[str]:
    for what in expected:
        yield from compare(what, view.outcome.repeated.get(what), True)


@check("any_of", list_of(EXPECTATIONS))
def _any_of(view: View, lists: list[list[Mapping[str, Any]]]) -> Iterator[str]:
    found = [
        [f for one in every for f in failures(view.outcome, one, view.computation.name)]
        for every in lists
    ]
    if all(found):
        yield f"none holds: {[messages[0] for messages in found]}"
