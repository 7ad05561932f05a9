"""Rules that move dots past other dots, and past what surrounds them, where that saves flops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hloopt.ir.attributes.typed import dimensions_of, padding_of, slices_of
from hloopt.ir.attributes.values import PaddingDimension, Slice
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.build import sized
from hloopt.passes.rewriting.rules.constants import splat_value
from hloopt.passes.rewriting.rules.pattern import op, scalar_constant
from hloopt.passes.rewriting.rules.rule import Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.reductions.dot import REDUCED_DOT
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import (
    DotDimensions,
    Side,
    dot_dimensions,
    flops,
    make_dot,
)
from hloopt.passes.simplification.algsimp.reductions.reducers import operation_of
from hloopt.passes.simplification.algsimp.shapes import is_identity

_Labels = list[int]


class _Product:
    """Three arrays whose dimensions have labels; equal ones are multiplied element by element."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def fresh(self, x: Instruction) -> _Labels:
        start = len(self.sizes)
        self.sizes += x.shape.dimensions
        return list(range(start, len(self.sizes)))

    def flops(self, *labels: _Labels) -> int:
        return prod(self.sizes[label] for label in {each for group in labels for each in group})


def _unify(a: _Labels, b: _Labels, dims: DotDimensions) -> _Labels:
    """Give `b` the labels of `a` where a dot pairs their dimensions; the labels of the result."""
    for left, right in (
        *zip(dims.left.batch, dims.right.batch, strict=True),
        *zip(dims.left.contracting, dims.right.contracting, strict=True),
    ):
        b[right] = a[left]
    return [
        *[a[d] for d in dims.left.batch],
        *[a[d] for d in dims.left.free],
        *[b[d] for d in dims.right.free],
    ]


def _dims_of(a: _Labels, b: _Labels, kept: set[int]) -> DotDimensions:
    """The dimensions of a dot of labelled arrays whose result has the labels in `kept`."""
    shared = [label for label in a if label in b]
    batch = [label for label in shared if label in kept]
    summed = [label for label in shared if label not in kept]
    return DotDimensions(
        Side.of(len(a), map(a.index, batch), map(a.index, summed)),
        Side.of(len(b), map(b.index, batch), map(b.index, summed)),
    )


def _result_of(a: _Labels, b: _Labels, dims: DotDimensions) -> _Labels:
    return [
        *[a[d] for d in dims.left.batch],
        *[a[d] for d in dims.left.free],
        *[b[d] for d in dims.right.free],
    ]


@rule(REDUCED_DOT, layouts="insensitive", option="use_associative_reordering", floats="finite")
def reorder_dots(m: AlgsimpMatch) -> Result:
    """dot(dot(a, b), c) ↔ dot(a, dot(b, c)) where that divides the flops by more than
    associative_reordering_threshold; a transpose restores the order of dimensions."""
    for is_left in (True, False):
        inner = m.a if is_left else m.b
        if inner.opcode is not Opcode.DOT or len(inner.operands) != 2:
            continue
        made = _reordered(m, inner, is_left=is_left)
        if made is not None:
            return made
    return None


def _reordered(m: AlgsimpMatch, inner: Instruction, *, is_left: bool) -> Instruction | None:
    outer_dims, inner_dims = dot_dimensions(m.root), dot_dimensions(inner)
    own = outer_dims.left if is_left else outer_dims.right
    if any(d < len(inner_dims.left.batch) for d in own.contracting):
        return None
    x, y = inner.operands
    other = m.b if is_left else m.a
    if len({i.shape.type_name for i in (x, y, other, inner, m.root)}) > 1:
        return None
    product = _Product()
    xs, ys, others = product.fresh(x), product.fresh(y), product.fresh(other)
    middle = _unify(xs, ys, inner_dims)
    if is_left:
        out = _unify(middle, others, outer_dims)
    else:  # the labels of the inner dot stay: the outer one takes them over
        pairs = DotDimensions(outer_dims.right, outer_dims.left)
        _unify(middle, others, pairs)
        out = _result_of(others, middle, outer_dims)
    old = product.flops(xs, ys) + product.flops(middle, others)
    order = ((x, xs), (y, ys), (other, others)) if is_left else (
        *((other, others), (x, xs), (y, ys)),
    )  # fmt: skip
    (first, ones), (second, twos), (third, threes) = order
    if is_left:  # first · (second · third)
        nested = _dims_of(twos, threes, {*ones, *out})
        between = _result_of(twos, threes, nested)
        last = _dims_of(ones, between, set(out))
        result = _result_of(ones, between, last)
        new = product.flops(twos, threes) + product.flops(ones, between)
    else:  # (first · second) · third
        nested = _dims_of(ones, twos, {*threes, *out})
        between = _result_of(ones, twos, nested)
        last = _dims_of(between, threes, set(out))
        result = _result_of(between, threes, last)
        new = product.flops(ones, twos) + product.flops(between, threes)
    if sorted(result) != sorted(out) or old <= m.options.associative_reordering_threshold * new:
        return None
    if is_left:
        part = make_dot(m.build, m.root, second, third, nested)
        whole = make_dot(m.build, m.root, first, part, last)
    else:
        part = make_dot(m.build, m.root, first, second, nested)
        whole = make_dot(m.build, m.root, part, third, last)
    places = [result.index(label) for label in out]
    return whole if is_identity(places) else m.build.transpose(whole, places, m.root.shape)


