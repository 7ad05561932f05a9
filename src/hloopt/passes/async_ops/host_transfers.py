"""Transfers between the memories of host and device: copies, slices, updates of slices."""

from __future__ import annotations

from hloopt.analysis.async_operations import wrapped
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape

SLICES = (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE)


def is_transfer(instruction: Instruction) -> bool:
    """Whether a copy, slice or update of a slice goes from one memory to the other."""
    match instruction.opcode:
        case Opcode.COPY:
            source = instruction.operands[0].shape
            return source.is_array and is_on_host(source) is not is_on_host(instruction.shape)
        case Opcode.DYNAMIC_SLICE:
            return is_on_host(instruction.operands[0].shape) and not is_on_host(instruction.shape)
        case Opcode.DYNAMIC_UPDATE_SLICE:
            return is_on_host(instruction.shape) and not is_on_host(instruction.operands[1].shape)
    return False


def is_on_host(shape: Shape) -> bool:
    """Whether a shape is that of an array in the memory of the host."""
    return shape.is_array and shape.layout.memory_space == HOST_MEMORY_SPACE


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
        return is_on_host(start.operands[0].shape) is not is_on_host(start.shape.elements[0])
    return start.opcode is Opcode.ASYNC_START and is_transfer(sliced(start))
