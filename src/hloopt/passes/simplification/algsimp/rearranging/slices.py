"""Rules for slice."""

from __future__ import annotations

from math import prod

from hloopt.ir.attributes.typed import dimensions_of, padding_of, slices_of, window_of
from hloopt.ir.attributes.values import Slice
from hloopt.passes.rewriting.rules.pattern import op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.shapes import is_effective_scalar
from hloopt.passes.simplification.algsimp.signatures import has_one, is_as_its_operand


def is_unstrided(slices: tuple[Slice, ...]) -> bool:
    return all(s.stride == 1 for s in slices)


@rule(op("slice", "x"), signature=is_as_its_operand)
def slice_of_whole(m: AlgsimpMatch) -> Result:
    """A slice with the shape of its operand → operand."""
    return m.if_compatible(m.x) if m.same_shape(m.x, m.root) else None


@rule(op("slice", op("pad", "x", "value").named("pad")))
def slice_of_pad(m: AlgsimpMatch) -> Result:
    """slice(pad(x)) → broadcast of the padding value where all is padding, x where the slice undoes
    the pad, a slice of x where it is within x."""
    slices, padding = slices_of(m.root), padding_of(m.pad)
    sizes = m.x.shape.dimensions
    undoes, inside = True, is_unstrided(slices)
    for s, p, size in zip(slices, padding, sizes, strict=True):
        step = p.interior + 1
        end = p.low + (size - 1) * step + 1 if size else p.low
        if (s.limit <= p.low or s.start >= end) and s.limit > s.start:
            return m.build.fill(m.value, m.root.shape)
        undoes = undoes and (s.start == p.low and s.stride == step and s.limit >= end
                             and (s.limit - end) < step)  # fmt: skip
        inside = inside and not p.interior and p.low <= s.start and s.limit <= end
    if undoes and m.same_shape(m.x, m.root):
        return m.if_compatible(m.x)
    if not inside:
        return Missed(f"it takes elements of %{m.x.name} and padding")
    return m.build.slice(
        m.x,
        [Slice(s.start - p.low, s.limit - p.low) for s, p in zip(slices, padding, strict=True)],
        m.root.shape,
    )


@rule(op("slice", op("slice", "x").named("inner")))
def slice_of_slice(m: AlgsimpMatch) -> Result:
    """slice(slice(x)) → slice(x), without strides."""
    outer, inner = slices_of(m.root), slices_of(m.inner)
    if not (is_unstrided(outer) and is_unstrided(inner)):
        return Missed("there are strides")
    return m.build.slice(
        m.x,
        [Slice(a.start + b.start, a.start + b.limit) for a, b in zip(inner, outer, strict=True)],
        m.root.shape,
    )


@rule(op("slice", op("broadcast", "x").named("spread")))
def slice_of_broadcast(m: AlgsimpMatch) -> Result:
    """slice(broadcast(x)) → broadcast(x), or broadcast(slice(x)) where dimensions of x are
    sliced."""
    places = dimensions_of(m.spread)
    slices = slices_of(m.root)
    taken = [slices[d] for d in places]
    sizes = m.x.shape.dimensions
    x = m.x
    if any((s.start, s.limit, s.stride) != (0, size, 1)
           for s, size in zip(taken, sizes, strict=True)):  # fmt: skip
        x = m.build.slice(x, taken)
    return m.build.broadcast(x, places, m.root.shape)


@rule(op("slice", op("concatenate").named("joined")))
def slice_of_concatenate(m: AlgsimpMatch) -> Result:
    """slice(concatenate(…)) → the piece, a slice of it, or a slice of a shorter concatenate."""
    slices = slices_of(m.root)
    is_scalar = is_effective_scalar(m.root.shape) and m.joined.shape.rank == 1
    (dimension,) = dimensions_of(m.joined)
    if not is_unstrided(slices) and not is_scalar:
        return None
    wanted = slices[dimension]
    last = wanted.limit - 1 if not is_scalar else wanted.start
    if last < wanted.start:
        return None
    begin, first, pieces, offset = 0, -1, [], 0
    for number, piece in enumerate(m.joined.operands):
        end = begin + piece.shape.dimensions[dimension]
        if begin <= last and end > wanted.start and end > begin:
            if first < 0:
                first, offset = number, begin
            pieces.append(piece)
        begin = end
    if not pieces or len(pieces) == len(m.joined.operands):
        return None
    source = pieces[0]
    if len(pieces) > 1:
        source = m.build.concatenate(pieces, dimension)
    taken = list(slices)
    taken[dimension] = Slice(wanted.start - offset, last + 1 - offset)
    if all(s.start == 0 and s.limit == size
           for s, size in zip(taken, source.shape.dimensions, strict=True)):  # fmt: skip
        return source
    return m.build.slice(source, taken, m.root.shape)


