"""Labels and value numbers of instructions, computed independently of the matching."""

from __future__ import annotations

from collections.abc import Hashable

from hloopt.ir.attributes.explicit import explicit_attributes
from hloopt.ir.attributes.opcode_attributes import canonical_value
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_computation_order, stable_order


def label(instruction: Instruction) -> object:
    """Opcode, shape, payload and attributes of an instruction, without names and references."""
    attributes = explicit_attributes(instruction)
    if "metadata" in attributes:  # frames as they are numbered, not in the order of their use
        attributes["metadata"] = instruction.attributes["metadata"]
    return (
        *(instruction.opcode, instruction.shape, instruction.payload),
        {
            name: canonical_value(instruction.opcode, name, text)
            for name, text in attributes.items()
        },
    )


def values(module: Module) -> dict[Instruction, int]:
    """Value numbers of the instructions of one module.

    By opcode, shape, attributes without metadata and channel, operands and callees.
    """
    numbers: dict[Hashable, int] = {}
    found: dict[Instruction, int] = {}
    bodies: dict[object, int] = {}
    for computation in stable_computation_order(module):
        for instruction in stable_order(computation):
            attributes = explicit_attributes(instruction).items()
            key = (
                *(instruction.opcode, instruction.shape, instruction.payload),
                tuple(sorted(i for i in attributes if i[0] not in ("metadata", "channel_id"))),
                tuple(found[operand] for operand in instruction.operands),
                tuple(bodies[called] for called in instruction.called),
            )
            found[instruction] = numbers.setdefault(key, len(numbers))
        body = found[computation.root], tuple(sorted(found[i] for i in computation.instructions))
        bodies[computation] = numbers.setdefault(body, len(numbers))
    return found
