"""Steps of a value in host memory: what its users do with it, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from hloopt.ir.attributes.values import parse_string
from hloopt.ir.custom_targets import NEW_BUFFERS, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.memory_space.places import Place, handed_on, readers

TO_HOST = "MoveToHost"
TO_DEVICE = "MoveToDevice"


class Use(Enum):
    """The kinds of things that are done with a value in host memory."""

    HANDS_ON = auto()
    """It is part of another value, or of the state of a loop."""
    COPIES = auto()
    RENAMES = auto()
    """A bitcast or reshape."""
    WRITES = auto()
    """A dynamic-update-slice of it."""
    SLICES = auto()
    RETURNS = auto()
    """It is back on the device."""
    KEEPS = auto()
    """Its layout is fixed: for the host, or as a piece of another value."""
    IS_RESULT = auto()
    """The program returns it."""
    UNKNOWN = auto()


class Step(NamedTuple):
    """One use of a place."""

    user: Instruction
    use: Use
    following: tuple[Place, ...] = ()
    """The places that hold the value then."""


def steps(place: Place) -> Iterator[Step]:
    """All uses of a place; one is the result of the computation."""
    for user, operand in readers(place):
        yield _step(place, user, operand)
    if place.instruction.is_root:
        yield _out_of(place)


def _step(place: Place, user: Instruction, operand: int) -> Step:
    path = place.path
    following = handed_on(user, operand, path)
    if following is not None:
        return Step(user, Use.HANDS_ON, (following,))
    match user.opcode:
        case Opcode.WHILE if _has_its_own(user):
            return Step(user, Use.HANDS_ON, _in_loop(user, place))
        case Opcode.ASYNC_START if _runs_on_host(user):
            return Step(user, Use.KEEPS)
    if path:
        return Step(user, Use.UNKNOWN)
    match user.opcode, operand:
        case Opcode.COPY, _:
            return Step(user, Use.COPIES, (Place(user),))
        case ((Opcode.BITCAST | Opcode.RESHAPE), _):
            return Step(user, Use.RENAMES, (Place(user),))
        case Opcode.DYNAMIC_UPDATE_SLICE, 0:
            return Step(user, Use.WRITES, (Place(user),))
        case Opcode.DYNAMIC_UPDATE_SLICE, 1:
            return Step(user, Use.KEEPS)
        case ((Opcode.SLICE | Opcode.DYNAMIC_SLICE), 0):
            return Step(user, Use.SLICES)
        case _ if custom_call_target(user) == TO_DEVICE:
            return Step(user, Use.RETURNS)
    return Step(user, Use.UNKNOWN)


def _out_of(place: Place) -> Step:
    """The use of a place as the result of its computation."""
    if place.instruction.parent.is_entry:
        return Step(place.instruction, Use.IS_RESULT)
    loop = _loop_around(place.instruction)
    if loop is None or place.instruction.parent is not loop.called[0]:
        return Step(place.instruction, Use.UNKNOWN)
    return Step(loop, Use.HANDS_ON, _in_loop(loop, place))


def sources(place: Place) -> list[Place] | None:
    """The places that a value came from; none where it begins, None where that is not known."""
    value, path = place
    match value.opcode:
        case Opcode.GET_TUPLE_ELEMENT:
            return [Place(value.operands[0], (value.tuple_index, *path))]
        case Opcode.TUPLE:
            return [Place(value.operands[path[0]], path[1:])]
        case Opcode.OPT_BARRIER | Opcode.COPY | Opcode.BITCAST | Opcode.RESHAPE:
            return [Place(value.operands[0], path)]
        case Opcode.DYNAMIC_UPDATE_SLICE:
            return [Place(value.operands[0])]
        case Opcode.WHILE if _has_its_own(value):
            return _into_loop(value, place)
        case Opcode.PARAMETER if value.parent.is_entry:
            return []
        case Opcode.PARAMETER if (loop := _loop_around(value)) is not None:
            return _into_loop(loop, place)
        case Opcode.BROADCAST if value.operands[0].shape.is_scalar:
            return []
        case Opcode.CUSTOM_CALL if custom_call_target(value) in _BEGIN:
            return []
    return None


_BEGIN = NEW_BUFFERS | {TO_HOST}


def _in_loop(loop: Instruction, place: Place) -> tuple[Place, ...]:
    """The places that hold a part of the state of a loop, in it and behind it."""
    inside = tuple(Place(called.parameters[0], place.path) for called in loop.called)
    return (*inside, Place(loop, place.path))


def _into_loop(loop: Instruction, place: Place) -> list[Place]:
    """The places that give a part of the state of a loop: before it, and after each trip."""
    return [Place(loop.operands[0], place.path), Place(loop.called[0].root, place.path)]


def _loop_around(value: Instruction) -> Instruction | None:
    """The only loop whose trips or checks the computation of a value is."""
    callers = list(value.parent.callers)
    is_loop = len(callers) == 1 and callers[0].opcode is Opcode.WHILE
    return callers[0] if is_loop and _has_its_own(callers[0]) else None


def _has_its_own(loop: Instruction) -> bool:
    """Whether nothing else calls the computations of a loop."""
    return all(sum(called.callers.values()) == 1 for called in loop.called)


def _runs_on_host(start: Instruction) -> bool:
    thread = start.attributes.get("async_execution_thread")
    return thread is not None and parse_string(thread) == "host"
