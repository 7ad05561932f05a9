"""Inputs for programs: reproducible values for the parameters of an entry computation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.evaluation import Device, guarded
from hloopt.interpreter.values import (
    Array,
    Value,
    computing_type,
    dtype_of_shape,
    fits_in,
    make_value,
    type_text,
)
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.leaf_annotations import is_replicated, leaf_shardings, parameter_replication
from hloopt.ir.shape import Shape, format_shape

Fill: TypeAlias = Literal["random", "iota", "zeros", "nan-trap"]
FILLS: tuple[Fill, ...] = get_args(Fill)


class GivenKey(NamedTuple):
    """Which array a given value is for."""

    parameter: int
    """The number of a parameter."""
    leaf: int = 0
    """Which array of it, counted over its leaves in pre-order."""
    device: int | None = None
    """Whose; None for every device that has none of its own."""


class Inputs(NamedTuple):
    """Where the values of an entry's parameters come from."""

    fill: Fill = "random"
    given: Mapping[GivenKey, Array] = {}

    def arguments(self, entry: Computation, device: Device, seed: int) -> list[Value]:
        """Values for the parameters of `entry` on one device.

        What is not given is made up, as a function of seed, parameter, shape and device.
        `random` floats are multiples of 1/16 between -2 and 2: short sums of them are exact, so
        that their order does not show. With every third seed, from 2, they are multiples of 1/1024
        where the type has 32 bits or more, so that rounding to fewer bits shows. Integers are
        small, so that they fit as indices; those of every third seed, from 1, may be negative.
        Floats of `nan-trap` are NaN where the random ones would be above 15/8. Devices get values
        of their own, except where the parameter says that it is replicated, and of integer scalars:
        they steer the loops and branches that devices meet in. Raises RunError for a given array
        that does not fit.
        """
        arguments: list[Value] = []
        first = 0
        for parameter in entry.parameters:
            arrays = self._arrays(parameter, first, device, seed)
            arguments.append(make_value(parameter.shape, partial(_next, arrays)))
            first += len(parameter.shape.leaves())
        return arguments

    def _arrays(
        self, parameter: Instruction, first: int, device: Device, seed: int
    ) -> Iterator[Array]:
        """The arrays of a parameter; `first` is the number of its first leaf in the entry."""
        leaves = parameter.shape.leaves()
        for number, (shape, spread) in enumerate(zip(leaves, _spreads(parameter), strict=True)):
            if shape.is_token:
                continue
            if shape.is_unbounded_dynamic:
                raise cannot_run(parameter, f"{shape.text} has a dimension without a bound")
            given = self._given(parameter, number, device, shape)
            if given is None:
                steers = _may_steer(shape)
                replica = 0 if steers or spread.same_on_replicas else device.replica
                partition = 0 if steers or spread.same_on_partitions else device.partition
                key = [seed, first + number, replica, partition]
                given = guarded(parameter, _make_array, shape, self.fill, key)
            yield given

    def _given(
        self, parameter: Instruction, leaf: int, device: Device, shape: Shape
    ) -> Array | None:
        for number in (device.number, None):
            array = self.given.get(GivenKey(parameter.parameter_number, leaf, number))
            if array is not None:
                return _fitting(array, parameter, shape)
        return None


def _next(arrays: Iterator[Array], shape: Shape) -> Array:
    return next(arrays)


def _may_steer(shape: Shape) -> bool:
    """Whether an array may be a trip count or what a branch depends on."""
    element = shape.element_type
    return shape.is_scalar and element is not None and not element.is_floating


class _Spread(NamedTuple):
    same_on_replicas: bool
    same_on_partitions: bool


def _spreads(parameter: Instruction) -> Iterator[_Spread]:
    """For each array of a parameter: on which devices it has to be the same."""
    count = len(parameter.shape.leaves())
    replicated = parameter_replication(parameter) or [False] * count
    shardings = leaf_shardings(parameter) or ["{}"] * count
    for same_on_replicas, sharding in zip(replicated, shardings, strict=True):
        yield _Spread(same_on_replicas, is_replicated(sharding))


def _fitting(array: Array, parameter: Instruction, shape: Shape) -> Array:
    """A given array with the type and the dimensions of `shape`."""
    dtype = dtype_of_shape(shape)
    if array.dtype.type is np.void and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # how .npy files keep types that NumPy does not know
    element = shape.element_type
    assert element is not None
    is_integral = element.is_integral and array.dtype.kind in "iu"
    if not (fits_in(array.shape, shape) and (is_integral or _is_convertible(array.dtype, dtype))):
        wanted = format_shape(shape, layout=False)
        raise cannot_run(
            parameter, f"the given array is {type_text(array)}, the parameter {wanted}", "HLO506"
        )
    with np.errstate(over="ignore"):
        found = array.astype(dtype)
    if is_integral and (found != array).any():
        raise cannot_run(
            parameter, f"the given array has values that {element.name} cannot hold", "HLO506"
        )
    return found


def _is_convertible(given: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    """Whether values keep their kind: NumPy lets every type become one of ml_dtypes."""
    return given.type is not np.void and np.can_cast(
        computing_type(given), computing_type(dtype), "same_kind"
    )


def _make_array(shape: Shape, fill: Fill, key: list[int]) -> Array:
    dtype, dimensions = dtype_of_shape(shape), shape.dimensions
    if fill == "zeros":
        return np.zeros(dimensions, dtype)
    if fill == "iota":
        return np.arange(shape.element_count()).reshape(dimensions).astype(dtype)
    element = shape.element_type
    assert element is not None
    random = np.random.default_rng(key)
    if element.kind == "pred":
        return random.integers(0, 2, dimensions).astype(dtype)
    if element.is_integral:
        low, high = [(0, 4), (-3, 4), (0, 8)][key[0] % 3]
        if element.bits < 8:
            low, high = (-1, 1) if element.name == "s1" else (0, 2)
        elif element.kind == "unsigned":
            low = 0
        return np.asarray(random.integers(low, high, dimensions)).astype(dtype)
    if element.name == "f8e8m0fnu":  # powers of two only
        return np.asarray(2.0 ** random.integers(-2, 3, dimensions)).astype(dtype)
    is_wide = element.bits >= (64 if element.kind == "complex" else 32)
    steps = 1024 if is_wide and key[0] % 3 == 2 else 16
    values = _multiples(random, steps, dimensions)
    if fill == "nan-trap":
        values = np.where(values > 15 / 8, np.nan, values)
    if element.kind == "complex":
        values = values + 1j * _multiples(random, steps, dimensions)
    return values.astype(dtype)


def _multiples(random: np.random.Generator, steps: int, dimensions: tuple[int, ...]) -> Array:
    """Multiples of 1/`steps` between -2 and 2."""
    return np.asarray(random.integers(-2 * steps, 2 * steps + 1, dimensions) / steps)
