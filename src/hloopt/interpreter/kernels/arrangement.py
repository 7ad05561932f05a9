"""Elements moved to other places: broadcast, reshape, transpose, slice, pad, concatenate.

Results are views of the operands wherever NumPy can express them so.
"""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.arithmetic import window_views
from hloopt.interpreter.arithmetic.conversions import same_bits
from hloopt.interpreter.arithmetic.window_views import padded_size
from hloopt.interpreter.dynamic_sizes import reshaped_sizes
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.scalar_calls import apply_to_arrays
from hloopt.interpreter.values import Array, Value, dtype_of_shape
from hloopt.ir.attributes.typed import dimensions_of, padding_of, slices_of
from hloopt.ir.attributes.values import parse_int
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


@kernel(Opcode.BROADCAST)
def broadcast(instruction: Instruction, operand: Array) -> Array:
    """Dimension i of the operand becomes `dimensions[i]` of the result; the others are new."""
    places = dimensions_of(instruction)
    sizes = list(instruction.shape.dimensions)
    spread = [1] * len(sizes)
    for place, size in zip(places, operand.shape, strict=True):
        sizes[place] = spread[place] = size
    order = sorted(range(operand.ndim), key=places.__getitem__)
    return np.broadcast_to(operand.transpose(order).reshape(spread), sizes)


@kernel(Opcode.RESHAPE)
def reshape(instruction: Instruction, operand: Array) -> Array:
    source, target = instruction.operands[0].shape, instruction.shape
    return operand.reshape(reshaped_sizes(source, operand.shape, target))


@kernel(Opcode.BITCAST)
def bitcast(instruction: Instruction, operand: Value) -> Value:
    """The same bytes in memory, under the type, sizes and order of dimensions of the result.

    Tiles of layouts are taken to be the same for operand and result. A tuple is as it was.
    """
    source, target = instruction.operands[0].shape, instruction.shape
    if target.is_tuple:
        return operand
    order = source.layout.minor_to_major[::-1]
    flat = _as_type(np.ascontiguousarray(operand.transpose(order)).reshape(-1), instruction)
    sizes = reshaped_sizes(source, operand.shape, target)
    order = target.layout.minor_to_major[::-1]
    in_memory = flat.reshape([sizes[dimension] for dimension in order])
    return in_memory.transpose(np.argsort(order).astype(int))


def _as_type(flat: Array, instruction: Instruction) -> Array:
    """Elements in memory, read as elements of the result's type; narrow integers are packed."""
    source, target = instruction.operands[0].shape.element_type, instruction.shape.element_type
    assert source is not None
    assert target is not None
    if source is target:
        return flat
    if source.bits < target.bits:
        flat = flat.reshape(-1, target.bits // source.bits)
    return same_bits(flat, source, target).reshape(-1)


@kernel(Opcode.TRANSPOSE)
def transpose(instruction: Instruction, operand: Array) -> Array:
    return operand.transpose(dimensions_of(instruction))


@kernel(Opcode.SLICE)
def cut(instruction: Instruction, operand: Array) -> Array:
    """A dynamic dimension is cut where it ends."""
    parts = slices_of(instruction)
    return operand[tuple(slice(*part) for part in parts)]


@kernel(Opcode.REVERSE)
def reverse(instruction: Instruction, operand: Array) -> Array:
    return np.flip(operand, dimensions_of(instruction))


@kernel(Opcode.CONCATENATE)
def concatenate(instruction: Instruction, *operands: Array) -> Array:
    (dimension,) = dimensions_of(instruction)
    return np.concatenate(operands, dimension)


@kernel(Opcode.PAD)
def pad(instruction: Instruction, operand: Array, padding: Array) -> Array:
    """Elements around and between those of the operand; negative padding cuts them off."""
    edges = padding_of(instruction)
    smallest = min(map(padded_size, operand.shape, edges), default=0)
    if smallest < 0:
        raise RunError(f"padding leaves {smallest} elements in a dimension", code="HLO501")
    return window_views.pad(operand, edges, padding)


@kernel(Opcode.IOTA)
def iota(instruction: Instruction) -> Array:
    """Positions along one dimension. Integers too narrow for them wrap around."""
    sizes = instruction.shape.dimensions
    dimension = parse_int(instruction.attributes["iota_dimension"])
    if 0 in sizes:  # however long the dimension is
        return np.zeros(sizes, dtype_of_shape(instruction.shape))
    positions = np.arange(sizes[dimension]).astype(dtype_of_shape(instruction.shape))
    behind = (1,) * (len(sizes) - 1 - dimension)
    return np.broadcast_to(positions.reshape(-1, *behind), sizes)


@kernel(Opcode.MAP, calls=True)
def apply(plans: Plans, instruction: Instruction, *operands: Array) -> Value:
    return apply_to_arrays(plans, instruction.called[0], operands)
