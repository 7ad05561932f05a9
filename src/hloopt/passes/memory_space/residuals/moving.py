"""Moving a stack to host memory: slices go there and come from there."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.memory_space.places import with_leaf
from hloopt.passes.memory_space.residuals.indices import Indices
from hloopt.passes.memory_space.residuals.slices import Slices, outside_update, take_slices
from hloopt.passes.memory_space.residuals.stacks import Access, Stack
from hloopt.passes.rewriting.replace import replace_instruction


def move_to_host(stack: Stack, indices: Indices) -> None:
    """Let a stack live in host memory; device memory holds the slices that are made and used.

    O(places, their users and the instructions of the fusions that slice).
    """
    shape = in_host_memory(stack.fill.shape)
    buffer = stack.user.parent.add(
        Opcode.CUSTOM_CALL, shape, attributes={"custom_call_target": '"AllocateBuffer"'}
    )
    stack.user.replace_operand(stack.operand, buffer)
    _remove_unused(stack.fill)
    fused = {write.result for write in stack.writes if write.fusion is not None}
    for instruction, path in stack.places:
        if instruction not in fused:
            instruction.set_shape(with_leaf(instruction.shape, path, shape))
    for write in stack.writes:
        if write.fusion is not None:
            outside_update(write, stack.dimension, indices)
    slices = Slices(stack.dimension, indices)
    for fusion, reads in _by_fusion(stack.reads).items():
        take_slices(fusion, reads, slices)
    for copy in stack.copies:
        replace_instruction(copy, copy.operands[0])


def in_host_memory(shape: Shape) -> Shape:
    """An array in the memory of the host."""
    return shape.with_memory_space(HOST_MEMORY_SPACE)


def _by_fusion(reads: Iterable[Access]) -> dict[Instruction, list[Instruction]]:
    found: dict[Instruction, list[Instruction]] = {}
    for read in reads:
        if read.fusion is not None:
            found.setdefault(read.fusion, []).append(read.slicing)
    return found


def _remove_unused(fill: Instruction) -> None:
    """Remove an initial value that nothing takes any more, and what it was made of."""
    dead = fill
    while not dead.users and not dead.is_root and dead.opcode in _MAKE_FILLS:
        operands = dead.operands
        dead.parent.remove(dead)
        if len(operands) != 1:
            return
        (dead,) = operands


_MAKE_FILLS = frozenset(
    (
        *(Opcode.BROADCAST, Opcode.CONSTANT, Opcode.COPY, Opcode.CUSTOM_CALL, Opcode.FUSION),
        Opcode.GET_TUPLE_ELEMENT,
    )
)
