"""Blocks read and written at positions known only when the program runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.values import Array
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


@kernel(Opcode.DYNAMIC_SLICE)
def dynamic_slice(instruction: Instruction, operand: Array, *starts: Array) -> Array:
    """The block of `dynamic_slice_sizes` at `starts`, moved to lie inside of the operand."""
    sizes = parse_ints(instruction.attributes["dynamic_slice_sizes"])
    return operand[_block(operand, starts, sizes)]


@kernel(Opcode.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(
    instruction: Instruction, operand: Array, update: Array, *starts: Array
) -> Array:
    """The operand with `update` written at `starts`, moved to lie inside. O(operand)."""
    if update.shape == operand.shape:
        return update
    result = np.array(operand, order="C")
    result[_block(operand, starts, update.shape)] = update
    return result


def _block(operand: Array, starts: Sequence[Array], sizes: Sequence[int]) -> tuple[slice, ...]:
    """The slices of a block; `starts` are a scalar per dimension, or one vector of all."""
    positions = starts[0] if len(starts) == 1 and starts[0].ndim == 1 else starts
    block: list[slice] = []
    for whole, size, position in zip(operand.shape, sizes, positions, strict=True):
        start = min(max(int(position), 0), max(whole - size, 0))
        block.append(slice(start, start + size))
    return tuple(block)
