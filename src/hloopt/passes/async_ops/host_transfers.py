"""Transfers between the memories of host and device: copies, slices, updates of slices."""

from __future__ import annotations

from hloopt.analysis.async_operations import wrapped
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

SLICES = (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE)


def is_transfer(instruction: Instruction) -> bool:
    """Whether a copy, slice or update of a slice goes from one memory to the other."""
    match instruction.opcode:
        case Opcode.COPY:
            source = instruction.operands[0].shape
            return source.is_array and source.is_on_host is not instruction.shape.is_on_host
        case Opcode.DYNAMIC_SLICE:
            return instruction.operands[0].shape.is_on_host and not instruction.shape.is_on_host
        case Opcode.DYNAMIC_UPDATE_SLICE:
            return instruction.shape.is_on_host and not instruction.operands[1].shape.is_on_host
    return False


def sliced(start: Instruction) -> Instruction:
    """The operation that an async-start wraps, out of a fusion that holds nothing but a slice."""
    operation = wrapped(start)
    if operation.opcode is Opcode.FUSION:
        root = operation.called[0].root
        if root.opcode in SLICES and root.operands == root.parent.parameters:
            return root
    return operation


def starts_transfer(start: Instruction) -> bool:
    """Whether an instruction starts a transfer, as host-memory-transfer-asyncifier splits it."""
    if start.opcode is Opcode.COPY_START:
        return start.operands[0].shape.is_on_host is not start.shape.elements[0].is_on_host
    return start.opcode is Opcode.ASYNC_START and is_transfer(sliced(start))
