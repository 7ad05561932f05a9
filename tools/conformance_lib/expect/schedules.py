"""Expectations about the order of instructions in schedules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, demand_some, expectation
from conformance_lib.forms import INT, Form, keys, list_of, mapping, row
from conformance_lib.patterns import PATTERN, mismatch, show
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, OPCODE, SELECTOR
from conformance_lib.selectors import find_computation, has_opcode, select, select_one
from hloopt.ir import Instruction


def _is_position(text: object) -> str | None:
    is_number = isinstance(text, str) and text.lstrip("-").isdecimal()
    return None if is_number else f"{text!r} is not a position"


POSITION = Form(_is_position)
"""A position of a schedule as a key."""


def _order(scene: Scene, name: str | None = None) -> list[Instruction]:
    if not scene.module.is_scheduled:
        raise RecordError("the module has no schedule")
    return list(find_computation(scene, name or "entry").instructions)


def _position(scene: Scene, instruction: Instruction) -> int:
    return _order(scene, instruction.parent.name).index(instruction)


def _at(order: list[Instruction], position: int) -> Instruction:
    if not -len(order) <= position < len(order):
        raise RecordError(f"the schedule has {len(order)} instructions, there is no {position}")
    return order[position]


@expectation("schedule_opcode_at", mapping(POSITION, OPCODE), **{"in": COMPUTATION})
def schedule_opcode_at(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    order = _order(scene, more.get("in"))
    for position, opcode in expected.items():
        found = _at(order, int(position))
        if not has_opcode(found, opcode):
            yield f"at {position}: expected {opcode}, found {show(found)}"


@expectation("schedule_at", list_of(row(INT, PATTERN)), **{"in": COMPUTATION})
def schedule_at(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    order = _order(scene, more.get("in"))
    for position, wanted in expected:
        if reason := mismatch(scene, wanted, _at(order, position)):
            yield f"at {position}: {reason}"


@expectation("schedule_adjacent", list_of(row(SELECTOR, SELECTOR)))
def schedule_adjacent(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        yield from compare(f"{second} minus {first}", _distance(scene, first, second), 1)


@expectation("schedule_distance", list_of(row(SELECTOR, SELECTOR, INT)))
def schedule_distance(scene: Scene, expected: list[list[Any]], more: More) -> Iterator[str]:
    for first, second, wanted in expected:
        yield from compare(f"{second} minus {first}", _distance(scene, first, second), wanted)


@expectation("schedule_distance_equal", list_of(row(SELECTOR, SELECTOR)))
def schedule_distance_equal(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    if len(pairs) < 2:
        raise RecordError("one distance is always equal to itself")
    found = [_distance(scene, first, second) for first, second in pairs]
    if len(set(found)) > 1:
        yield f"the distances are {found}"


def _distance(scene: Scene, first: str, second: str) -> int:
    a, b = select_one(scene, first), select_one(scene, second)
    if a.parent is not b.parent:
        raise RecordError(f"{first} and {second} are in two computations")
    return _position(scene, b) - _position(scene, a)


@expectation("schedule_index", mapping(SELECTOR, INT))
def schedule_index(scene: Scene, expected: dict[str, int], more: More) -> Iterator[str]:
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            position = _position(scene, found)
            length = len(found.parent)
            index = position if wanted >= 0 else position - length
            yield from compare(f"place of {selector}", index, wanted)


@expectation("scheduled_after", mapping(SELECTOR, PATTERN))
def scheduled_after(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            order = _order(scene, found.parent.name)
            if reason := mismatch(scene, wanted, _at(order, order.index(found) + 1)):
                yield f"after {selector}: {reason}"


_NEIGHBOURS = keys({}, {"before": OPCODE, "after": OPCODE})


@expectation("schedule_neighbours", mapping(OPCODE, _NEIGHBOURS), **{"in": COMPUTATION})
def schedule_neighbours(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    order = _order(scene, more.get("in"))
    for opcode, neighbours in expected.items():
        found = [n for n, instruction in enumerate(order) if has_opcode(instruction, opcode)]
        demand_some(opcode, found)
        for number in found:
            for side, wanted in neighbours.items():
                place = number + (1 if side == "after" else -1)
                if place < 0 or not has_opcode(_at(order, place), wanted):
                    yield f"{side} {show(order[number])} is no {wanted}"


@expectation(
    "scheduled_before_first",
    keys({"pattern": PATTERN, "only": list_of(PATTERN)}),
    **{"in": COMPUTATION},
)
def scheduled_before_first(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    """Before the first instruction that matches there is nothing but what matches `only`."""
    for found in _order(scene, more.get("in")):
        if mismatch(scene, expected["pattern"], found) is None:
            return
        if all(mismatch(scene, wanted, found) is not None for wanted in expected["only"]):
            yield f"{show(found)} is before the first {expected['pattern']}"
    yield f"there is no {expected['pattern']}"


@expectation("computation_scheduled", list_of(COMPUTATION))
def computation_scheduled(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    for name in expected:
        find_computation(scene, name)
    yield from compare("is_scheduled", scene.module.is_scheduled, True)
