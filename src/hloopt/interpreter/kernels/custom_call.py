"""Custom calls: functions by the name of the target, which users can add to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np

from hloopt.diagnostics import HloError, raised_at
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.kernels.block_scaling import (
    block_scaled_dot,
    cudnn_block_scaled_dot,
    dequantize,
    quantize,
)
from hloopt.interpreter.kernels.partitioner_calls import (
    MULTI_ROTATE,
    MULTI_SLICE,
    ROTATE_RIGHT,
    WRAP,
    multi_rotate,
    multi_slice,
    rotate_right,
    wrap,
)
from hloopt.interpreter.kernels.sorting import top_values
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.stand_ins import stand_in
from hloopt.interpreter.values import Array, Value, has_shape, joined, value_text, zeros
from hloopt.ir.custom_targets import (
    BLOCK_SCALED_DOT,
    CUDNN_BLOCK_SCALED_DOT,
    DEQUANTIZE,
    IDENTITIES,
    MANUAL_BOUNDARIES,
    MOVED,
    NEW_BUFFERS,
    QUANTIZE,
    SHARDING_GROUP,
    custom_call_target,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import format_shape

CustomCall: TypeAlias = Callable[..., Any]
_AnyCustomCall = TypeVar("_AnyCustomCall", bound=CustomCall)

ENTRY_POINTS = "hloopt.custom_calls"
"""The entry-point group in which other packages offer custom calls; scanned only for a target that
has no function yet. In a package's pyproject.toml:

    [project.entry-points."hloopt.custom_calls"]
    my_target = "my_package.my_module:my_function"
"""

_TARGETS: dict[str, CustomCall] = {}


def custom_call(*targets: str) -> Callable[[_AnyCustomCall], _AnyCustomCall]:
    """Let a function compute the custom calls with these targets, instead of an earlier one.

    The function is called with the instruction and the values of its operands: NumPy arrays, which
    it must not change, tuples of values, None for tokens. It returns the value of the instruction's
    shape, in exactly the types of the shape (`hloopt.interpreter.values.dtype_of_shape`):

        @custom_call("scale")
        def scale(instruction, operand):
            return operand * 2

    A script decorates its functions before it runs a module; a package offers them as ENTRY_POINTS.
    """

    def register(function: _AnyCustomCall) -> _AnyCustomCall:
        for target in targets:
            _TARGETS[target] = function
        return function

    return register


@kernel(Opcode.CUSTOM_CALL, calls=True)
def run_custom_call(plans: Plans, instruction: Instruction, *operands: Value) -> Value:
    """Raises RunError for an unknown target unless `plans` has stand-ins for them, and for a
    function that does not give what the instruction's shape says."""
    target = custom_call_target(instruction)
    function = _TARGETS.get(target)
    if function is None and target in _THAT_TAKE_LONG:
        return _THAT_TAKE_LONG[target](plans, instruction, *operands)
    function = function or _plugin(target)
    if function is not None:
        value = _with_arrays(_called(function, target, instruction, operands))
        if not has_shape(value, instruction.shape):
            raise RunError(
                f'the function for the custom call target "{target}" gave {value_text(value)}, '
                f"not {format_shape(instruction.shape, layout=False)}",
                code="HLO501",
            )
        return value
    if plans.stand_ins:
        if any(leaf.is_array for leaf in instruction.shape.leaves()):
            plans.made_up.setdefault(f'custom call "{target}"', instruction)
        return stand_in(target, instruction.shape, operands)
    raise RunError(
        f'nothing is known of the custom call target "{target}"',
        help="`hloopt run --stand-ins` makes up what it gives; or register a function for it with "
        f"{custom_call.__module__}.custom_call or the entry-point group {ENTRY_POINTS}",
        code="HLO501",
    )


def _called(
    function: CustomCall, target: str, instruction: Instruction, operands: tuple[Value, ...]
) -> Any:
    """The result of a function. Raises RunError, with the place, where one of a user fails."""
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    try:
        return function(instruction, *operands)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # packages of users may raise anything
        if isinstance(error, HloError) or package == "hloopt":
            raise
        raise RunError(
            f'the function for the custom call target "{target}" failed: '
            f"{type(error).__name__}: {error}" + _place(error, package),
            code="HLO501",
        ) from error


def _place(error: BaseException, package: str) -> str:
    where = raised_at(error, package)
    return f"; raised at {where}" if where else ""


def _with_arrays(value: Value) -> Value:
    """A value with arrays in place of NumPy's scalars, which it makes of arrays of rank 0."""
    if isinstance(value, tuple):
        return tuple(map(_with_arrays, value))
    return np.asarray(value) if isinstance(value, np.generic) else value


@cache
def _plugin(target: str) -> CustomCall | None:
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=target):
        try:
            function: CustomCall = entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # packages of users may raise anything
            package = entry.value.partition(":")[0].partition(".")[0]
            raise RunError(
                f'custom call "{target}" cannot be loaded from {entry.value}: {error}'
                + _place(error, package),
                code="HLO501",
            ) from error
        return function
    return None


@custom_call(*(IDENTITIES - MANUAL_BOUNDARIES))
def identity(instruction: Instruction, operand: Value) -> Value:
    return operand


@custom_call(*MANUAL_BOUNDARIES)
def boundary(instruction: Instruction, *operands: Value) -> Value:
    """The operands, where they are no smaller or larger than the results; the others are rewritten
    before a module runs (see `hloopt.equivalence.manual_regions`)."""
    if [leaf.dimensions for leaf in instruction.shape.leaves()] != [
        operand.shape.dimensions for operand in instruction.operands
    ]:
        raise RunError("the SPMD partitioner has to run first", code="HLO501")
    return joined(instruction.shape, operands)


@custom_call(SHARDING_GROUP)
def sharding_group(instruction: Instruction, *operands: Value) -> Value:
    """Nothing: it ties the shardings of values together."""
    return ()


@custom_call(MOVED)
def moved(instruction: Instruction, operand: Value, level: Value) -> Value:
    return operand


@custom_call(*NEW_BUFFERS)
def allocate_buffer(instruction: Instruction) -> Value:
    return zeros(instruction.shape)


def _topk(plans: Plans, instruction: Instruction, operand: Array) -> Value:
    values, _ = instruction.shape.elements
    return top_values(operand, values.dimensions[-1], plans.limits.tick(), largest=True)


_THAT_TAKE_LONG: dict[str, Callable[..., Value]] = {
    "TopK": _topk,
    BLOCK_SCALED_DOT: block_scaled_dot,
    CUDNN_BLOCK_SCALED_DOT: cudnn_block_scaled_dot,
}
"""Functions that look at the limits of the run, unless a user has one for their target."""


custom_call(QUANTIZE)(quantize)
custom_call(DEQUANTIZE)(dequantize)
custom_call(ROTATE_RIGHT)(rotate_right)
custom_call(MULTI_ROTATE)(multi_rotate)
custom_call(MULTI_SLICE)(multi_slice)
custom_call(WRAP)(wrap)


@custom_call("PadToStatic")
def pad_to_static(instruction: Instruction, operand: Array) -> Value:
    """The operand with zeros up to its bounds, and the sizes that were left."""
    bounds = instruction.shape.elements[0].dimensions
    padding = [(0, bound - size) for bound, size in zip(bounds, operand.shape, strict=True)]
    return np.pad(operand, padding), *(np.array(size, np.int32) for size in operand.shape)


@custom_call("SliceToDynamic")
def slice_to_dynamic(instruction: Instruction, operand: Array, *sizes: Array) -> Array:
    return operand[tuple(slice(int(size)) for size in sizes)]
