"""Expectations about the numbers in attributes: slices, paddings, windows, lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance_lib.attributes import ATTRIBUTE
from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, expectation
from conformance_lib.forms import ANY, BOOL, INT, Form, either, keys, list_of, mapping
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import SELECTOR
from conformance_lib.selectors import select
from hloopt.ir import Instruction
from hloopt.ir.attributes.values import parse_padding, parse_slices, parse_window


def _is_number(text: object) -> str | None:
    is_number = isinstance(text, str) and text.isdecimal()
    return None if is_number else f"{text!r} is not the number of a dimension"


DIMENSION = Form(_is_number)
"""The number of a dimension as a key."""

_NUMBERS = either(list_of(INT), mapping(DIMENSION, INT))
_SLICE_PARTS = {"starts": "start", "limits": "limit", "strides": "stride"}
_WINDOW_PARTS = {
    "size": "size",
    "padding_low": "pad_low",
    "padding_high": "pad_high",
    "stride": "stride",
    "base_dilation": "lhs_dilate",
    "window_dilation": "rhs_dilate",
    "window_reversal": "reversal",
}
_PADDING_PARTS = ("low", "high", "interior")
_PADDING_FACTS = {"any_negative": BOOL, "any_interior": BOOL, "rank": INT}


def _attribute(instruction: Instruction, name: str) -> str:
    text = instruction.attributes.get(name)
    if text is None:
        raise RecordError(f"%{instruction.name} = {instruction.opcode} has no {name}")
    return text


def _entry(what: str, values: Sequence[Any], number: str) -> Any:
    if int(number) >= len(values):
        raise RecordError(f"{what} has {len(values)} entries, there is no number {number}")
    return values[int(number)]


@expectation("slice", mapping(SELECTOR, keys({}, dict.fromkeys(_SLICE_PARTS, _NUMBERS))))
def slice_numbers(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, facts in expected.items():
        for instruction in select(scene, selector):
            slices = parse_slices(_attribute(instruction, "slice"))
            for name, wanted in facts.items():
                found = [getattr(one, _SLICE_PARTS[name]) for one in slices]
                what = f"{name} of {selector}"
                if isinstance(wanted, list):
                    yield from compare(what, found, wanted)
                    continue
                for number, value in wanted.items():
                    yield from compare(f"{what}, {number}", _entry(what, found, number), value)


def _padding_problem(value: object) -> str | None:
    if not isinstance(value, dict) or not value:
        return f"{value!r} is not an object"
    dimension = keys({}, dict.fromkeys(_PADDING_PARTS, INT))
    forms = {key: _PADDING_FACTS.get(key, dimension) for key in value}
    numbers = {key for key in value if str(key).isdecimal()}
    known = keys({}, {**_PADDING_FACTS, **{number: forms[number] for number in numbers}})
    return known.problem(value)


_PADDING = Form(_padding_problem, frozenset((*_PADDING_PARTS, *_PADDING_FACTS)))


@expectation("padding", mapping(SELECTOR, _PADDING))
def padding(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, facts in expected.items():
        for instruction in select(scene, selector):
            found = parse_padding(_attribute(instruction, "padding"))
            general: Mapping[str, object] = {
                "any_negative": any(min(one.low, one.high) < 0 for one in found),
                "any_interior": any(one.interior for one in found),
                "rank": len(found),
            }
            for name, wanted in facts.items():
                what = f"padding {name} of {selector}"
                if name in general:
                    yield from compare(what, general[name], wanted)
                    continue
                for part, value in wanted.items():
                    one = _entry(what, found, name)
                    yield from compare(f"{what}, {part}", getattr(one, part), value)


@expectation(
    "window",
    mapping(
        SELECTOR, mapping(DIMENSION, keys({}, dict.fromkeys(_WINDOW_PARTS, either(INT, BOOL))))
    ),
)
def window(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, dimensions in expected.items():
        for instruction in select(scene, selector):
            found = parse_window(_attribute(instruction, "window")).dimensions
            for number, facts in dimensions.items():
                what = f"window dimension {number} of {selector}"
                one = _entry(what, found, number)
                for part, value in facts.items():
                    number_found = getattr(one, _WINDOW_PARTS[part])
                    yield from compare(f"{what}, {part}", number_found, int(value))


def list_entries(text: str) -> list[str]:
    """The entries of a list-valued attribute, `{1,2}` or `{{0,1},{2,3}}`, as text."""
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        raise RecordError(f"'{text}' is not a list")
    entries: list[str] = []
    depth, start = 0, 1
    for position, character in enumerate(inner[:-1]):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 1:
            entries.append(inner[start:position].strip())
            start = position + 1
    last = inner[start:-1].strip()
    return [*entries, last] if last or entries else []


@expectation("attr_item", mapping(SELECTOR, mapping(ATTRIBUTE, mapping(DIMENSION, ANY))))
def attr_item(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, attributes in expected.items():
        for instruction in select(scene, selector):
            for name, items in attributes.items():
                found = list_entries(_attribute(instruction, name))
                for number, value in items.items():
                    what = f"{name} {number} of {selector}"
                    yield from compare(what, _entry(what, found, number), str(value))


@expectation("attr_length", mapping(SELECTOR, mapping(ATTRIBUTE, INT)))
def attr_length(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, attributes in expected.items():
        for instruction in select(scene, selector):
            for name, length in attributes.items():
                found = list_entries(instruction.attributes.get(name, "{}"))
                yield from compare(f"length of {name} of {selector}", len(found), length)
