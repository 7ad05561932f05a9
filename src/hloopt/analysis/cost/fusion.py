"""Fusions: what is inside stays in registers; memory sees parameters, constants and results.

Of a parameter whose users only slice it, just the slices are read. A dynamic-update-slice works in
place: it reads and writes only what it updates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hloopt.analysis.cost.model import Cost
from hloopt.analysis.cost.sizes import leaf_bytes, table_bytes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

Callees: TypeAlias = Callable[[Computation], Cost]

_SLICES = frozenset((Opcode.SLICE, Opcode.DYNAMIC_SLICE))


def fusion_cost(fusion: Instruction, callees: Callees) -> Cost:
    """The arithmetic of the fused instructions; the bytes that cross the fusion's border.

    O(fused instructions).
    """
    body = fusion.called[0]
    inside = callees(body)
    operand_bytes = tuple(map(parameter_bytes, body.parameters))
    read = sum(operand_bytes) + _constant_bytes(body)
    written = _result_bytes(body.root)
    return Cost(
        inside.flops, inside.transcendentals, read, written, inside.unfused_bytes, operand_bytes
    )


def parameter_bytes(parameter: Instruction) -> int:
    """What a fusion reads of a parameter. O(instructions that see it whole or in part)."""
    total = 0
    waiting = [parameter]
    while waiting:
        value = waiting.pop()
        if value.shape.is_tuple:
            elements = {
                user.tuple_index: user
                for user in value.users
                if user.opcode is Opcode.GET_TUPLE_ELEMENT
            }
            waiting += elements.values()
            # A use of the whole tuple, and each element that nobody asks for, is its table.
            missing = len(value.shape.elements) - len(elements)
            total += missing * table_bytes(value.shape) if value.users else 0
            continue
        is_whole = False
        for user in value.users:
            if user.opcode in _SLICES and user.operands[0] is value:
                total += leaf_bytes(user.shape)
            elif user.opcode is Opcode.DYNAMIC_UPDATE_SLICE and user.operands[0] is value:
                pass
            elif user.opcode is Opcode.FUSION:
                inner = user.called[0].parameters
                waiting += [
                    inner[number]
                    for number, operand in enumerate(user.operands)
                    if operand is value
                ]
            else:
                is_whole = True
        if is_whole:
            total += table_bytes(value.shape)
    return total


def _constant_bytes(body: Computation) -> int:
    """Constants of more than one element lie in memory."""
    return sum(
        table_bytes(instruction.shape)
        for instruction in body.instructions
        if instruction.opcode is Opcode.CONSTANT
        and instruction.shape.is_array
        and instruction.shape.element_count() > 1
    )


def _result_bytes(root: Instruction) -> int:
    total = 0
    waiting = [root]
    while waiting:
        result = waiting.pop()
        if result.opcode is Opcode.TUPLE:
            waiting += result.operands
        elif result.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            total += leaf_bytes(result.operands[1].shape)
        else:
            total += leaf_bytes(result.shape)
    return total
