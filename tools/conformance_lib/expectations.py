"""Expectations: one function per key of a record's `expect`.

A key is added by a function in one of the `expect_*` modules:

    @expectation("root_opcode", "in")
    def root_opcode(scene: Scene, opcode: str, more: More) -> Iterator[str]:
        ...

`more` holds the keys that stand beside it (here `in`); each message it yields is a mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from conformance_lib.errors import RecordError
from conformance_lib.scene import Scene

More: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Scene, Any, More], Iterator[str]]

WHEN = frozenset(("after_pass", "after_step"))
"""Keys that say when an expectation is checked."""


@dataclass(frozen=True, slots=True)
class _Expectation:
    check: Check
    companions: frozenset[str]


_REGISTRY: dict[str, _Expectation] = {}


def expectation(key: str, *companions: str) -> Callable[[Check], Check]:
    """Register the function that checks `key`; `companions` are keys that may stand beside it."""

    def register(check: Check) -> Check:
        assert key not in _REGISTRY, f"{key} is registered twice"
        _REGISTRY[key] = _Expectation(check, frozenset(companions))
        return check

    return register


def mismatches(scene: Scene, expected: Mapping[str, Any]) -> list[str]:
    """What in `scene` is not as one expectation says; empty where all is.

    Raises RecordError for an expectation with a key that nothing here checks.
    """
    facts = {key: value for key, value in expected.items() if key not in WHEN}
    keys = [key for key in facts if key in _REGISTRY]
    companions = frozenset().union(*(_REGISTRY[key].companions for key in keys))
    if unknown := facts.keys() - companions - set(keys):
        raise RecordError(f"unknown expectation: {', '.join(sorted(unknown))}")
    if not keys:
        raise RecordError("the expectation says nothing")
    found: list[str] = []
    for key in keys:
        wanted = _REGISTRY[key].companions
        more = {name: value for name, value in facts.items() if name in wanted}
        found += _REGISTRY[key].check(scene, facts[key], more)
    return found


@expectation("one_of")
def one_of(scene: Scene, choices: list[list[Mapping[str, Any]]], more: More) -> Iterator[str]:
    """At least one of the lists of expectations holds completely."""
    found = [[m for expected in choice for m in mismatches(scene, expected)] for choice in choices]
    if all(found):
        yield "none of the choices holds: " + "; ".join(messages[0] for messages in found)


def within(number: int, bound: int | str) -> bool:
    """Whether a number is as a table says: an integer, ">=k" or "<=k"."""
    if isinstance(bound, int):
        return number == bound
    match = re.fullmatch(r"(>=|<=)(\d+)", bound)
    if match is None:
        raise RecordError(f"'{bound}' is neither a number nor a bound")
    return number >= int(match[2]) if match[1] == ">=" else number <= int(match[2])


def compare(what: str, found: object, expected: object) -> Iterator[str]:
    """A mismatch where two values differ."""
    if found != expected:
        yield f"{what}: expected {expected}, found {found}"


def compare_number(what: str, number: int, bound: int | str) -> Iterator[str]:
    """A mismatch where a number is not within a bound."""
    if not within(number, bound):
        yield f"{what}: expected {bound}, found {number}"