@rule(
    op("slice", op("reduce-window", "x", "init").one_use().named("window")),
    option="enable_window_reduce_to_reduce_replacement",
    floats="rounding",
)
def slice_of_reduce_window(m: AlgsimpMatch) -> Result:
    """The last element of a running reduction over whole dimensions → reshape(reduce)."""
    slices = slices_of(m.root)
    rows = window_of(m.window).dimensions
    reduced: list[int] = []
    for d, (s, row) in enumerate(zip(slices, rows, strict=True)):
        if row.stride != 1 or row.lhs_dilate != 1 or row.rhs_dilate != 1:
            return None
        size = m.x.shape.dimensions[d]
        if row.size == 1 and not row.pad_low and not row.pad_high:
            if s.stride != 1 or (s.start, s.limit) != (0, size):
                return None
            continue
        if s.limit != s.start + 1 or row.size != size or row.pad_low != s.start:
            return None
        reduced.append(d)
    if not reduced:
        return None
    result = m.build.reduce(m.x, m.init, reduced, m.window.called[0])
    return m.build.reshape(result, m.root.shape)


@rule(op("slice", op("reshape", "x").named("reshape")), layouts="insensitive")
def slice_of_reshape(m: AlgsimpMatch) -> Result:
    """slice(reshape(x)) → reshape(slice(x)) where only the first dimension is sliced, and the part
    is a range of the first dimension of x."""
    slices, sizes = slices_of(m.root), m.reshape.shape.dimensions
    if not sizes or not m.x.shape.dimensions or not is_unstrided(slices):
        return None
    if any((s.start, s.limit) != (0, size)
           for s, size in zip(slices[1:], sizes[1:], strict=True)):  # fmt: skip
        return None
    row = prod(sizes[1:])
    own = prod(m.x.shape.dimensions[1:])
    start, count = slices[0].start * row, (slices[0].limit - slices[0].start) * row
    if not own or start % own or count % own:
        return Missed(f"the part is no range of the first dimension of %{m.x.name}")
    taken = [Slice(0, size) for size in m.x.shape.dimensions]
    taken[0] = Slice(start // own, (start + count) // own)
    return m.build.reshape(m.build.slice(m.x, taken), m.root.shape)


@rule(op("slice", op("reverse", "x").named("reverse")))
def slice_of_reverse(m: AlgsimpMatch) -> Result:
    """slice(reverse(x)) → reverse(slice(x)), the starts mirrored."""
    turned = dimensions_of(m.reverse)
    taken: list[Slice] = []
    for d, (s, size) in enumerate(zip(slices_of(m.root), m.x.shape.dimensions, strict=True)):
        if d in turned and s.limit > s.start:
            last = s.start + (s.limit - s.start - 1) // s.stride * s.stride
            taken.append(Slice(size - 1 - last, size - s.start, s.stride))
        else:
            taken.append(s)
    part = m.build.slice(m.x, taken, m.root.shape)
    return m.build.make("reverse", part, shape=m.root.shape, attributes=dict(m.reverse.attributes))


@rule(op("slice", "x"), signature=has_one)
def slice_without_steps(m: AlgsimpMatch) -> Result:
    """A stride that takes no second step → 1."""
    slices = slices_of(m.root)
    if is_unstrided(slices):
        return None
    taken = [
        Slice(s.start, s.start + 1)
        if s.stride != 1 and s.start < s.limit <= s.start + s.stride else s
        for s in slices
    ]  # fmt: skip
    if taken == list(slices):
        return None
    return m.build.slice(m.x, taken, m.root.shape)


RULES = (
    slice_of_whole,
    slice_of_pad,
    slice_of_slice,
    slice_of_broadcast,
    slice_of_concatenate,
    slice_of_reduce_window,
    slice_of_reshape,
    slice_of_reverse,
    slice_without_steps,
)
