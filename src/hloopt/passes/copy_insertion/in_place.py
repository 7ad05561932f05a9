"""Copies for operations that write their result where an operand lies."""

from __future__ import annotations

from hloopt.analysis.in_place import bound_before
from hloopt.ir import Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.passes.copy_insertion.deep_copy import copy_operand
from hloopt.passes.copy_insertion.facts import Facts

_DISJOINT = "xla_disjoint_read_write_regions"
_FORWARDING = (Opcode.BITCAST, Opcode.GET_TUPLE_ELEMENT)


def copy_overwritten_operands(instruction: Instruction, facts: Facts) -> None:
    """Let an operation in place work on copies."""
    for number in _overwritten_operands(instruction, facts):
        if not _is_disjoint(instruction, instruction.operands[number]):
            copy_operand(instruction, number)


def _overwritten_operands(instruction: Instruction, facts: Facts) -> list[int]:
    opcode = instruction.opcode
    if opcode is Opcode.ASYNC_DONE:
        return []  # its only operand is the start
    numbers = [pair.operand for pair in facts.in_place.pairs(instruction)]
    if opcode in (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE):
        start = async_start_of(instruction)
        if "output_to_operand_aliasing" not in start.attributes:
            numbers = _bound(instruction, _overwritten_parameters(start.called[0].root, facts))
    return [n for n in dict.fromkeys(numbers) if n < len(instruction.operands)]


def _overwritten_parameters(wrapped: Instruction, facts: Facts) -> list[int]:
    """The parameters of its computation that a wrapped instruction writes over."""
    found = []
    for pair in facts.in_place.pairs(wrapped):
        operand = wrapped.operands[pair.operand]
        while operand.opcode in _FORWARDING:
            operand = operand.operands[0]
        if operand.opcode is Opcode.PARAMETER:
            found.append(operand.parameter_number)
    return found


def _bound(instruction: Instruction, parameters: list[int]) -> list[int]:
    """The operands of an asynchronous start or update that are these parameters."""
    if instruction.opcode is Opcode.ASYNC_START:
        return parameters
    before = bound_before(instruction)
    return [number - before + 1 for number in parameters if number >= before]


def _is_disjoint(instruction: Instruction, operand: Instruction) -> bool:
    """Whether all users of the operand promise to write where none of the others reads."""
    return frontend_attribute(instruction, _DISJOINT) == "true" and all(
        frontend_attribute(user, _DISJOINT) == "true" for user in operand.users
    )
