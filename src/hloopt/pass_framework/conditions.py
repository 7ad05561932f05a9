"""Conditions on a module that decide whether a step of a pipeline runs (`when:`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from hloopt.diagnostics import PipelineError, did_you_mean
from hloopt.ir.module import Module
from hloopt.ir.opcode import OPCODES
from hloopt.pass_framework.options import value_text

if TYPE_CHECKING:
    from hloopt.query import Selector

_ASYNC_COLLECTIVES = (
    "opcode=all-gather-*|all-reduce-*|collective-permute-* or opcode=async-start|async-done"
)
_COUNT_KEYS = ("of", "min", "max")


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value of conditions: its name for people, its JSON Schema, and a check.

    `check` raises PipelineError, without a place, or SelectorError; it is asked only of values
    that `fits` is true of.
    """

    title: str
    schema: Mapping[str, object]
    fits: Callable[[object], bool]
    check: Callable[[object], None] = lambda value: None


@dataclass(frozen=True, slots=True)
class Condition:
    """One key of `when`: what it means, the kind of its value, and how to find out."""

    doc: str
    kind: ValueKind
    holds: Callable[[Module, object], bool]


# -- kinds of values ------------------------------------------------------------------------------


def _check_opcodes(value: object) -> None:
    assert isinstance(value, list)
    for name in value:
        if not isinstance(name, str) or name not in OPCODES:
            raise _wrong(f"unknown opcode {value_text(name)}", did_you_mean(str(name), OPCODES))


def _check_selectors(value: object) -> None:
    for selector in _each(value):
        if not isinstance(selector, str):
            raise _wrong(f"a selector is text, not {value_text(selector)}")
        _parsed(selector)


def _check_count(value: object) -> None:
    assert isinstance(value, dict)
    for key, given in value.items():
        if key not in _COUNT_KEYS:
            help = did_you_mean(key, _COUNT_KEYS) or f"keys: {', '.join(_COUNT_KEYS)}"
            raise _wrong(f"unknown key '{key}' in 'count'", help)
        if key != "of" and (type(given) is not int or given < 0):
            raise _wrong(f"'{key}' is an integer from 0 on, not {value_text(given)}")
    if "of" not in value or len(value) == 1:
        raise _wrong("'count' needs a selector, 'of', and 'min' or 'max'", _COUNT_EXAMPLE)
    if "max" in value and value["max"] < value.get("min", 0):
        raise _wrong("'max' is less than 'min' in 'count'")
    if not isinstance(value["of"], str):
        raise _wrong(f"a selector is text, not {value_text(value['of'])}")
    _check_selectors(value["of"])


def _wrong(message: str, help: str | None = None) -> PipelineError:
    return PipelineError(message, help=help, code="HLO607")


_COUNT_EXAMPLE = "for example count: {of: opcode=all-gather, min: 2}"
_BOOL = ValueKind("true or false", {"type": "boolean"}, lambda value: isinstance(value, bool))
_INTEGER = ValueKind("an integer", {"type": "integer"}, lambda value: type(value) is int)
_OPCODES = ValueKind(
    "a list of opcodes",
    {"type": "array", "items": {"type": "string"}},
    lambda value: isinstance(value, list),
    _check_opcodes,
)
_SELECTORS = ValueKind(
    "a selector, or a list of them",
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
        ]
    },
    lambda value: isinstance(value, str | list) and bool(value),
    _check_selectors,
)
_COUNT = ValueKind(
    "a selector 'of', and 'min' or 'max'",
    {
        "type": "object",
        "required": ["of"],
        "minProperties": 2,
        "additionalProperties": False,
        "properties": {
            "of": {"type": "string"},
            "min": {"type": "integer", "minimum": 0},
            "max": {"type": "integer", "minimum": 0},
        },
    },
    lambda value: isinstance(value, dict),
    _check_count,
)


# -- conditions -----------------------------------------------------------------------------------


