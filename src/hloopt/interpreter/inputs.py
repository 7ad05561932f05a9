"""Inputs for programs: reproducible values for the parameters of an entry computation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import log2
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from hloopt.interpreter.array_plans import ArrayPlan, array_plans
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.evaluation import Device, guarded
from hloopt.interpreter.parts import cut
from hloopt.interpreter.roles import NO_ROLE, Role
from hloopt.interpreter.special_values import SPECIALS, Special, takes, with_special
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
from hloopt.ir.shapes.shape import Shape, array_shape, format_shape

Fill: TypeAlias = Literal["random", "iota", "zeros", "nan-trap"]
FILLS: tuple[Fill, ...] = get_args(Fill)


class GivenKey(NamedTuple):
    """The array that a given value is for."""

    parameter: int
    """The number of a parameter."""
    leaf: int = 0
    """The number of its array, counted over its leaves in pre-order."""
    device: int | None = None
    """Whose; None for every device that has none of its own."""


class Inputs(NamedTuple):
    """The source of the values of an entry's parameters."""

    fill: Fill = "random"
    given: Mapping[GivenKey, Array] = {}
    damping: int = 0
    """Random floats are divided by two to this power, for programs that amplify rounding."""
    special: Special | None = None
    """The special values that some of the random ones are replaced by."""

    def arguments(self, entry: Computation, device: Device, seed: int) -> list[Value]:
        """Values for the parameters of `entry` on one device, as `by_device` makes them."""
        partitions = max(device.partition + 1, entry.module.num_partitions)
        (found,) = self.by_device(entry, [device], seed, array_plans(entry, partitions))
        return found

    def by_device(
        self,
        entry: Computation,
        devices: Sequence[Device],
        seed: int,
        plans: Sequence[ArrayPlan | None],
    ) -> list[list[Value]]:
        """Values for the parameters of `entry`, by device; a plan for each of their arrays.

        What is not given is made up, as a function of seed, parameter, shape and device.
        `random` floats are multiples of 1/16 between -2 and 2: short sums of them are exact, so
        that their order does not show. With every third seed, from 2, they are multiples of 1/1024
        where the type has 32 bits or more, so that rounding to fewer bits shows. Those that dots
        and convolutions sum up products of are divided by the square root of their number (as a
        power of two), those under a root or logarithm are positive. Integers are small; those of
        every third seed, from 1, may be negative; from 2, they are anything their type holds, where
        nothing but integers comes of them. Floats of every third seed, from 1, have one sign in
        an array, another in the next. Indices are within the dimension that they index, scalar ones
        in another third of it with each seed.
        Floats of `nan-trap` are NaN where the random ones would be beyond 15/8. Scalars that are
        integers are the same on all devices: they steer the loops and branches that devices meet
        in. Raises RunError for a given array that does not fit.
        """
        maker = _Maker(self, devices, seed)
        by_array: list[list[Array]] = []
        for parameter in entry.parameters:
            for number, shape in enumerate(parameter.shape.leaves()):
                plan = plans[len(by_array)]
                made = plan and maker.arrays(parameter, number, shape, plan, len(by_array))
                by_array.append(made or [])
        arguments = []
        for position in range(len(devices)):
            arrays = (found[position] for found in by_array if found)
            take = partial(_next, arrays)
            arguments.append([make_value(parameter.shape, take) for parameter in entry.parameters])
        return arguments

    def specials(self, entry: Computation, plans: Sequence[ArrayPlan | None]) -> list[Special]:
        """The kinds of special values that made-up arrays can hold; none where `fill` says what is
        in them."""
        if self.fill != "random":
            return []
        leaves = [
            (key, shape)
            for parameter in entry.parameters
            for number, shape in enumerate(parameter.shape.leaves())
            for key in [(parameter.parameter_number, number)]
        ]
        given = {key[:2] for key in self.given}
        made = [
            (shape, plan.role)
            for (key, shape), plan in zip(leaves, plans, strict=True)
            if plan is not None and key not in given
        ]
        return [s for s in SPECIALS if any(takes(s, shape, role) for shape, role in made)]

    def are_all_given(self, entry: Computation) -> bool:
        """Whether no array is made up."""
        return all(
            any(key[:2] == (parameter.parameter_number, number) for key in self.given)
            for parameter in entry.parameters
            for number, shape in enumerate(parameter.shape.leaves())
            if not shape.is_token
        )


