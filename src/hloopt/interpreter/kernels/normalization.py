"""Batch normalization: training, inference and gradient."""

from __future__ import annotations

from math import prod

import numpy as np

from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.values import Array, computing_type
from hloopt.ir.attributes.values import parse_int
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


class _Features:
    """The features of an operand: all its other dimensions are normalized together."""

    def __init__(self, instruction: Instruction, operand: Array) -> None:
        feature = parse_int(instruction.attributes["feature_index"])
        self.dtype = operand.dtype
        self.wide = computing_type(operand.dtype)
        epsilon = np.float32(instruction.attributes["epsilon"])  # whatever the operand's type is
        self.epsilon = np.asarray(epsilon, self.wide)
        self._others = tuple(axis for axis in range(operand.ndim) if axis != feature)

    def spread(self, values: Array) -> Array:
        """One value per feature, to go with the operand."""
        return np.expand_dims(values.astype(self.wide), self._others)

    def total(self, array: Array) -> Array:
        """The sum of each feature, to go with the operand."""
        return np.asarray(array.sum(self._others, dtype=self.wide, keepdims=True))

    def mean(self, array: Array) -> Array:
        count = prod(array.shape[axis] for axis in self._others)
        return np.asarray(self.total(array) / self.wide.type(count))

    def per_feature(self, values: Array) -> Array:
        """Values that go with the operand, as a result of one value per feature."""
        return values.reshape(-1).astype(self.dtype)


@kernel(Opcode.BATCH_NORM_TRAINING)
def batch_norm_training(
    instruction: Instruction, operand: Array, scale: Array, offset: Array
) -> tuple[Array, Array, Array]:
    """The normalized operand, and mean and (biased) variance of each feature."""
    features = _Features(instruction, operand)
    x = operand.astype(features.wide)
    mean = features.mean(x)
    variance = features.mean(x * x) - mean * mean
    normal = (x - mean) / np.sqrt(variance + features.epsilon)
    result = normal * features.spread(scale) + features.spread(offset)
    return (
        result.astype(features.dtype),
        features.per_feature(mean),
        features.per_feature(variance),
    )


@kernel(Opcode.BATCH_NORM_INFERENCE)
def batch_norm_inference(
    instruction: Instruction,
    operand: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
) -> Array:
    """The operand, normalized by a given mean and variance."""
    features = _Features(instruction, operand)
    deviation = np.sqrt(features.spread(variance) + features.epsilon)
    normal = (operand.astype(features.wide) - features.spread(mean)) / deviation
    result = normal * features.spread(scale) + features.spread(offset)
    return np.asarray(result).astype(features.dtype)


@kernel(Opcode.BATCH_NORM_GRAD)
def batch_norm_grad(
    instruction: Instruction,
    operand: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    gradient: Array,
) -> tuple[Array, Array, Array]:
    """The gradients of operand, scale and offset of batch-norm-training."""
    features = _Features(instruction, operand)
    upstream = gradient.astype(features.wide)
    deviation = np.sqrt(features.spread(variance) + features.epsilon)
    normal = (operand.astype(features.wide) - features.spread(mean)) / deviation
    weighted = upstream * normal
    centered = upstream - features.mean(upstream) - normal * features.mean(weighted)
    result = features.spread(scale) / deviation * centered
    return (
        np.asarray(result).astype(features.dtype),
        features.per_feature(features.total(weighted)),
        features.per_feature(features.total(upstream)),
    )