def _number_selected(module: Module, selector: str, most: int) -> int:
    """The number of instructions that a selector selects, counted up to `most`."""
    return sum(1 for _ in islice(_parsed(selector).select(module), most))


@lru_cache(1 << 10)
def _parsed(selector: str) -> Selector:
    """The selector of a text, parsed by the check; a fixpoint asks in each iteration.

    `select` keeps nothing of a module, so neither does the cache. O(length) the first time.
    """
    from hloopt.query import parse_selector

    return parse_selector(selector)


def _has_each(module: Module, selectors: object) -> bool:
    return all(_number_selected(module, selector, 1) for selector in _each(selectors))


def _has_none(module: Module, selectors: object) -> bool:
    return not any(_number_selected(module, selector, 1) for selector in _each(selectors))


def _each(selectors: object) -> list[str]:
    """The selectors of a value that is one, or a list of them."""
    return selectors if isinstance(selectors, list) else [str(selectors)]


def _is_selected(selector: str) -> Callable[[Module, object], bool]:
    """Whether what is wanted of a module, true or false, is that it has a selected instruction."""
    return lambda module, want: _has_each(module, selector) is want


def _has_opcode(module: Module, names: object) -> bool:
    assert isinstance(names, list)
    return bool(names) and _has_each(module, f"opcode={'|'.join(names)}")


def _is_at_least(module: Module, number: object) -> bool:
    assert isinstance(number, int)
    return module.instruction_count() >= number


def _is_in_range(module: Module, value: object) -> bool:
    assert isinstance(value, dict)
    least, most = value.get("min", 0), value.get("max")
    enough = least if most is None else most + 1
    found = _number_selected(module, value["of"], max(least, enough))
    return found >= least and (most is None or found <= most)


CONDITIONS: dict[str, Condition] = {
    "has": Condition(
        "each of these selectors, one or a list, selects an instruction (docs/selectors.md)",
        *(_SELECTORS, _has_each),
    ),
    "has_no": Condition(
        "none of these selectors, one or a list, selects an instruction", _SELECTORS, _has_none
    ),
    "count": Condition(
        "the number of instructions that the selector `of` selects is `min` or more, and `max` "
        "or less",
        *(_COUNT, _is_in_range),
    ),
    "is_scheduled": Condition(
        "the module has a schedule", _BOOL, lambda module, want: module.is_scheduled is want
    ),
    "has_calls": Condition("there are call instructions", _BOOL, _is_selected("opcode=call")),
    "has_loops": Condition("there are while loops", _BOOL, _is_selected("opcode=while")),
    "has_collectives": Condition(
        "there are collectives, asynchronous or not", _BOOL, _is_selected("is-collective")
    ),
    "has_async_collectives": Condition(
        "there are asynchronous collectives", _BOOL, _is_selected(_ASYNC_COLLECTIVES)
    ),
    "has_opcode": Condition("an instruction has one of these opcodes", _OPCODES, _has_opcode),
    "min_instructions": Condition(
        "there are at least this many instructions", _INTEGER, _is_at_least
    ),
}
"""Every condition a step can have, by its key."""


def check_condition(key: str, value: object) -> None:
    """Check the name and the value of a condition.

    Raises PipelineError for an unknown one or a value of the wrong type, SelectorError for a text
    that is not a selector.
    """
    condition = CONDITIONS.get(key)
    if condition is None:
        help = did_you_mean(key, CONDITIONS) or f"conditions: {', '.join(CONDITIONS)}"
        raise _wrong(f"unknown condition '{key}'", help)
    if not condition.kind.fits(value):
        raise _wrong(f"condition '{key}' takes {condition.kind.title}, not {value_text(value)}")
    condition.kind.check(value)


def unmet_condition(module: Module, when: Mapping[str, object]) -> str | None:
    """The first condition that does not hold, as text; None where all do."""
    for key, value in when.items():
        if not CONDITIONS[key].holds(module, value):
            shown = value_text(value) if isinstance(value, bool | dict) else value
            return f"{key}: {shown}"
    return None