def _next(arrays: Iterator[Array], shape: Shape) -> Array:
    return next(arrays)


class _Maker:
    """Makes the arrays of one run."""

    def __init__(self, inputs: Inputs, devices: Sequence[Device], seed: int) -> None:
        self._inputs = inputs
        self._devices = devices
        self._seed = seed

    def arrays(
        self, parameter: Instruction, leaf: int, shape: Shape, plan: ArrayPlan, number: int
    ) -> list[Array]:
        """One array of a parameter for each device; `number` counts over all parameters."""
        if shape.is_unbounded_dynamic:
            raise cannot_run(parameter, f"{shape.text} has a dimension without a bound")
        made: dict[tuple[int, int], Array] = {}
        found = []
        for device in self._devices:
            given = self._given(parameter, leaf, device, shape, plan)
            if given is None:
                key = self._whose(device, shape, plan)
                if key not in made:
                    made[key] = guarded(
                        parameter,
                        _with_special,
                        array_shape(shape.type_name, plan.dimensions),
                        self._inputs,
                        [self._seed, number, *key],
                        plan.role,
                    )
                given = cut(made[key], plan.shards, device.partition)
            found.append(given)
        return found

    def _whose(self, device: Device, shape: Shape, plan: ArrayPlan) -> tuple[int, int]:
        """The key shared by devices that have parts of the same array."""
        if may_steer(shape):
            return 0, 0
        replica = 0 if plan.same_on_replicas else device.replica
        return replica, plan.shards.groups[device.partition]

    def _given(
        self, parameter: Instruction, leaf: int, device: Device, shape: Shape, plan: ArrayPlan
    ) -> Array | None:
        given = self._inputs.given
        own = given.get(GivenKey(parameter.parameter_number, leaf, device.number))
        if own is not None:
            return _fitting(own, parameter, shape, plan)
        array = given.get(GivenKey(parameter.parameter_number, leaf))
        if array is None:
            return None
        array = _fitting(array, parameter, shape, plan)
        if fits_in(array.shape, shape):
            return array
        return cut(array, plan.shards, device.partition)


def may_steer(shape: Shape) -> bool:
    """Whether an array may be a trip count or what a branch depends on."""
    element = shape.element_type
    return shape.is_scalar and element is not None and not element.is_floating


def _fitting(array: Array, parameter: Instruction, shape: Shape, plan: ArrayPlan) -> Array:
    """A given array, of one device or the whole, with the type of `shape`."""
    dtype = dtype_of_shape(shape)
    if array.dtype.type is np.void and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # how .npy files keep types that NumPy does not know
    element = shape.element_type
    assert element is not None
    is_integral = element.is_integral and array.dtype.kind in "iu"
    has_sizes = fits_in(array.shape, shape) or _is_whole(array, shape, plan)
    if not (has_sizes and (is_integral or _is_convertible(array.dtype, dtype))):
        wanted = format_shape(shape, layout=False)
        if not plan.shards.is_whole and plan.dimensions != shape.dimensions:
            sizes = ",".join(map(str, plan.dimensions))
            wanted += f", {shape.type_name}[{sizes}] over all devices"
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


def _is_whole(array: Array, shape: Shape, plan: ArrayPlan) -> bool:
    """Whether an array is the whole one that devices have parts of, padding aside."""
    return array.ndim == shape.rank and plan.shards.part(array.shape) == shape.dimensions


