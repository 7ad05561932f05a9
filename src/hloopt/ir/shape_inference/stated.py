"""Result shapes of operations whose shape is always stated, as far as operands decide them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes import values as attribute_values
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference.control_flow import infer_operand
from hloopt.ir.shape_inference.operation import Operation, expect_array, show, show_type
from hloopt.ir.shapes.element_type import ElementType
from hloopt.ir.shapes.shape import Shape, agree, array_shape, same_kind, tuple_shape


def stated_array(operation: Operation) -> Shape:
    """The stated shape, which must be an array. Raises HloVerifyError."""
    assert operation.stated is not None
    expect_array(operation.stated, f"result of {operation.opcode}")
    return operation.stated


def _operand_array(operation: Operation) -> Shape:
    if not operation.operands:
        raise HloVerifyError(f"{operation.opcode} expects an operand")
    expect_array(operation.operands[0], f"operand of {operation.opcode}")
    return operation.operands[0]


def _convert(operation: Operation) -> Shape:
    operand, stated = _operand_array(operation), stated_array(operation)
    return array_shape(stated.type_name, operand.dimensions, operand.dynamic)


def _bitcast_convert(operation: Operation) -> Shape:
    """The sizes of the operand, with a dimension more or less where widths differ.

    A pred counts as a byte.
    """
    operand, stated = _operand_array(operation), stated_array(operation)
    old, new = _element_type(operand), _element_type(stated)
    if old.kind == "complex" != new.kind == "complex":
        raise HloVerifyError(
            f"bitcast-convert between real and complex types: {show(operand)} to {show(stated)}."
        )
    old_bits, new_bits = (8 if t.name == "pred" else t.bits for t in (old, new))
    sizes, dynamic = operand.dimensions, operand.dynamic
    if old_bits < new_bits:
        if not (sizes and sizes[-1] in (new_bits // old_bits, -1)):
            raise HloVerifyError(
                f"Last dimension of {show(operand)} must be {new_bits // old_bits} to become "
                f"{show(stated)}."
            )
        sizes, dynamic = sizes[:-1], dynamic[:-1]
    elif old_bits > new_bits:
        sizes, dynamic = (*sizes, old_bits // new_bits), (*dynamic, False)
    return array_shape(stated.type_name, sizes, dynamic)


def _element_type(shape: Shape) -> ElementType:
    assert shape.element_type is not None
    return shape.element_type


def _stochastic_convert(operation: Operation) -> Shape:
    operand, random = operation.take_operands(2)
    expect_array(operand, "operand of stochastic-convert")
    expect_array(random, "random number of stochastic-convert")
    if _element_type(operand).bits != _element_type(random).bits:
        raise HloVerifyError("The random number is required to have same bits as the operand.")
    if _element_type(random).kind != "unsigned":
        raise HloVerifyError(
            f"Random numbers for stochastic-convert must be unsigned; got {show(random)}."
        )
    if (operand.dimensions, operand.dynamic) != (random.dimensions, random.dynamic):
        raise HloVerifyError(
            f"Operand and random number of stochastic-convert differ in size: {show(operand)} and "
            f"{show(random)}."
        )
    return _convert(operation)


def _broadcast(operation: Operation) -> Shape:
    """The stated shape, in which each operand dimension must find its place."""
    operand, stated = _operand_array(operation), stated_array(operation)
    if stated.is_unbounded_dynamic:
        raise HloVerifyError(
            f"is_unbounded_dynamic: the result of broadcast is unbounded: {show(stated)}"
        )
    dimensions = operation.optional_ints("dimensions")
    if len(dimensions) != operand.rank:
        raise HloVerifyError(f"broadcast of {show(operand)} has {len(dimensions)} dimensions.")
    if len(set(dimensions)) != len(dimensions):
        raise HloVerifyError("a dimension number is duplicated in broadcast")
    for i, dimension in enumerate(dimensions):
        if not (0 <= dimension < stated.rank):
            raise HloVerifyError(
                f"broadcast dimension {dimension} is out of bounds in {show(stated)}."
            )
        if operand.dimensions[i] not in (stated.dimensions[dimension], -1):
            raise HloVerifyError(
                f"Input dimension {i} of {show(operand)} must equal output dimension {dimension} "
                f"of {show(stated)}."
            )
    return array_shape(operand.type_name, stated.dimensions, stated.dynamic)


def _reshape(operation: Operation) -> Shape:
    operand, stated = _operand_array(operation), stated_array(operation)
    if stated.is_unbounded_dynamic:
        raise HloVerifyError("Reshaping with unbounded result shape is not supported.")
    if operand.is_unbounded_dynamic:
        if operand.is_bounded_dynamic:
            raise HloVerifyError(
                "Reshape operand with bounded and unbounded dynamism not supported."
            )
    else:
        before, after = prod(operand.dimensions), prod(stated.dimensions)
        if before != after:
            raise HloVerifyError(
                "Reshape operation has mismatched element counts: "
                f"from={before} ({show(operand)}) to={after} ({show(stated)})."
            )
    return array_shape(operand.type_name, stated.dimensions, stated.dynamic)


def _iota(operation: Operation) -> Shape:
    stated = stated_array(operation)
    dimension = operation.integer("iota_dimension")
    if not (0 <= dimension < stated.rank):
        raise HloVerifyError(
            f"The iota dimension cannot go beyond the operation rank: {dimension} in "
            f"{show(stated)}."
        )
    return stated


def _slice(operation: Operation) -> Shape:
    """The sliced sizes; a dimension taken whole stays dynamic."""
    operand = _operand_array(operation)
    slices = attribute_values.parse_slices(operation.attribute("slice"))
    if len(slices) != operand.rank:
        raise HloVerifyError(
            f"Slice has {len(slices)} dimensions, its operand {show(operand)} {operand.rank}."
        )
    sizes: list[int] = []
    dynamic: list[bool] = []
    for i, part in enumerate(slices):
        bound = operand.dimensions[i]
        if part.stride <= 0:
            raise HloVerifyError(f"Stride ({part.stride}) must be positive.")
        if not (0 <= part.start <= part.limit):
            raise HloVerifyError(
                f"Slice start {part.start} and limit {part.limit} in dimension {i} are no range."
            )
        if not (part.limit <= bound or bound < 0):
            raise HloVerifyError(
                f"limit index ({part.limit}) must be less than or equal to dimension size ({bound})"
            )
        size = (part.limit - part.start + part.stride - 1) // part.stride
        sizes.append(size)
        dynamic.append(operand.dynamic[i] and bound >= 0 and size != 1)
    return array_shape(operand.type_name, tuple(sizes), tuple(dynamic))


def _dynamic_slice(operation: Operation) -> Shape:
    operand = _operand_array(operation)
    sizes = operation.ints("dynamic_slice_sizes")
    if len(sizes) != operand.rank:
        raise HloVerifyError(
            f"Dynamic slice has {len(sizes)} sizes, its operand {show(operand)} {operand.rank}."
        )
    _check_start_indices(operation, 1)
    for size, bound in zip(sizes, operand.dimensions, strict=True):
        if not (size >= 0 and (size <= bound or bound < 0)):
            raise HloVerifyError(
                f"Slice size {size} is out of range for dimension size {bound} in dynamic-slice of "
                f"{show(operand)}."
            )
    return array_shape(
        operand.type_name,
        sizes,
        tuple(
            is_dynamic and size == bound
            for size, bound, is_dynamic in zip(
                sizes, operand.dimensions, operand.dynamic, strict=True
            )
        ),
    )


def _dynamic_update_slice(operation: Operation) -> Shape:
    operand = _operand_array(operation)
    if len(operation.operands) < 2:
        raise HloVerifyError("dynamic-update-slice expects an update")
    update = operation.operands[1]
    expect_array(update, "update of dynamic-update-slice")
    _check_start_indices(operation, 2)
    fits = update.rank == operand.rank and all(
        size <= bound or min(size, bound) < 0
        for size, bound in zip(update.dimensions, operand.dimensions, strict=True)
    )
    if not fits:
        raise HloVerifyError(f"Update {show(update)} does not fit into {show(operand)}.")
    if not same_kind(operand, update):
        raise HloVerifyError(
            "Dynamic update slice update element type does not match argument: "
            f"{show(update)} and {show(operand)}."
        )
    return operand


def _check_start_indices(operation: Operation, first: int) -> None:
    """The indices are scalars, one per dimension, or one vector of them."""
    rank = operation.operands[0].rank
    indices = operation.operands[first:]
    for index in indices:
        expect_array(index, f"start index of {operation.opcode}")
        if not _element_type(index).is_integral:
            raise HloVerifyError(
                f"{operation.opcode} start indices must be of integral type; got {show(index)}."
            )
        if index.element_type is not indices[0].element_type:
            raise HloVerifyError(
                f"{operation.opcode} start indices must all have the same shape; got "
                f"{show(indices[0])} and {show(index)}."
            )
    if len(indices) == 1 and indices[0].rank == 1:
        if indices[0].dimensions[0] not in (rank, -1):
            raise HloVerifyError(
                f"{operation.opcode} start indices {show(indices[0])} do not match rank {rank}."
            )
        return
    if not (len(indices) == rank and all(index.is_scalar for index in indices)):
        raise HloVerifyError(
            f"{operation.opcode} expects {rank} scalar start indices; got ({show(*indices)})."
        )


def _copy_start(operation: Operation) -> Shape:
    (operand,) = operation.take_operands(1)
    return tuple_shape((operand, operand, array_shape("u32")))


def _copy_done(operation: Operation) -> Shape:
    return _tuple_part(operation, 0)


def _async_result(operation: Operation) -> Shape:
    return _tuple_part(operation, 1)


def _tuple_part(operation: Operation, index: int) -> Shape:
    (operand,) = operation.take_operands(1)
    if len(operand.elements) <= index:
        raise HloVerifyError(
            f"The operand of {operation.opcode} must be the tuple of its start; got "
            f"{show(operand)}."
        )
    return operand.elements[index]


def _reduce_precision(operation: Operation) -> Shape:
    operand = _operand_array(operation)
    if not _element_type(operand).is_floating:
        raise HloVerifyError(
            "Expected element type in shape to be floating point for ReducePrecision operation; "
            f"got {show_type(operand)}."
        )
    exponent, mantissa = operation.integer("exponent_bits"), operation.integer("mantissa_bits")
    if exponent < 1:
        raise HloVerifyError(f"Expected exponent_bits >= 1; got {exponent}.")
    if mantissa < 0:
        raise HloVerifyError(f"Expected non-negative mantissa_bits; got {mantissa}.")
    return operand


def _dynamic_reshape(operation: Operation) -> Shape:
    """The stated sizes, with one s32 operand for each."""
    operand, stated = _operand_array(operation), stated_array(operation)
    sizes = operation.take_operands(1 + stated.rank)[1:]
    for number, size in enumerate(sizes, 1):
        if size.type_name != "s32":
            raise HloVerifyError(
                f"The sizes of dynamic-reshape must be s32; operand {number} is {show(size)}."
            )
    before, after = prod(operand.dimensions), prod(stated.dimensions)
    if before != after:
        raise HloVerifyError(
            "dynamic-reshape has mismatched element counts: "
            f"from={before} ({show(operand)}) to={after} ({show(stated)})."
        )
    return array_shape(operand.type_name, stated.dimensions, stated.dynamic)


def _bitcast(operation: Operation) -> Shape:
    """The stated shape: layouts decide what a bitcast makes of the bytes of its operand."""
    assert operation.stated is not None
    operation.take_operands(1)
    return operation.stated


def _rng(operation: Operation) -> Shape:
    """The stated array, of the type of two scalars: bounds, or mean and deviation."""
    for parameter in operation.take_operands(2):
        if not parameter.is_scalar:
            raise HloVerifyError(
                "Expected scalar types for the two operands of Rng instruction; got "
                f"{show(parameter)}."
            )
    stated = stated_array(operation)
    return array_shape(operation.operands[0].type_name, stated.dimensions, stated.dynamic)


def _rng_bit_generator(operation: Operation) -> Shape:
    """The new state, as the old one, and the stated array; or that array alone."""
    assert operation.stated is not None
    (state,) = operation.take_operands(1)
    if operation.stated.is_array:
        return operation.stated
    if len(operation.stated.elements) != 2:
        raise HloVerifyError(
            "Expected tuple shape with 2 elements for RngBitGenerator. Got: "
            f"{show(operation.stated)}"
        )
    if not agree(state, operation.stated.elements[0]):
        raise HloVerifyError(
            "Expected state shape to match between input and output for RngBitGenerator. Got "
            f"{show(state)} vs. {show(operation.stated.elements[0])}"
        )
    return tuple_shape((state, operation.stated.elements[1]))


def _rng_state(operation: Operation) -> Shape:
    operation.take_operands(0)
    return array_shape("u64", (2,))


def _fusion(operation: Operation) -> Shape:
    return operation.take_callees(1)[0].root.shape


STATED_RULES: dict[Opcode, Callable[[Operation], Shape]] = {
    Opcode.CONVERT: _convert,
    Opcode.BITCAST_CONVERT: _bitcast_convert,
    Opcode.STOCHASTIC_CONVERT: _stochastic_convert,
    Opcode.REDUCE_PRECISION: _reduce_precision,
    Opcode.OPT_BARRIER: infer_operand,
    Opcode.BROADCAST: _broadcast,
    Opcode.RESHAPE: _reshape,
    Opcode.IOTA: _iota,
    Opcode.SLICE: _slice,
    Opcode.DYNAMIC_SLICE: _dynamic_slice,
    Opcode.DYNAMIC_UPDATE_SLICE: _dynamic_update_slice,
    Opcode.COPY_START: _copy_start,
    Opcode.COPY_DONE: _copy_done,
    Opcode.ALL_GATHER_DONE: _async_result,
    Opcode.COLLECTIVE_PERMUTE_DONE: _async_result,
    Opcode.ALL_REDUCE_DONE: infer_operand,
    Opcode.FUSION: _fusion,
    Opcode.DYNAMIC_RESHAPE: _dynamic_reshape,
    Opcode.BITCAST: _bitcast,
    Opcode.RNG: _rng,
    Opcode.RNG_BIT_GENERATOR: _rng_bit_generator,
    Opcode.RNG_GET_AND_UPDATE_STATE: _rng_state,
}
"""The rule by which the result follows from operands and the stated shape."""


def with_stated_type(operation: Operation, inferred: Shape) -> Shape:
    """`inferred` with the element type of the stated array, which the operands leave open."""
    assert operation.stated is not None
    if operation.stated.is_tuple:
        return inferred
    layout = inferred.layout._replace(element_bits=0)
    return array_shape(operation.stated.type_name, inferred.dimensions, inferred.dynamic, layout)
