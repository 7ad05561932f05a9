"""Random numbers.

`rng-bit-generator` gives the bits XLA gives. The others have no defined stream: here it is one that
depends on the instruction's name only, without the endings that copies get, so that two runs of a
program agree, and passes may copy.
"""

from __future__ import annotations

from math import prod

import numpy as np

from hloopt.interpreter.arithmetic.random_bits import philox, threefry
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.values import Array, Value, dtype_of_shape, widened
from hloopt.ir.attributes.values import parse_int
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.patterns import pattern


@kernel(Opcode.RNG_BIT_GENERATOR)
def rng_bit_generator(instruction: Instruction, state: Array) -> Value:
    """The state behind the used counters, and bits by ThreeFry or Philox (the default)."""
    result = instruction.shape.elements[1]
    dtype = dtype_of_shape(result)
    if dtype.kind not in "iu":
        raise RunError(f"random bits are integers, not {result.type_name}", code="HLO501")
    if instruction.attributes["algorithm"] == "rng_three_fry":
        new_state, bits = _threefry_bits(state, result.dimensions, dtype.itemsize)
    else:
        new_state, bits = _philox_bits(state, result.dimensions, dtype.itemsize)
    return new_state, bits.astype(f"uint{dtype.itemsize * 8}").view(dtype)


def _threefry_bits(state: Array, dimensions: tuple[int, ...], itemsize: int) -> tuple[Array, Array]:
    """Numbers of 64 bits, or both halves of such numbers side by side in one dimension: the first
    even one, else the largest, where the last half is left over."""
    sizes = list(dimensions) or [1]
    even = [number for number, size in enumerate(sizes) if size % 2 == 0]
    split = even[0] if even else sizes.index(max(sizes))
    if itemsize < 8:
        sizes[split] = (sizes[split] + 1) // 2
    count = prod(sizes)
    counters = state[1] + np.arange(count, dtype=np.uint64)
    low, high = threefry(state[0], counters)
    new_state = np.array([state[0], state[1] + np.uint64(count)])
    if itemsize == 8:
        bits = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        return new_state, bits.reshape(dimensions)
    halves = np.stack([low.reshape(sizes), high.reshape(sizes)], split + 1)
    sizes[split] *= 2
    kept = tuple(slice(size) for size in dimensions or (1,))
    return new_state, halves.reshape(sizes)[kept].reshape(dimensions)


def _philox_bits(state: Array, dimensions: tuple[int, ...], itemsize: int) -> tuple[Array, Array]:
    """Four numbers of 32 bits, or two of 64, for each counter. The upper half of the counter is
    the third number of the state, or the key where there is none."""
    count = prod(dimensions)
    blocks = -(-count // (2 if itemsize == 8 else 4))
    low = state[1] + np.arange(blocks, dtype=np.uint64)
    high = state[-1] if len(state) == 3 else state[0]
    words = philox(state[0], low, high + (low < state[1]).astype(np.uint64))
    new_state = state.copy()
    new_state[1] += np.uint64(blocks)
    if len(state) == 3 and new_state[1] < state[1]:
        new_state[2] += np.uint64(1)
    if itemsize == 8:
        wide = words.astype(np.uint64)
        words = wide[:, ::2] | wide[:, 1::2] << np.uint64(32)
    return new_state, words.reshape(-1)[:count].reshape(dimensions)


@kernel(Opcode.RNG_GET_AND_UPDATE_STATE)
def rng_get_and_update_state(instruction: Instruction) -> Array:
    """A fixed state: not the one XLA has, which goes on with each run."""
    state = np.full(instruction.shape.dimensions, 0x7012395, np.uint64)
    return state * np.uint64(1 + parse_int(instruction.attributes["delta"]))


_COPY = pattern(r"(?:\.clone|\.\d+)+\Z")
"""A suffix that makes another name of a name."""


@kernel(Opcode.RNG)
def rng(instruction: Instruction, first: Array, second: Array) -> Array:
    """Numbers from `first` up to below `second`, or around `first` with the standard deviation
    `second`. Not XLA's numbers; the same each time, and for copies that a pass makes of it."""
    stem = _COPY.sub("", instruction.name)
    generator = np.random.default_rng(list(stem.encode()))
    low, high = widened(first), widened(second)
    sizes, dtype = instruction.shape.dimensions, dtype_of_shape(instruction.shape)
    if instruction.attributes["distribution"] == "rng_normal":
        return np.asarray(low + high * generator.standard_normal(sizes)).astype(dtype)
    if low.dtype.kind == "b":
        return np.asarray(generator.integers(int(low), int(high), sizes)).astype(dtype)
    if low.dtype.kind in "iu":
        numbers = generator.integers(int(low), max(int(high), int(low) + 1), sizes, low.dtype)
        return np.asarray(numbers).astype(dtype)
    return np.asarray(low + (high - low) * generator.random(sizes)).astype(dtype)
