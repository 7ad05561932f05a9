"""Forms: the values that a key of a record may have, and the words that these values are made of.

A form is checked before anything runs, so that a word nobody would look at is found in records
that do not get that far, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from hloopt.diagnostics import did_you_mean

_BOUND = re.compile(r"(>=|<=|>|<)-?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Form:
    """A set of values: `problem` says what is wrong with one that is not in it, else None."""

    problem: Callable[[object], str | None]
    words: frozenset[str] = frozenset()
    """The keys and texts with a meaning, at any depth."""


def unknown_words(what: str, given: Iterable[object], known: Iterable[str]) -> str | None:
    """`unknown WHAT: a, b; did you mean 'c'?` for the words given that are not known, or None."""
    known = list(known)
    unknown = sorted(str(word) for word in given if word not in known)
    if not unknown:
        return None
    hints = [hint for word in unknown if (hint := did_you_mean(word, known))]
    return f"unknown {what}: {', '.join(unknown)}" + "".join(f"; {hint}" for hint in hints)


def _of_type(name: str, *types: type) -> Form:
    def problem(value: object) -> str | None:
        is_bool = isinstance(value, bool)
        right = isinstance(value, types) and (not is_bool or bool in types)
        return None if right else f"{_short(value)} is not {name}"

    return Form(problem)


ANY = Form(lambda value: None)
BOOL = _of_type("true or false", bool)
INT = _of_type("an integer", int)
NUMBER = _of_type("a number", int, float)
TEXT = _of_type("a text", str)


def _bound_problem(value: object) -> str | None:
    if isinstance(value, str) and _BOUND.fullmatch(value):
        return None
    right = isinstance(value, int | float) and not isinstance(value, bool)
    return None if right else f"{_short(value)} is neither a number nor a bound"


BOUND = Form(_bound_problem)
"""A number, or one of ">=k", "<=k", ">k", "<k"."""


def only(*values: object) -> Form:
    """One of these values."""

    def problem(value: object) -> str | None:
        if any(value is v or (type(value) is type(v) and value == v) for v in values):
            return None
        return f"{_short(value)} is not one of {', '.join(map(_short, values))}"

    return Form(problem, frozenset(value for value in values if isinstance(value, str)))


def words(what: str, known: Iterable[str]) -> Form:
    """One of many texts; the nearest is named for another."""
    known = frozenset(known)

    def problem(value: object) -> str | None:
        if not isinstance(value, str):
            return f"{_short(value)} is not a text"
        return unknown_words(what, [value], known)

    return Form(problem, known)


def optional_list(item: Form) -> Form:
    """A list, which may be empty."""

    def problem(value: object) -> str | None:
        if not isinstance(value, list):
            return f"{_short(value)} is not a list"
        return next(filter(None, map(item.problem, value)), None)

    return Form(problem, item.words)


def list_of(item: Form) -> Form:
    """A list with something in it: an empty one would demand nothing."""
    inner = optional_list(item)
    return Form(
        lambda value: "the list is empty" if value == [] else inner.problem(value), item.words
    )


def row(*items: Form) -> Form:
    """A list of fixed length, each place with a form of its own."""

    def problem(value: object) -> str | None:
        if not isinstance(value, list) or len(value) != len(items):
            return f"{_short(value)} is not a list of {len(items)}"
        return next(filter(None, (f.problem(v) for f, v in zip(items, value, strict=True))), None)

    return Form(problem, frozenset(chain.from_iterable(item.words for item in items)))


def mapping(key: Form, value: Form) -> Form:
    """An object with free keys and at least one of them."""

    def problem(given: object) -> str | None:
        if not isinstance(given, dict):
            return f"{_short(given)} is not an object"
        if not given:
            return "the object is empty"
        parts = (
            (form.problem(part))
            for pair in given.items()
            for form, part in zip((key, value), pair, strict=True)
        )
        return next(filter(None, parts), None)

    return Form(problem, key.words | value.words)


def keys(
    required: Mapping[str, Form], optional: Mapping[str, Form] | None = None, *, what: str = "key"
) -> Form:
    """An object with these keys and no others."""
    forms = {**required, **(optional or {})}

    def problem(given: object) -> str | None:
        if not isinstance(given, dict):
            return f"{_short(given)} is not an object"
        if reason := unknown_words(what, given, forms):
            return reason
        if missing := [name for name in required if name not in given]:
            return f"'{missing[0]}' is missing in {_short(given)}"
        for name, value in given.items():
            if reason := forms[name].problem(value):
                return f"{name}: {reason}"
        return None if given else "the object is empty"

    inner = chain.from_iterable(form.words for form in forms.values())
    return Form(problem, frozenset(forms) | frozenset(inner))


def either(*forms: Form) -> Form:
    """A value of any of these forms. For no form, the reason of the last one of the same kind."""

    def problem(value: object) -> str | None:
        reasons = [form.problem(value) for form in forms]
        if None in reasons:
            return None
        told = [reason for reason in reasons if reason and not reason.startswith(_short(value))]
        return (told or reasons)[-1]

    return Form(problem, frozenset(chain.from_iterable(form.words for form in forms)))


def matching(what: str, problem: Callable[[str], str | None], known: Iterable[str] = ()) -> Form:
    """A text that a function has no objection to."""

    def check(value: object) -> str | None:
        return problem(value) if isinstance(value, str) else f"{_short(value)} is not {what}"

    return Form(check, frozenset(known))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
