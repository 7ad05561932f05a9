"""The parts of a result that are not new values: they come from operands or called computations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hloopt.analysis.dataflow.slots import slots_of
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Instruction, Opcode
from hloopt.ir.async_chains import async_start_of, bound_operands
from hloopt.ir.shapes.shape import Shape


class Forward(NamedTuple):
    """`width` slots of a result, from `slot` on, hold what `source` holds from `start` on."""

    slot: int
    source: Instruction
    start: int
    width: int
    arrays_only: bool = False
    """Whether tuples among them are new all the same: pointer tables of their own."""


def forwards_of(instruction: Instruction) -> list[Forward]:
    """The parts of the result that are values of others; whatever no part covers is new.

    Parameters, whiles and conditionals are not answered here: what reaches them depends on call
    sites and may merge. O(operands). Raises HloVerifyError where shapes do not fit.
    """
    find = _FORWARDS.get(instruction.opcode)
    if find is None:
        return []
    try:
        forwards = find(instruction)
    except IndexError:
        raise misfit(instruction) from None
    total = _width(instruction.shape)
    for slot, source, start, width, _ in forwards:
        if slot + width > total or start + width > _width(source.shape):
            raise misfit(instruction)
    return forwards


def defined_slots(instruction: Instruction) -> list[int]:
    """The slots at which `instruction` defines new values, in the order these are numbered.

    A parameter is taken to define all of itself; whiles and conditionals define nothing.
    """
    opcode = instruction.opcode
    parts = slots_of(instruction.shape).parts
    if opcode in DEFINES_NOTHING:
        return []
    if opcode not in _FORWARDS:
        return list(range(len(parts)))
    if opcode is Opcode.TUPLE or (opcode is Opcode.COPY and len(parts) == 1):
        return [0]
    covered = [False] * len(parts)
    for forward in forwards_of(instruction):
        for slot in range(forward.slot, forward.slot + forward.width):
            covered[slot] = not (forward.arrays_only and parts[slot].is_tuple)
    defined = [slot for slot, is_covered in enumerate(covered) if not is_covered]
    if opcode is Opcode.COLLECTIVE_PERMUTE_START and parts[0].is_tuple:
        defined = _defined_by_permute_start(instruction, defined)
    return defined


def misfit(instruction: Instruction) -> HloVerifyError:
    """The error for an instruction whose shape is not what its operands make."""
    return HloVerifyError(
        f"the shape of '%{instruction.name}' does not fit its operands",
        span=instruction.parent.module.span_of(instruction),
    )


def _width(shape: Shape) -> int:
    """The number of slots of a shape, most often one. O(1) but for the first time."""
    return len(slots_of(shape).parts) if shape.elements else 1


# -- one function per way of forwarding -----------------------------------------------------------


def _all_of(source: Instruction, slot: int = 0, *, arrays_only: bool = False) -> Forward:
    return Forward(slot, source, 0, _width(source.shape), arrays_only)


def _pass_on(instruction: Instruction) -> list[Forward]:
    source = instruction.operands[0]
    return [Forward(0, source, 0, min(_width(source.shape), _width(instruction.shape)))]


def _call(instruction: Instruction) -> list[Forward]:
    return [_all_of(instruction.called[0].root)]


def _tuple(instruction: Instruction) -> list[Forward]:
    starts = slots_of(instruction.shape).element_starts
    forwards = []
    slot = 1
    for operand in instruction.operands:
        forward = _all_of(operand, slot)
        forwards.append(forward)
        slot += forward.width
    if len(starts) != len(forwards) + 1 or slot != starts[-1]:
        raise misfit(instruction)
    return forwards


def _get_tuple_element(instruction: Instruction) -> list[Forward]:
    source, number = instruction.operands[0], instruction.tuple_index
    if number >= len(source.shape.elements):
        raise HloVerifyError(
            f"'%{instruction.name}' has no tuple element {number}",
            span=instruction.parent.module.span_of(instruction),
        )
    part = slots_of(source.shape).element(number)
    return [Forward(0, source, part.start, part.stop - part.start)]


def _copy(instruction: Instruction) -> list[Forward]:
    source = instruction.operands[0]
    return [Forward(1, source, 1, len(slots_of(source.shape).parts) - 1)]


def _copy_start(instruction: Instruction) -> list[Forward]:
    return [_all_of(instruction.operands[0], slots_of(instruction.shape).element(1).start)]


def _copy_done(instruction: Instruction) -> list[Forward]:
    return [_element_of_operand(instruction, 0)]


def _recv_done(instruction: Instruction) -> list[Forward]:
    return [_element_of_operand(instruction, 0, slot=1)]


def _send(instruction: Instruction) -> list[Forward]:
    return [_all_of(instruction.operands[0], 1)]


def _element_of_operand(instruction: Instruction, number: int, *, slot: int = 0) -> Forward:
    source = instruction.operands[0]
    part = slots_of(source.shape).element(number)
    return Forward(slot, source, part.start, part.stop - part.start)


def _second_of_operand(instruction: Instruction) -> list[Forward]:
    """The result is the operand's element 1, with a pointer table of its own if it is a tuple."""
    return [_element_of_operand(instruction, 1)._replace(arrays_only=True)]