def _is_convertible(given: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    """Whether values keep their kind: NumPy lets every type become one of ml_dtypes."""
    return given.type is not np.void and np.can_cast(
        computing_type(given), computing_type(dtype), "same_kind"
    )


# -- made up --------------------------------------------------------------------------------------


def _with_special(shape: Shape, inputs: Inputs, key: list[int], role: Role) -> Array:
    made = made_up(shape, inputs, key, role)
    if inputs.special is None:
        return made
    return with_special(made, shape, inputs.special, key, role)


def made_up(shape: Shape, inputs: Inputs, key: list[int], role: Role = NO_ROLE) -> Array:
    """An array of a shape: a function of `key`, which begins with the seed."""
    dtype, dimensions, fill = dtype_of_shape(shape), shape.dimensions, inputs.fill
    if fill == "zeros":
        return np.zeros(dimensions, dtype)
    if fill == "iota":
        return np.arange(shape.element_count()).reshape(dimensions).astype(dtype)
    element = shape.element_type
    assert element is not None
    random = np.random.default_rng(key)
    if element.is_integral or element.kind == "pred":
        return _integers(shape, random, key, role)
    if element.name == "f8e8m0fnu":  # powers of two only
        return np.asarray(2.0 ** random.integers(-2, 3, dimensions)).astype(dtype)
    is_wide = element.bits >= (64 if element.kind == "complex" else 32)
    steps = 1024 if is_wide and key[0] % 3 == 2 else 16
    values = _multiples(random, steps, dimensions)
    if role.is_positive:
        values = np.abs(values) + 1 / steps
    elif key[0] % 3 == 1:
        values = np.abs(values) if key[1] % 2 else 0.0 - np.abs(values)  # no -0
    if fill == "nan-trap":
        values = np.where(np.abs(values) > 15 / 8, np.nan, values)
    if element.kind == "complex":
        values = values + 1j * _multiples(random, steps, dimensions)
    if element.bits >= _LEAST_SCALED:
        values = values / 2 ** (inputs.damping + round(log2(max(1, role.fan_in)) / 2))
    return values.astype(dtype)


_LEAST_SCALED = 16
"""Bits of the floats that can be divided by a few powers of two and stay what they are."""


def _integers(shape: Shape, random: np.random.Generator, key: list[int], role: Role) -> Array:
    seed = key[0]
    element, dtype = shape.element_type, dtype_of_shape(shape)
    assert element is not None
    if role.branches and shape.is_scalar:
        return np.asarray(seed % role.branches if role.branches > 2 else (seed + 1) % 2, dtype)
    if element.kind == "pred":
        return random.integers(0, 2, shape.dimensions).astype(dtype)
    low, high = [(0, 4), (-3, 4), (0, 8)][seed % 3]
    if role.bound:
        low, high = 0, min(role.bound, _LARGEST[element.bits])
        if shape.is_scalar and high >= _THIRDS:
            third = (seed + key[1]) % _THIRDS
            low, high = third * high // _THIRDS, (third + 1) * high // _THIRDS
    elif element.bits < 8:
        low, high = (-1, 1) if element.name == "s1" else (0, 2)
    elif seed % 3 == 2 and role.takes_any:
        return np.frombuffer(random.bytes(shape.element_count() * dtype.itemsize), dtype).reshape(
            shape.dimensions
        )
    elif element.kind == "unsigned" or role.is_measured:
        low = 0
    return np.asarray(random.integers(low, high, shape.dimensions)).astype(dtype)


_THIRDS = 3
_LARGEST = {bits: 1 << (bits - 1) for bits in (1, 2, 4, 8, 16, 32, 64)}


def _multiples(random: np.random.Generator, steps: int, dimensions: tuple[int, ...]) -> Array:
    """Multiples of 1/`steps` between -2 and 2."""
    return np.asarray(random.integers(-2 * steps, 2 * steps + 1, dimensions) / steps)
