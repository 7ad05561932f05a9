"""Dynamic dimensions: asking for their size and setting it.

An array of a shape like `f32[<=5]` has its size of the moment, so nothing of what would be behind
it can show.
"""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.values import Array
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


@kernel(Opcode.GET_DIMENSION_SIZE)
def get_dimension_size(instruction: Instruction, operand: Array) -> Array:
    (dimension,) = dimensions_of(instruction)
    declared = instruction.operands[0].shape
    is_static = not declared.dynamic[dimension]
    size = declared.dimensions[dimension] if is_static else operand.shape[dimension]
    return np.array(size, np.int32)


@kernel(Opcode.SET_DIMENSION_SIZE)
def set_dimension_size(instruction: Instruction, operand: Array, size: Array) -> Array:
    """The first `size` elements of one dimension: at least none, at most its bound.

    What a dimension gains is zero: XLA leaves open what is there.
    """
    (dimension,) = dimensions_of(instruction)
    bound = instruction.shape.dimensions[dimension]
    now = operand.shape[dimension]
    wanted = min(max(int(size), 0), bound if bound >= 0 else now)
    gained = np.zeros(
        [*operand.shape[:dimension], max(wanted - now, 0), *operand.shape[dimension + 1 :]],
        operand.dtype,
    )
    kept = operand[(slice(None),) * dimension + (slice(wanted),)]
    return np.concatenate([kept, gained], dimension) if gained.size else kept


@kernel(Opcode.DYNAMIC_RESHAPE)
def dynamic_reshape(instruction: Instruction, operand: Array, *sizes: Array) -> Array:
    return operand.reshape([int(size) for size in sizes])
