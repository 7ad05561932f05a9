"""Collectives, whose shapes are always stated."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.values import parse_replica_groups
from hloopt.ir.shape_inference.operation import Operation, expect_array, show
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape


def infer_unchanged(operation: Operation) -> Shape:
    """The operand's shape, a tuple where there are several."""
    return _one_or_tuple(_arrays(operation))


def infer_collective_broadcast(operation: Operation) -> Shape:
    """The shapes of the operands; with a dynamic root without the last operand, which names it."""
    if not operation.flag("has_dynamic_root"):
        return infer_unchanged(operation)
    *data, _ = _arrays(operation)
    if not data:
        raise HloVerifyError("collective-broadcast with a dynamic root expects data and the root")
    return _one_or_tuple(data)


def infer_all_gather(operation: Operation) -> Shape:
    assert operation.stated is not None
    return _scaled(operation, operation.stated, gather=True)


def infer_reduce_scatter(operation: Operation) -> Shape:
    assert operation.stated is not None
    return _scaled(operation, operation.stated, gather=False)


def infer_all_gather_start(operation: Operation) -> Shape:
    elements = _operands_and_results(operation)
    operands = _one_or_tuple(_arrays(operation))
    results = _scaled(operation, elements[1], gather=True)
    return tuple_shape((operands, results, *elements[2:]))


def infer_collective_permute_start(operation: Operation) -> Shape:
    elements = _operands_and_results(operation)
    if "slice_sizes" in operation.attributes:
        return tuple_shape(elements)
    # Several operands may be anything: so does XLA combine what was permuted as tuples.
    operands = (
        infer_unchanged(operation)
        if len(operation.operands) == 1
        else tuple_shape(operation.operands)
    )
    return tuple_shape((operands, operands, *elements[2:]))


def _operands_and_results(start: Operation) -> Sequence[Shape]:
    """The elements of the stated tuple, of which there are at least these two."""
    assert start.stated is not None
    if len(start.stated.elements) < 2:
        raise HloVerifyError(
            f"{start.opcode} must have a tuple of operands and results; got {show(start.stated)}."
        )
    return start.stated.elements


def infer_collective_permute(operation: Operation) -> Shape:
    if "slice_sizes" in operation.attributes:  # writes into its second operand
        if len(operation.operands) != 4:
            raise HloVerifyError("an in-place collective-permute has 4 operands")
        return operation.operands[1]
    return infer_unchanged(operation)


def infer_all_to_all(operation: Operation) -> Shape:
    operands = _arrays(operation)
    if "dimensions" in operation.attributes:
        if any(operand.is_bounded_dynamic for operand in operands):
            raise HloVerifyError(
                f"AllToAll does not support bounded dynamic shapes: {show(*operands)}"
            )
        if not (0 <= operation.dimension() < operands[0].rank):
            raise HloVerifyError(
                f"all-to-all dimension {operation.dimension()} is out of bounds in "
                f"{show(operands[0])}."
            )
        return _one_or_tuple(operands)
    for operand in operands:
        if operand.is_unbounded_dynamic:
            raise HloVerifyError("AllToAllTuple does not support unbounded dynamic shapes")
        if operand.dimensions != operands[0].dimensions:
            raise HloVerifyError(
                f"all-to-all operands differ in size: {show(operands[0])} and {show(operand)}."
            )
    return tuple_shape(operands)


def infer_ragged_all_to_all(operation: Operation) -> Shape:
    return operation.take_operands(6)[1]


def _arrays(operation: Operation) -> Sequence[Shape]:
    if not operation.operands:
        raise HloVerifyError(f"{operation.opcode} expects an operand")
    for operand in operation.operands:
        expect_array(operand, f"operand of {operation.opcode}")
    return operation.operands


def _one_or_tuple(shapes: Sequence[Shape]) -> Shape:
    return shapes[0] if len(shapes) == 1 else tuple_shape(shapes)


def _scaled(operation: Operation, stated: Shape, *, gather: bool) -> Shape:
    """The operands with one dimension multiplied or divided by the number of shards.

    That number is the size of the replica groups; where partitions join in or there are no
    groups, it depends on the module's configuration and the stated shape decides.
    """
    operands = _arrays(operation)
    results = stated.elements if stated.is_tuple else (stated,)
    dimension = operation.dimension()
    if len(results) != len(operands):
        raise HloVerifyError(
            f"{operation.opcode} has {len(operands)} operands but {len(results)} results."
        )
    scaled: list[Shape] = []
    for operand, result in zip(operands, results, strict=True):
        if not (0 <= dimension < operand.rank and result.rank == operand.rank):
            raise HloVerifyError(
                f"{operation.opcode} dimension {dimension} is out of bounds: {show(operand)} to "
                f"{show(result)}."
            )
        sizes = list(operand.dimensions)
        small, large = sizes[dimension], result.dimensions[dimension]
        if not gather:
            small, large = large, small
        if min(small, large) >= 0:
            shards = _shard_count(operation, small, large)
            if gather:
                sizes[dimension] *= shards
            else:
                if sizes[dimension] % shards != 0:
                    raise HloVerifyError(
                        f"{operation.opcode} cannot divide dimension {dimension} of "
                        f"{show(operand)} "
                        f"into {shards} shards."
                    )
                sizes[dimension] //= shards
        scaled.append(array_shape(operand.type_name, tuple(sizes), operand.dynamic))
    return tuple_shape(scaled) if stated.is_tuple else scaled[0]


def _shard_count(operation: Operation, small: int, large: int) -> int:
    text = operation.attributes.get("replica_groups", "{}")
    groups = parse_replica_groups(text)
    crosses_both = "channel_id" in operation.attributes and not operation.flag(
        "use_global_device_ids"
    )
    if groups.group_count and groups.group_size > 1 and not crosses_both:
        return groups.group_size
    return max(large // small, 1) if small else 1
