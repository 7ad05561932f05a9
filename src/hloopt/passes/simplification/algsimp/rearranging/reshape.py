"""Rules for reshape and transpose."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import Slice
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import nest_values
from hloopt.passes.rewriting.rules.pattern import op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.shapes import (
    common_factors,
    is_identity,
    is_sorted,
    kept_by_ones,
    order_of_bitcast,
    transpose_moves_only_ones,
    unmodified,
)
from hloopt.passes.simplification.algsimp.signatures import (
    is_as_its_operand,
    is_empty,
    permutes_ones,
)
from hloopt.passes.simplification.algsimp.terms import kind_of

_EXACT = {"f64": 1 << 53, "f32": 1 << 24, "f16": 1 << 11, "bf16": 1 << 8}
_MOST_CHUNKS = 5


@rule(op("reshape", "x"), moves_control=True, signature=is_empty)
def reshape_of_empty(m: AlgsimpMatch) -> Result:
    """A reshape without elements → constant."""
    return m.build.make(
        "constant", shape=m.root.shape, payload=nest_values((), m.root.shape.dimensions)
    )


@rule(op("reshape", "x"), dynamic=True, signature=is_as_its_operand)
def reshape_to_same_shape(m: AlgsimpMatch) -> Result:
    """A reshape to the shape of its operand → operand."""
    return m.x if m.same_shape(m.x, m.root) else None


@rule(op("reshape", op("reshape", "x")), moves_control=True)
def reshape_of_reshape(m: AlgsimpMatch) -> Result:
    """reshape(reshape(x)) → reshape(x)."""
    return m.build.reshape(m.x, m.root.shape)


@rule(op("reshape", op("rng").one_use().named("rng")))
def reshape_of_rng(m: AlgsimpMatch) -> Result:
    """reshape(rng) → rng of that shape, where it has no other user: it draws the same numbers in
    the same order."""
    if m.rng.has_control_dependencies:
        return None
    return m.build.clone(m.rng, m.rng.operands, m.root.shape)


@rule(
    op("reshape", op("transpose", op("reshape", "x").named("inner")).named("transpose")),
    layouts="insensitive",
    option="enable_hoist_transpose_of_reshape",
)
def hoist_transpose(m: AlgsimpMatch) -> Result:
    """reshape(transpose(reshape(x))) → transpose(reshape(x)) where the outer reshape only merges
    runs of dimensions that are contiguous before the transpose."""
    order = dimensions_of(m.transpose)
    sizes = m.transpose.shape.dimensions
    if not m.root.shape.element_count():
        return None
    starts: list[int] = []
    for group in common_factors(sizes, m.root.shape.dimensions):
        if len(group.after) != 1 or not group.before:
            return Missed("the outer reshape does more than merging dimensions")
        run = [order[d] for d in group.before]
        if run != list(range(run[0], run[0] + len(run))):
            return Missed("it merges dimensions that are apart before the transpose")
        starts.append(run[0])
    if len(starts) == len(sizes):
        return None
    places = sorted(range(len(starts)), key=starts.__getitem__)
    merged = [m.root.shape.dimensions[d] for d in places]
    new_order = [places.index(d) for d in range(len(starts))]
    return m.build.transpose(m.build.reshape(m.x, merged), new_order, m.root.shape)


@rule(op("reshape", op("broadcast", "x").named("spread")), moves_control=True)
def reshape_of_broadcast(m: AlgsimpMatch) -> Result:
    """reshape(broadcast(x)) → broadcast(x) where the reshape leaves the dimensions of x as they
    are; those of size 1 are dropped first."""
    kept = unmodified(m.spread.shape.dimensions, m.root.shape.dimensions)
    places = dimensions_of(m.spread)
    sizes = m.x.shape.dimensions
    wide = [d for d, size in enumerate(sizes) if size != 1]
    if not m.root.shape.element_count() or any(places[d] not in kept for d in wide):
        return None
    mapped = [kept[places[d]] for d in wide]
    x = m.x
    if len(wide) < len(sizes):
        x = m.build.reshape(m.x, [sizes[d] for d in wide])
    return m.build.broadcast(x, mapped, m.root.shape)


@rule(op("reshape", op("iota").named("iota")), moves_control=True)
def reshape_of_iota(m: AlgsimpMatch) -> Result:
    """reshape(iota) → iota where the counted dimension stays; where it is split, the sum of an
    iota for each part times its stride."""
    before, after = m.iota.shape.dimensions, m.root.shape.dimensions
    counted = int(m.iota.attributes["iota_dimension"])
    if not m.root.shape.element_count() or before[counted] == 1:
        return None
    old = [d for d, size in enumerate(before) if size != 1]
    new = [d for d, size in enumerate(after) if size != 1]
    groups = common_factors([before[d] for d in old], [after[d] for d in new])
    group = next(g for g in groups if old.index(counted) in g.before)
    if len(group.before) > 1:
        return None
    parts = [new[n] for n in group.after]
    if len(parts) == 1:
        return m.build.iota(m.root.shape, parts[0])
    if kind_of(m.root) not in ("signed", "unsigned"):
        exact = _EXACT.get(m.root.shape.type_name, 0)
        if before[counted] > exact:
            return Missed(f"{m.root.shape.type_name} does not hold all numbers up to the size")
    stride = after[parts[-1]]
    total = m.build.iota(m.root.shape, parts[-1])
    for dimension in reversed(parts[:-1]):
        factor = m.build.splat(stride, m.root.shape)
        term = m.build.iota(m.root.shape, dimension)
        term = m.build.make("multiply", term, factor, shape=m.root.shape)
        total = m.build.make("add", total, term, shape=m.root.shape)
        stride *= after[dimension]
    return total


@rule(
    op("reshape", op("dynamic-update-slice").one_use().named("update")),
    layouts="insensitive",
    moves_control=True,
)
def reshape_of_update(m: AlgsimpMatch) -> Result:
    """reshape(dus(x, u, i)) → dus(reshape(x), reshape(u), i) where the reshape only inserts or
    deletes dimensions of size 1."""
    whole, part, *offsets = m.update.operands
    before, after = m.update.shape.dimensions, m.root.shape.dimensions
    kept = kept_by_ones(before, after)
    if kept is None or any("sharding" in i.attributes for i in (m.root, m.update)):
        return None
    if any(part.shape.dimensions[d] != 1 for d in range(len(before)) if d not in kept):
        return None
    place = {new: old for old, new in kept.items()}
    zero = next((o for o in offsets), None)
    if zero is None:
        return None
    sizes = [part.shape.dimensions[place[d]] if d in place else 1 for d in range(len(after))]
    starts = [
        offsets[place[d]] if d in place else m.build.scalar(0, zero.shape)
        for d in range(len(after))
    ]
    target = m.build.reshape(whole, after)
    update = m.build.reshape(part, sizes)
    return m.build.make("dynamic-update-slice", target, update, *starts, shape=m.root.shape)


@rule(
    op("reshape", op("transpose", op("reshape", "x").named("split")).one_use().named("transpose")),
    layouts="insensitive",
    option="rewrite_reshape_transpose_as_slice_concatenate",
)
def space_to_depth(m: AlgsimpMatch) -> Result:
    """reshape(transpose(reshape(x))) that splits a dimension into at most 5 chunks and merges
    these further in front → reshape(concatenate(slices of x))."""
    sizes = m.x.shape.dimensions
    chunk = _split_dimension(sizes, m.split.shape.dimensions)
    if chunk is None:
        return None
    order = dimensions_of(m.transpose)
    place = order.index(chunk)
    rest = [d for d in order if d != chunk]
    if not is_sorted(rest) or not 0 < place < chunk:
        return None
    turned = m.transpose.shape.dimensions
    merged = (*turned[: place - 1], turned[place - 1] * turned[place], *turned[place + 1 :])
    if m.root.shape.dimensions != merged:
        return None
    count = m.split.shape.dimensions[chunk]
    if not 1 < count <= _MOST_CHUNKS:
        return Missed(f"it splits a dimension into more than {_MOST_CHUNKS} parts")
    size = sizes[chunk] // count
    parts = []
    for number in range(count):
        slices = [Slice(0, s) for s in sizes]
        slices[chunk] = Slice(number * size, (number + 1) * size)
        parts.append(m.build.slice(m.x, slices))
    along = order[place + 1]
    along -= along > chunk
    return m.build.reshape(m.build.concatenate(parts, along), m.root.shape)


def _split_dimension(before: tuple[int, ...], after: tuple[int, ...]) -> int | None:
    """The one dimension that a reshape splits in two; None for another reshape."""
    if len(after) != len(before) + 1:
        return None
    for d in range(len(before)):
        whole = (*after[:d], after[d] * after[d + 1], *after[d + 2 :])
        if whole == before and after[d] > 1 and after[d + 1] > 1:
            return d
    return None


@rule(op("transpose", "x"), dynamic=True, signature=is_as_its_operand)
def transpose_identity(m: AlgsimpMatch) -> Result:
    """A transpose that keeps the order of dimensions → operand."""
    return m.if_compatible(m.x) if is_identity(dimensions_of(m.root)) else None


@rule(op("transpose", op("transpose", "x").named("inner")))
def transpose_of_transpose(m: AlgsimpMatch) -> Result:
    """transpose(transpose(x)) → transpose(x)."""
    inner = dimensions_of(m.inner)
    order = [inner[d] for d in dimensions_of(m.root)]
    if is_identity(order) and m.same_shape(m.x, m.root):
        return m.x
    return m.build.transpose(m.x, order, m.root.shape)


@rule(op("transpose", "x"), signature=permutes_ones)
def transpose_to_reshape(m: AlgsimpMatch) -> Result:
    """A transpose that moves only dimensions of size 1 → reshape."""
    if is_identity(dimensions_of(m.root)) or not transpose_moves_only_ones(m.root):
        return None
    if m.layout_sensitive and not _same_order(m.x, m.root):
        return None
    return m.build.reshape(m.x, m.root.shape)


def _same_order(x: Instruction, root: Instruction) -> bool:
    """Whether dimensions that are not 1 have one order in both layouts."""
    orders = []
    for shape in (x.shape, root.shape):
        wide = [d for d, size in enumerate(shape.dimensions) if size != 1]
        orders.append([wide.index(d) for d in shape.layout.minor_to_major if d in wide])
    return orders[0] == orders[1]


@rule(op("transpose", op("broadcast", "x").named("spread")))
def transpose_of_broadcast(m: AlgsimpMatch) -> Result:
    """transpose(broadcast(x)) → broadcast(x) where dimensions of x keep their order."""
    return _spread_in_order(m, dimensions_of(m.root))


@rule(op("bitcast", op("broadcast", "x").named("spread")))
def bitcast_of_broadcast(m: AlgsimpMatch) -> Result:
    """bitcast(broadcast(x)) → broadcast(x) where the bitcast only reorders dimensions, and those of
    x keep their order."""
    spread, root = m.spread.shape, m.root.shape
    if spread.element_type is not root.element_type:
        return None
    order = order_of_bitcast(spread, root)
    return None if order is None else _spread_in_order(m, order)


def _spread_in_order(m: AlgsimpMatch, order: Sequence[int]) -> Result:
    """The broadcast of x with its dimensions in another order."""
    before = dimensions_of(m.spread)
    if not is_sorted(before):
        return None
    places = [order.index(d) for d in before]
    if not is_sorted(places):
        return None
    if m.layout_sensitive and not _broadcast_keeps_order(m.x, m.root, places):
        return None
    return m.build.broadcast(m.x, places, m.root.shape)


def _broadcast_keeps_order(x: Instruction, root: Instruction, places: list[int]) -> bool:
    """Whether the dimensions of x have the same order in memory in both."""
    kept = [places.index(d) for d in root.shape.layout.minor_to_major if d in places]
    return kept == list(x.shape.layout.minor_to_major)


RESHAPE_RULES = (
    reshape_of_empty,
    reshape_to_same_shape,
    reshape_of_reshape,
    reshape_of_rng,
    hoist_transpose,
    reshape_of_broadcast,
    reshape_of_iota,
    reshape_of_update,
    space_to_depth,
)
TRANSPOSE_RULES = (
    transpose_identity,
    transpose_of_transpose,
    transpose_to_reshape,
    transpose_of_broadcast,
)
