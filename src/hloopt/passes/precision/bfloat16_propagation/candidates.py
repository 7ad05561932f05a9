"""The instructions whose result may become low without converts beside them."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir import Instruction, Opcode
from hloopt.passes.precision.bfloat16_propagation.consumption import Consumption
from hloopt.passes.precision.bfloat16_propagation.fixed import is_in_host_memory

_BETWEEN_TUPLES = (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.DOMAIN)
_TRANSFERS = (Opcode.DYNAMIC_SLICE, Opcode.COPY)


def excluded(order: Iterable[Instruction], consumption: Consumption) -> set[Instruction]:
    """The instructions of a computation that are no candidates, given operands first.

    These are the ones in which types must not meet, unless all operands may have become low for
    the same readers; and those that fetch something from the host. O(operands).
    """
    support = consumption.leaves.support
    some_cannot_mix = support.mixed is not True
    found: set[Instruction] = set()
    for instruction in order:
        operands = instruction.operands
        if not operands:
            continue
        opcode = instruction.opcode
        if (opcode in _TRANSFERS and is_in_host_memory(operands[0].shape)) or (
            some_cannot_mix
            and not support.supports_mixed(instruction)
            and opcode not in _BETWEEN_TUPLES
            and instruction.shape.type_name != support.low
            and any(
                operand in found or not consumption.passes_through(instruction, number)
                for number, operand in enumerate(operands)
            )
        ):
            found.add(instruction)
    return found
