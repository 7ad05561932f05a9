"""Expectations: one function per key of a record's `expect`.

A key is added by a function in one of the modules of `expect`:

    @expectation("root_opcode", OPCODE, **{"in": COMPUTATION})
    def root_opcode(scene: Scene, opcode: str, more: More) -> Iterator[str]:
        ...

The forms say what may stand there; `more` holds the keys beside it (here `in`); each message it
yields is a mismatch. A word of the documents that only what hloopt does not have could answer is
added by `declare`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.forms import INT, TEXT, Form, list_of, unknown_words
from conformance_lib.scene import Scene

More: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Scene, Any, More], Iterator[str]]

WHEN: Mapping[str, Form] = {"after_pass": TEXT, "after_step": INT}
"""Keys that say when an expectation is checked."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A key of `expect`: its check, and the form of its value."""

    check: Check | None
    """None where hloopt has nothing that could answer."""
    form: Form
    companions: Mapping[str, Form]
    """Keys that may stand beside it."""
    home: str
    """The module that knows it."""


REGISTRY: dict[str, Expectation] = {}


def expectation(key: str, form: Form, /, **companions: Form) -> Callable[[Check], Check]:
    """Register the function that checks `key`."""

    def register(check: Check) -> Check:
        assert key not in REGISTRY, f"{key} is registered twice"
        REGISTRY[key] = Expectation(check, form, companions, check.__module__)
        return check

    return register


def declare(home: str, forms: Mapping[str, Form], /, **companions: Form) -> None:
    """Register keys that nothing in hloopt can answer; `home` is the module that says so."""
    for key, form in forms.items():
        assert key not in REGISTRY, f"{key} is registered twice"
        REGISTRY[key] = Expectation(None, form, companions, home)


def expectation_problem(expected: object) -> str | None:
    """An objection to the words of one expectation, whatever it is checked on."""
    if not isinstance(expected, dict):
        return f"{expected!r} is not an expectation"
    facts = {key: value for key, value in expected.items() if key not in WHEN}
    keys = [key for key in facts if key in REGISTRY]
    beside = {name: form for key in keys for name, form in REGISTRY[key].companions.items()}
    if reason := unknown_words("expectation", facts, [*keys, *beside] if keys else REGISTRY):
        if set(facts) <= {*REGISTRY, *_all_companions()}:
            return f"{reason} (it cannot stand here)"
        known = [*REGISTRY, *beside, *WHEN]
        return unknown_words("expectation", facts, known)
    if not keys:
        return "the expectation says nothing"
    for name, form in {**beside, **{key: REGISTRY[key].form for key in keys}, **WHEN}.items():
        if name in expected and (reason := form.problem(expected[name])):
            return f"{name}: {reason}"
    return None


def _all_companions() -> set[str]:
    return {name for known in REGISTRY.values() for name in known.companions}


def mismatches(scene: Scene, expected: Mapping[str, Any]) -> list[str]:
    """Mismatches of `scene` with one expectation; empty where there are none.

    Raises RecordError for an expectation with words that nothing here knows, NotModelled where
    hloopt has nothing that could answer.
    """
    if reason := expectation_problem(expected):
        raise RecordError(reason)
    found: list[str] = []
    for key in (key for key in expected if key in REGISTRY):
        known = REGISTRY[key]
        if known.check is None:
            raise NotModelled(f"hloopt has nothing that answers '{key}'")
        more = {name: value for name, value in expected.items() if name in known.companions}
        found += known.check(scene, expected[key], more)
    return found


EXPECTATIONS = list_of(Form(expectation_problem))
"""The form of lists of expectations."""


@expectation("one_of", list_of(EXPECTATIONS))
def one_of(scene: Scene, choices: list[list[Mapping[str, Any]]], more: More) -> Iterator[str]:
    """At least one of the lists of expectations holds completely."""
    found = [[m for expected in choice for m in mismatches(scene, expected)] for choice in choices]
    if all(found):
        yield "none of the choices holds: " + "; ".join(messages[0] for messages in found)


@expectation("any_of", list_of(EXPECTATIONS))
def any_of(scene: Scene, choices: list[list[Mapping[str, Any]]], more: More) -> Iterator[str]:
    """Check `any_of`: `one_of` by another name."""
    yield from one_of(scene, choices, more)


_COMPARISONS = {">=": ge, "<=": le, ">": gt, "<": lt}


def within(number: float, bound: float | str) -> bool:
    """Whether a number is as a table says: a number, ">=k", "<=k", ">k" or "<k"."""
    if isinstance(bound, int | float):
        return number == bound
    match = re.fullmatch(r"(>=|<=|>|<)(-?\d+(?:\.\d+)?)", bound)
    if match is None:
        raise RecordError(f"'{bound}' is neither a number nor a bound")
    return bool(_COMPARISONS[match[1]](number, float(match[2])))


def compare(what: str, found: object, expected: object) -> Iterator[str]:
    """A mismatch where two values differ."""
    if found != expected:
        yield f"{what}: expected {expected}, found {found}"


def compare_number(what: str, number: float, bound: float | str) -> Iterator[str]:
    """A mismatch where a number is not within a bound."""
    if not within(number, bound):
        yield f"{what}: expected {bound}, found {number}"


def demand_some(what: str, found: Collection[object]) -> None:
    """Raise RecordError where a statement about all of something finds nothing to hold for."""
    if not found:
        raise RecordError(f"there is no {what}: the expectation would hold whatever a pass did")