@rule(REDUCED_DOT, layouts="insensitive", option="use_associative_reordering", floats="finite")
def move_to_other_operand(m: AlgsimpMatch) -> Result:
    """dot(reverse(a), b) → dot(a, reverse(b)) along contracting dimensions, where a is larger; a
    pad by 0 becomes a slice of b, a broadcast a sum of b, where that saves flops."""
    dims = dot_dimensions(m.root)
    for number in range(2):
        pair, sides = [m.a, m.b], list(dims.sides)
        x = pair[number]
        moved = {
            Opcode.REVERSE: _reverse_moved,
            Opcode.PAD: _pad_moved,
            Opcode.BROADCAST: _broadcast_moved,
        }.get(x.opcode)
        if moved is None:
            continue
        made = moved(m, x, pair[1 - number], sides[number], sides[1 - number], number)
        if made is not None:
            return made
    return None


def _assembled(
    m: AlgsimpMatch, number: int, own: Instruction, other: Instruction, sides: Sequence[Side]
) -> Instruction:
    """The dot with `own` as operand `number`; `sides` are those of own and other."""
    if number == 0:
        dims = DotDimensions(sides[0], sides[1])
        return make_dot(m.build, m.root, own, other, dims, shape=m.root.shape)
    dims = DotDimensions(sides[1], sides[0])
    return make_dot(m.build, m.root, other, own, dims, shape=m.root.shape)


def _reverse_moved(
    m: AlgsimpMatch, x: Instruction, other: Instruction, own: Side, theirs: Side, number: int
) -> Instruction | None:
    turned = dimensions_of(x)
    pairs = [(a, b) for a, b in zip(own.contracting, theirs.contracting, strict=True)
             if a in turned]  # fmt: skip
    left = [d for d in turned if d not in own.contracting]
    threshold = m.options.associative_reordering_threshold * (2 if left else 1)
    if not pairs or x.shape.element_count() < threshold * other.shape.element_count():
        return None
    (source,) = x.operands
    new = m.build.reverse(source, left) if left else source
    mirrored = m.build.reverse(other, sorted(b for _, b in pairs))
    return _assembled(m, number, new, mirrored, (own, theirs))


def _pad_moved(
    m: AlgsimpMatch, x: Instruction, other: Instruction, own: Side, theirs: Side, number: int
) -> Instruction | None:
    source, value = x.operands
    padding = list(padding_of(x))
    if splat_value(value) != 0 or any(p.low < 0 or p.high < 0 for p in padding):
        return None
    slices = [Slice(0, size) for size in other.shape.dimensions]
    sizes = source.shape.dimensions
    for a, b in zip(own.contracting, theirs.contracting, strict=True):
        p = padding[a]
        if not sizes[a]:
            return None
        step = p.interior + 1
        slices[b] = Slice(p.low, p.low + (sizes[a] - 1) * step + 1, step)
        padding[a] = PaddingDimension()
    if padding == list(padding_of(x)):
        return None
    stays = any(p != PaddingDimension() for p in padding)
    before = prod(x.shape.dimensions[d] for d in own.contracting)
    after = prod(sizes[d] for d in own.contracting)
    threshold = m.options.associative_reordering_threshold * (2 if stays else 1)
    if before <= threshold * after:
        return None
    new = m.build.pad(source, value, padding) if stays else source
    return _assembled(m, number, new, m.build.slice(other, slices), (own, theirs))


def _broadcast_moved(
    m: AlgsimpMatch, x: Instruction, other: Instruction, own: Side, theirs: Side, number: int
) -> Instruction | None:
    places = dimensions_of(x)
    pairs = [(a, b) for a, b in zip(own.contracting, theirs.contracting, strict=True)
             if a not in places]  # fmt: skip
    sizes = x.shape.dimensions
    if not pairs or m.root.shape.type_name == "pred":
        return None
    kept = [d for d in range(len(sizes)) if d not in [a for a, _ in pairs]]
    stays = any(d not in places for d in kept)
    threshold = m.options.associative_reordering_threshold * (2 if stays else 1)
    if prod(sizes[a] for a, _ in pairs) <= threshold:
        return None
    (new,) = x.operands
    order = [kept.index(d) for d in places]
    if stays or not is_identity(order):
        shape = sized(x.shape, [sizes[d] for d in kept])
        new = m.build.broadcast(new, order, shape)
    removed = sorted(b for _, b in pairs)
    zero = m.build.scalar(0, other.shape)
    reducer = m.build.scalar_computation("add", other.shape.type_name)
    total = m.build.reduce(other, zero, removed, reducer)
    left = [d for d in range(other.shape.rank) if d not in removed]
    sides = (_without(own, kept), _without(theirs, left))
    return _assembled(m, number, new, total, sides)


