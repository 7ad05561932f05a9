"""Rules for dynamic-slice and dynamic-update-slice."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import PaddingDimension, Slice, parse_ints
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import integer_range, scalar_of
from hloopt.passes.rewriting.rules.pattern import op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.shapes import has_zero, kept_by_ones
from hloopt.passes.simplification.algsimp.signatures import (
    is_as_its_operand,
    may_have_constant_offsets,
    reads,
    takes_whole,
)

_SLICE = op("dynamic-slice").where(lambda i: not i.parent.is_asynchronous)
_UPDATE = op("dynamic-update-slice").where(lambda i: not i.parent.is_asynchronous)
_OVERFLOWS = Missed("the sum of the offsets may overflow")
_HOST_CHAIN = (Opcode.RESHAPE, Opcode.BITCAST, Opcode.COPY)


def offsets_of(instruction: Instruction) -> list[Instruction] | None:
    """The offsets, one scalar for each dimension; None where they are in one array."""
    first = 1 if instruction.opcode is Opcode.DYNAMIC_SLICE else 2
    offsets = instruction.operands[first:]
    if len(offsets) != instruction.operands[0].shape.rank:
        return None
    part = instruction if first == 1 else instruction.operands[1]
    if part.shape.rank != len(offsets):
        return None
    return None if any(o.shape.dimensions for o in offsets) else offsets


def sizes_of(dynamic_slice: Instruction) -> tuple[int, ...]:
    return parse_ints(dynamic_slice.attributes.get("dynamic_slice_sizes", "{}"))


@rule(_SLICE, dynamic=True, signature=is_as_its_operand)
def dynamic_slice_of_whole(m: AlgsimpMatch) -> Result:
    """A dynamic-slice with the shape of its operand → operand: offsets are clamped to 0."""
    x = m.root.operands[0]
    return m.if_compatible(x) if m.same_shape(x, m.root) else None


@rule(
    op(("dynamic-slice", "dynamic-update-slice")).where(lambda i: not i.parent.is_asynchronous),
    signature=takes_whole,
)
def offsets_of_whole_dimensions(m: AlgsimpMatch) -> Result:
    """Offsets of dimensions that are taken whole → 0, to which they are clamped."""
    offsets = offsets_of(m.root)
    if offsets is None:
        return None
    is_slice = m.root.opcode is Opcode.DYNAMIC_SLICE
    part = m.root.shape if is_slice else m.root.operands[1].shape
    whole = m.root.operands[0].shape.dimensions
    new: list[Instruction] = []
    for offset, size, taken in zip(offsets, whole, part.dimensions, strict=True):
        is_fixed = size == taken and scalar_of(offset) != 0
        new.append(m.build.scalar(0, offset.shape) if is_fixed else offset)
    if new == offsets:
        return None
    return m.build.clone(m.root, [*m.root.operands[: -len(offsets)], *new], m.root.shape)


@rule(_SLICE, signature=reads("broadcast"))
def dynamic_slice_of_broadcast(m: AlgsimpMatch) -> Result:
    """dynamic-slice(broadcast(x)) → broadcast(dynamic-slice(x)), or broadcast(x) where no
    dimension of x is sliced."""
    spread, offsets = m.root.operands[0], offsets_of(m.root)
    if offsets is None:
        return None
    places = dimensions_of(spread)
    (x,) = spread.operands
    taken = [m.root.shape.dimensions[d] for d in places]
    if x.shape.dimensions:
        x = m.build.dynamic_slice(x, [offsets[d] for d in places], taken)
    return m.build.broadcast(x, places, m.root.shape)


@rule(_SLICE, layouts="insensitive", signature=reads("reshape"))
def dynamic_slice_of_reshape(m: AlgsimpMatch) -> Result:
    """dynamic-slice(reshape(x)) → reshape(dynamic-slice(x)) where the reshape only inserts or
    deletes dimensions of size 1."""
    reshape, offsets = m.root.operands[0], offsets_of(m.root)
    if not offsets:
        return None
    (x,) = reshape.operands
    before, after = x.shape.dimensions, reshape.shape.dimensions
    kept = kept_by_ones(before, after)
    if kept is None or 0 in m.root.shape.dimensions:
        return None
    starts = [
        offsets[kept[d]] if d in kept else m.build.scalar(0, offsets[0].shape)
        for d in range(len(before))
    ]
    sizes = [m.root.shape.dimensions[kept[d]] if d in kept else 1 for d in range(len(before))]
    return m.build.reshape(m.build.dynamic_slice(x, starts, sizes), m.root.shape)


@rule(_SLICE, layouts="insensitive", signature=reads("transpose"))
def dynamic_slice_of_transpose(m: AlgsimpMatch) -> Result:
    """dynamic-slice(transpose(x)) → transpose(dynamic-slice(x))."""
    transpose, offsets = m.root.operands[0], offsets_of(m.root)
    if offsets is None:
        return None
    order = dimensions_of(transpose)
    place = {old: new for new, old in enumerate(order)}
    starts = [offsets[place[d]] for d in range(len(order))]
    sizes = [m.root.shape.dimensions[place[d]] for d in range(len(order))]
    part = m.build.dynamic_slice(transpose.operands[0], starts, sizes)
    return m.build.transpose(part, order, m.root.shape)


@rule(_SLICE, signature=may_have_constant_offsets)
def dynamic_slice_to_slice(m: AlgsimpMatch) -> Result:
    """A dynamic-slice with constant offsets → slice at the offsets, those that are too
    large clamped."""
    if m.options.disable_dynamic_slice_to_slice_conversion:
        return None
    x, offsets = m.root.operands[0], offsets_of(m.root)
    if offsets is None or x.opcode is Opcode.CONSTANT:
        return None
    if m.layout_sensitive and x.shape.layout.memory_space != m.root.shape.layout.memory_space:
        return None
    slices: list[Slice] = []
    for offset, size, taken in zip(
        offsets, x.shape.dimensions, m.root.shape.dimensions, strict=True
    ):
        start = scalar_of(offset)
        if not isinstance(start, int):
            return None
        if start < 0:
            return Missed(f"%{offset.name} is negative")
        start = min(start, size - taken)
        slices.append(Slice(start, start + taken))
    return m.build.slice(x, slices, m.root.shape)


@rule(_SLICE, signature=reads("iota", "multiply"))
def dynamic_slice_of_iota(m: AlgsimpMatch) -> Result:
    """One element of a rank-1 iota, or of iota·broadcast(k) → the clamped offset, times k."""
    offsets = offsets_of(m.root)
    if offsets is None or m.root.shape.dimensions != (1,):
        return None
    if m.root.shape.type_name not in ("s32", "u32"):
        return None
    source, factor = m.root.operands[0], None
    if source.opcode is Opcode.MULTIPLY:
        source, spread = source.operands
        if spread.opcode is Opcode.IOTA:
            source, spread = spread, source
        if spread.opcode is not Opcode.BROADCAST or not spread.operands[0].shape.is_scalar:
            return None
        (factor,) = spread.operands
    if source.opcode is not Opcode.IOTA:
        return None
    build, (offset,) = m.build, offsets
    size = source.shape.dimensions[0]
    kind = offset.shape.element_type
    if kind is None or integer_range(kind)[1] < size - 1:
        return Missed(f"%{offset.name} does not hold all offsets")
    low, high = build.scalar(0, offset.shape), build.scalar(size - 1, offset.shape)
    clamped = build.make("clamp", low, offset, high, shape=offset.shape)
    result = clamped
    if offset.shape.type_name != m.root.shape.type_name:
        result = build.convert(clamped, m.root.shape.type_name)
    if factor is not None:
        result = build.make("multiply", result, factor)
    return build.reshape(result, m.root.shape)


@rule(_SLICE, signature=reads("dynamic-slice"))
def dynamic_slice_of_dynamic_slice(m: AlgsimpMatch) -> Result:
    """dynamic-slice(dynamic-slice(x, i), j) → dynamic-slice(x, i + j), both clamped to where they
    take something."""
    inner, outer = m.root.operands[0], offsets_of(m.root)
    if outer is None:
        return None
    first = offsets_of(inner)
    if first is None or inner.has_control_dependencies:
        return None
    x = inner.operands[0]
    if any(a.shape is not b.shape for a, b in zip(first, outer, strict=True)):
        return Missed("the offsets have different types")
    starts = _added(
        m, first, outer, x.shape.dimensions, inner.shape.dimensions, m.root.shape.dimensions
    )
    if starts is None:
        return _OVERFLOWS
    return m.build.dynamic_slice(x, starts, m.root.shape.dimensions, m.root.shape)


def _added(
    m: AlgsimpMatch,
    first: Sequence[Instruction],
    second: Sequence[Instruction],
    whole: Sequence[int],
    between: Sequence[int],
    taken: Sequence[int],
) -> list[Instruction] | None:
    """Offsets into a part of a part, as offsets into the whole; None where a sum overflows."""
    starts = []
    for a, b, size, middle, part in zip(first, second, whole, between, taken, strict=True):
        outer, inner = _clamped(m, a, size - middle), _clamped(m, b, middle - part)
        if scalar_of(inner) == 0:
            starts.append(outer)
        elif scalar_of(outer) == 0:
            starts.append(inner)
        elif _most(a, size - middle) + _most(b, middle - part) > _most(a, size):
            return None
        else:
            starts.append(m.build.make("add", outer, inner))
    return starts


def _most(offset: Instruction, bound: int) -> int:
    """The largest value up to a bound that the type of an offset holds."""
    kind = offset.shape.element_type
    return bound if kind is None else min(bound, integer_range(kind)[1])


def _clamped(m: AlgsimpMatch, offset: Instruction, most: int) -> Instruction:
    """An offset as it counts: between 0 and `most`."""
    value = scalar_of(offset)
    if isinstance(value, int):
        if 0 <= value <= most:
            return offset
        return m.build.scalar(min(max(value, 0), most), offset.shape)
    if most == 0:
        return m.build.scalar(0, offset.shape)
    low = m.build.scalar(0, offset.shape)
    high = m.build.scalar(_most(offset, most), offset.shape)
    return m.build.make("clamp", low, offset, high, shape=offset.shape)


# -- dynamic-update-slice -------------------------------------------------------------------------


@rule(_UPDATE, signature=reads("broadcast"))
def update_to_pad(m: AlgsimpMatch) -> Result:
    """A dynamic-update-slice of a broadcast scalar at constant offsets → pad of the update."""
    whole, part = m.root.operands[:2]
    offsets = offsets_of(m.root)
    if offsets is None:
        return None
    (scalar,) = whole.operands
    if not scalar.shape.is_scalar or scalar.shape.element_type is not part.shape.element_type:
        return None
    padding: list[PaddingDimension] = []
    for offset, size, taken in zip(
        offsets, whole.shape.dimensions, part.shape.dimensions, strict=True
    ):
        start = scalar_of(offset)
        if not isinstance(start, int):
            return None
        start = min(max(start, 0), size - taken)
        padding.append(PaddingDimension(start, size - taken - start))
    source = part
    while source.opcode in _HOST_CHAIN:
        (source,) = source.operands
    if custom_call_target(source) == "MoveToHost":
        return Missed(f"%{source.name} moves the update to the host")
    return m.build.pad(part, scalar, padding, m.root.shape)


@rule(_UPDATE, dynamic=True)
def update_of_whole(m: AlgsimpMatch) -> Result:
    """A dynamic-update-slice by an update of the same shape → update."""
    part = m.root.operands[1]
    return m.if_compatible(part) if m.same_shape(part, m.root) else None


@rule(_UPDATE, dynamic=True)
def update_of_nothing(m: AlgsimpMatch) -> Result:
    """A dynamic-update-slice by an update without elements → operand."""
    whole, part = m.root.operands[:2]
    return m.if_compatible(whole) if has_zero(part.shape) else None


@rule(_UPDATE)
def update_of_part(m: AlgsimpMatch) -> Result:
    """dus(a, dus(dynamic-slice(a, i), c, j), i) → dus(a, c, i + j), both clamped to where they
    change something."""
    whole, inner = m.root.operands[:2]
    if inner.opcode is not Opcode.DYNAMIC_UPDATE_SLICE:
        return None
    part, change = inner.operands[:2]
    if part.opcode is not Opcode.DYNAMIC_SLICE or part.operands[0] is not whole:
        return None
    outer, read, offsets = offsets_of(m.root), offsets_of(part), offsets_of(inner)
    if outer is None or read != outer or offsets is None:
        return None
    if any(a.shape is not b.shape for a, b in zip(outer, offsets, strict=True)):
        return Missed("the offsets have different types")
    starts = _added(
        m, outer, offsets, whole.shape.dimensions, inner.shape.dimensions, change.shape.dimensions
    )
    if starts is None:
        return _OVERFLOWS
    return m.build.make("dynamic-update-slice", whole, change, *starts, shape=m.root.shape)


RULES = (
    dynamic_slice_of_whole,
    update_to_pad,
    update_of_whole,
    offsets_of_whole_dimensions,
    dynamic_slice_of_broadcast,
    dynamic_slice_of_reshape,
    dynamic_slice_of_transpose,
    dynamic_slice_to_slice,
    dynamic_slice_of_iota,
    dynamic_slice_of_dynamic_slice,
    update_of_nothing,
    update_of_part,
)