def _operands_at_0(instruction: Instruction) -> list[Forward]:
    """Element 0 is the operand; of several operands a tuple."""
    first = slots_of(instruction.shape.elements[0])
    operands = instruction.operands
    if len(operands) == 1 or not first.shape.is_tuple:
        return [_all_of(operands[0], 1)]
    return [_all_of(operand, 1 + first.element_starts[i]) for i, operand in enumerate(operands)]


def _permute_start(instruction: Instruction) -> list[Forward]:
    if not is_in_place_permute(instruction):
        return _operands_at_0(instruction)
    source = instruction.operands[0]
    if not source.shape.is_tuple:
        return [_all_of(source, 1)]
    return [Forward(2, source, 1, len(slots_of(source.shape).parts) - 1)]


def is_in_place_permute(instruction: Instruction) -> bool:
    """Whether a collective-permute(-start) writes slices into its second operand."""
    return "slice_sizes" in instruction.attributes and len(instruction.operands) == 4


def _defined_by_permute_start(instruction: Instruction, defined: list[int]) -> list[int]:
    """Elements of the tuples come last, and a tuple of operands at 0 has no pointer table."""
    slots = slots_of(instruction.shape)
    outer = {0, *slots.element_starts[1:-1]}
    inner = [slot for slot in defined if slot >= slots.element_starts[1] and slot not in outer]
    return [*(slot for slot in defined if slot in outer), *inner]


def _async_start(instruction: Instruction) -> list[Forward]:
    slots = slots_of(instruction.shape)
    bound = slots_of(instruction.shape.elements[0])
    operands = bound_operands(instruction)
    result = [
        _all_of(operand, 1 + bound.element_starts[i], arrays_only=True)
        for i, operand in enumerate(operands)
    ]
    root = async_start_of(instruction).called[0].root
    source = root
    if root.opcode is Opcode.DYNAMIC_UPDATE_SLICE and operands:
        source = operands[0]
    if len(slots_of(source.shape).parts) == slots.element(1).stop - slots.element(1).start:
        result.append(_all_of(source, slots.element(1).start, arrays_only=True))
    return result


def _async_done(instruction: Instruction) -> list[Forward]:
    root = async_start_of(instruction).called[0].root
    return [_all_of(root)._replace(arrays_only=True)]


_FORWARDS: dict[Opcode, Callable[[Instruction], list[Forward]]] = {
    Opcode.BITCAST: _pass_on,
    Opcode.OPT_BARRIER: _pass_on,
    Opcode.DOMAIN: _pass_on,
    Opcode.ADD_DEPENDENCY: _pass_on,
    Opcode.ALL_REDUCE_DONE: _pass_on,
    Opcode.CALL: _call,
    Opcode.TUPLE: _tuple,
    Opcode.GET_TUPLE_ELEMENT: _get_tuple_element,
    Opcode.COPY: _copy,
    Opcode.COPY_START: _copy_start,
    Opcode.COPY_DONE: _copy_done,
    Opcode.SEND: _send,
    Opcode.RECV_DONE: _recv_done,
    Opcode.ALL_GATHER_START: _operands_at_0,
    Opcode.ALL_GATHER_DONE: _second_of_operand,
    Opcode.COLLECTIVE_PERMUTE_START: _permute_start,
    Opcode.COLLECTIVE_PERMUTE_DONE: _second_of_operand,
    Opcode.ASYNC_START: _async_start,
    Opcode.ASYNC_UPDATE: _async_start,
    Opcode.ASYNC_DONE: _async_done,
}
FORWARDING = frozenset(_FORWARDS)
"""Opcodes whose result may hold values of other instructions; those that merge are not listed."""
DEFINES_NOTHING = frozenset(
    (
        *(opcode for opcode, find in _FORWARDS.items() if find is _pass_on),
        *(Opcode.CALL, Opcode.GET_TUPLE_ELEMENT, Opcode.COPY_DONE),
        *(Opcode.WHILE, Opcode.CONDITIONAL),
    )
)
"""Opcodes of which nothing is new: all that the result holds is of others."""