def _without(side: Side, kept: list[int]) -> Side:
    """The dimensions of a side after others than `kept` have gone."""
    return Side.of(
        len(kept),
        [kept.index(d) for d in side.batch],
        [kept.index(d) for d in side.contracting if d in kept],
    )


@rule(op("reduce", op("dot", "a", "b").named("dot"), scalar_constant(0).named("init")),
      layouts="insensitive", option="raise_slice_and_reduce_through_dot",
      floats="finite")  # fmt: skip
def reduce_of_dot(m: AlgsimpMatch) -> Result:
    """A sum of a dot without batch dimensions → dot of sums, where that divides the flops by more
    than raise_slice_and_reduce_through_dot_threshold."""
    dims = dot_dimensions(m.dot)
    if m.root.shape.is_tuple or operation_of(m.root.called[0]) is not Opcode.ADD:
        return None
    types = {i.shape.type_name for i in (m.a, m.b, m.dot)}
    if dims.left.batch or len(types) > 1:
        return None
    removed, count = dimensions_of(m.root), len(dims.left.free)
    operands, sides = [], []
    for x, side, shift in ((m.a, dims.left, 0), (m.b, dims.right, count)):
        own = [d for n, d in enumerate(side.free) if n + shift in removed]
        operands.append(m.build.reduce(x, m.init, own, m.root.called[0]))
        sides.append(_without(side, [d for d in range(x.shape.rank) if d not in own]))
    new = DotDimensions(*sides)
    before = flops(m.a.shape.dimensions, m.b.shape.dimensions, dims)
    after = flops(operands[0].shape.dimensions, operands[1].shape.dimensions, new)
    if before <= m.options.raise_slice_and_reduce_through_dot_threshold * after:
        return None
    return make_dot(m.build, m.dot, operands[0], operands[1], new, shape=m.root.shape)


@rule(op("slice", op("dot", "a", "b").named("dot")), layouts="insensitive",
      option="raise_slice_and_reduce_through_dot")  # fmt: skip
def slice_of_dot(m: AlgsimpMatch) -> Result:
    """slice(dot(a, b)) → dot(slice(a), slice(b)) where both have free dimensions."""
    dims = dot_dimensions(m.dot)
    if not (dims.left.free and dims.right.free):
        return None
    slices = slices_of(m.root)
    batch, left = len(dims.left.batch), len(dims.left.free)
    operands = []
    for x, side, shift in ((m.a, dims.left, batch), (m.b, dims.right, batch + left)):
        own = [Slice(0, size) for size in x.shape.dimensions]
        for n, d in enumerate(side.batch):
            own[d] = slices[n]
        for n, d in enumerate(side.free):
            own[d] = slices[shift + n]
        whole = [Slice(0, size) for size in x.shape.dimensions]
        operands.append(x if own == whole else m.build.slice(x, own))
    return make_dot(m.build, m.dot, operands[0], operands[1], dims, shape=m.root.shape)


@rule(op("reduce", op("dot", "a", "b").one_use().named("dot"), scalar_constant(0).named("init")),
      layouts="insensitive", option="enable_dot_strength_reduction",
      floats="rounding")  # fmt: skip
def sum_of_batch_dot(m: AlgsimpMatch) -> Result:
    """A sum over batch dimensions of a dot → dot that contracts them, and a sum over the rest."""
    dims = dot_dimensions(m.dot)
    if not m.options.supports_non_canonical_dots or m.root.shape.is_tuple:
        return None
    if operation_of(m.root.called[0]) is not Opcode.ADD or m.root.shape.type_name == "pred":
        return None
    if m.dot.has_control_dependencies:
        return None
    removed = dimensions_of(m.root)
    summed = [n for n in range(len(dims.left.batch)) if n in removed]
    if not summed:
        return None
    sides = [
        Side.of(
            x.shape.rank,
            [d for n, d in enumerate(side.batch) if n not in summed],
            [*[side.batch[n] for n in summed], *side.contracting],
        )
        for x, side in ((m.a, dims.left), (m.b, dims.right))
    ]
    product = make_dot(m.build, m.dot, m.a, m.b, DotDimensions(*sides))
    kept = [d for d in range(m.dot.shape.rank) if d not in summed]
    rest = [kept.index(d) for d in removed if d not in summed]
    if not rest:
        return product
    return m.build.reduce(product, m.init, rest, m.root.called[0], m.root.shape)


DOT_RULES = (reorder_dots, move_to_other_operand)
REDUCE_RULES = (reduce_of_dot, sum_of_batch_dot)
