"""Rules that replace dots by cheaper operations, or by dots of simpler operands."""

from __future__ import annotations

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import Slice
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_UNARY, Opcode
from hloopt.passes.rewriting.rules.pattern import Pattern, constant, either, op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import (
    DotDimensions,
    Side,
    dot_dimensions,
    has_plain_algorithm,
    make_dot,
)
from hloopt.passes.simplification.algsimp.shapes import inverse, is_identity
from hloopt.passes.simplification.algsimp.signatures import (
    has_vector,
    is_or_reads_empty,
    is_outer_product,
    reads_ones,
)
from hloopt.passes.simplification.algsimp.terms import is_float, only_user


def _is_unreduced(dot: Instruction) -> bool:
    """Whether its only user says that the sum over devices is still to be taken."""
    user = only_user(dot)
    if user is None or custom_call_target(user) != "Sharding":
        return False
    attributes = user.attributes
    return "unreduced" in attributes.get("sharding", "") or "unreduced" in attributes.get(
        "frontend_attributes", ""
    )


DOT = op("dot", "a", "b")
REDUCED_DOT = DOT.where(lambda dot: not _is_unreduced(dot))


def _beside_constant(pattern: Pattern) -> Pattern:
    """A dot of what fits a pattern and a constant, on either side."""
    a, b = pattern.named("a"), pattern.named("b")
    found = either(op("dot", a, constant().named("b")), op("dot", constant().named("a"), b))
    return found.where(lambda dot: not _is_unreduced(dot))


@rule(DOT, layouts="insensitive", signature=is_or_reads_empty)
def dot_of_empty(m: AlgsimpMatch) -> Result:
    """A dot without elements, in its operands or its result → broadcast of 0."""
    return m.build.splat(0, m.root.shape)


@rule(
    DOT,
    layouts="insensitive",
    option="enable_dot_to_multiply_rewrite",
    floats="finite",
    signature=is_outer_product,
)
def dot_to_multiply(m: AlgsimpMatch) -> Result:
    """A dot without contracting dimensions → multiply of both operands, broadcast."""
    dims = dot_dimensions(m.root)
    if dims.left.contracting:
        return None
    if not has_plain_algorithm(m.root):
        return Missed(f"its algorithm is {m.root.attributes['algorithm']}")
    batch, left, right = len(dims.left.batch), len(dims.left.free), len(dims.right.free)
    shape, parts = m.root.shape, []
    for x, side, first in ((m.a, dims.left, batch), (m.b, dims.right, batch + left)):
        own = _in_order(m, x, side)
        own = m.build.convert(own, shape.type_name)
        places = [*range(batch), *range(first, first + len(side.free))]
        if len(places) < batch + left + right:
            own = m.build.broadcast(own, places, shape)
        parts.append(own)
    return m.build.make("multiply", *parts, shape=shape)


def _in_order(m: AlgsimpMatch, x: Instruction, side: Side) -> Instruction:
    """An operand with its dimensions as batch, free, contracting."""
    order = (*side.batch, *side.free, *side.contracting)
    return x if is_identity(order) else m.build.transpose(x, order)


@rule(
    REDUCED_DOT,
    layouts="insensitive",
    option="enable_dot_strength_reduction",
    floats="finite",
    signature=has_vector,
)
def dot_to_reduce(m: AlgsimpMatch) -> Result:
    """A dot with a vector → reduce(multiply): one side has only batch and contracting dimensions,
    on CPU both. Multiplied in the type of the result, floats are summed in f32, f64 in f64."""
    dims = dot_dimensions(m.root)
    is_vector = [not side.free for side in dims.sides]
    if not (all(is_vector) if m.options.executing_on_cpu else any(is_vector)):
        return None
    if not dims.left.contracting:
        return None
    if not has_plain_algorithm(m.root):
        return Missed(f"its algorithm is {m.root.attributes['algorithm']}")
    build, own = m.build, m.root.shape.type_name
    wide = "f32" if is_float(m.root) and own != "f64" else own
    parts = [
        build.convert(_in_order(m, x, side), own)
        for x, side in zip((m.a, m.b), dims.sides, strict=True)
    ]
    if is_vector[0] != is_vector[1]:
        small, large = (0, 1) if is_vector[0] else (1, 0)
        shape = parts[large].shape
        batch, rank = len(dims.left.batch), shape.rank
        places = [*range(batch), *range(rank - len(dims.left.contracting), rank)]
        parts[small] = build.broadcast(parts[small], places, shape)
    product = build.convert(build.make("multiply", *parts, shape=parts[0].shape), wide)
    rank = product.shape.rank
    removed = range(rank - len(dims.left.contracting), rank)
    reducer = build.scalar_computation("add", wide)
    total = build.reduce(product, build.scalar(0, product.shape), removed, reducer)
    return build.convert(total, own)


@rule(_beside_constant(op("reshape", op("transpose"))), layouts="insensitive")
def dot_of_rearranged(m: AlgsimpMatch) -> Result:
    """dot(reshape(transpose(x)), C) → dot(reshape(x), reshape(transpose(reshape(C)))), where the
    transpose only permutes what the reshape merges into the contracting dimension: the constant is
    rearranged before the program runs."""
    dims = dot_dimensions(m.root)
    if len(dims.left.contracting) != 1:
        return None
    for number, (x, c) in enumerate(((m.a, m.b), (m.b, m.a))):
        if c.opcode is not Opcode.CONSTANT or x.opcode is not Opcode.RESHAPE:
            continue
        (transpose,) = x.operands
        if transpose.opcode is not Opcode.TRANSPOSE:
            continue
        merged = dims.sides[number].contracting[0]
        order, sizes = dimensions_of(transpose), transpose.shape.dimensions
        run = _merged_run(sizes, x.shape.dimensions, merged)
        if run is None or is_identity(order):
            continue
        inside = [order[d] for d in run]
        if any(order[d] != d for d in range(len(order)) if d not in run):
            return Missed(f"%{transpose.name} moves other dimensions")
        build, start = m.build, run[0]
        plain = build.reshape(transpose.operands[0], x.shape)
        own = dims.sides[1 - number].contracting[0]
        c_sizes = c.shape.dimensions
        split = (*c_sizes[:own], *[sizes[d] for d in run], *c_sizes[own + 1 :])
        turn = list(range(len(split)))
        back = inverse([d - start for d in inside])
        turn[own : own + len(run)] = [own + d for d in back]
        turned = build.transpose(build.reshape(c, split), turn)
        fixed = build.reshape(turned, c.shape)
        operands = (plain, fixed) if number == 0 else (fixed, plain)
        return build.clone(m.root, operands, m.root.shape)
    return None


def _merged_run(
    before: tuple[int, ...], after: tuple[int, ...], dimension: int
) -> list[int] | None:
    """The dimensions that a reshape merges into `dimension`, the others staying as they are."""
    extra = len(before) - len(after)
    run = list(range(dimension, dimension + extra + 1))
    rest = [size for d, size in enumerate(before) if d not in run]
    others = [size for d, size in enumerate(after) if d != dimension]
    return run if extra > 0 and rest == others else None


@rule(_beside_constant(op("concatenate")), layouts="insensitive", floats="rounding")
def dot_of_concatenate(m: AlgsimpMatch) -> Result:
    """dot(concatenate(a, b, …), C) along the contracting dimension → sum of dots with slices of the
    constant, for a result of rank 2 without batch dimensions."""

    dims = dot_dimensions(m.root)
    if m.root.shape.rank != 2 or dims.left.batch or len(dims.left.contracting) != 1:
        return None
    for number, (x, c) in enumerate(((m.a, m.b), (m.b, m.a))):
        along = dims.sides[number].contracting[0]
        if x.opcode is not Opcode.CONCATENATE or dimensions_of(x) != (along,):
            continue
        if c.opcode is not Opcode.CONSTANT or c.shape.rank != 2:
            continue
        own = dims.sides[1 - number].contracting[0]
        start, total = 0, None
        for piece in x.operands:
            end = start + piece.shape.dimensions[along]
            slices = [Slice(0, size) for size in c.shape.dimensions]
            slices[own] = Slice(start, end)
            part = m.build.slice(c, slices)
            pair = (piece, part) if number == 0 else (part, piece)
            product = make_dot(m.build, m.root, *pair, dims, shape=m.root.shape)
            total = product if total is None else m.build.make(
                "add", total, product, shape=m.root.shape
            )  # fmt: skip
            start = end
        return total
    return None


@rule(_beside_constant(op("dynamic-slice")), layouts="insensitive")
def dot_of_dynamic_slice(m: AlgsimpMatch) -> Result:
    """dot(dynamic-slice(C1), C2) → dynamic-slice(dot(C1, C2)) where the slice is a vector that
    spans the contracting dimension: the product is computed before the program runs."""
    dims = dot_dimensions(m.root)
    if m.root.shape.rank != 2 or dims.left.batch or len(dims.left.contracting) != 1:
        return None
    for number, (x, c) in enumerate(((m.a, m.b), (m.b, m.a))):
        if x.opcode is not Opcode.DYNAMIC_SLICE or c.opcode is not Opcode.CONSTANT:
            continue
        whole, *offsets = x.operands
        if whole.opcode is not Opcode.CONSTANT or whole.shape.rank != 2 or len(offsets) != 2:
            continue
        side = dims.sides[number]
        along, (free,) = side.contracting[0], side.free
        if whole.shape.dimensions[along] != x.shape.dimensions[along]:
            return Missed(f"%{x.name} does not span the contracting dimension")
        if x.shape.dimensions[free] != 1 or c.shape.rank != 2:
            return Missed(f"%{x.name} is no vector")
        pair = (whole, c) if number == 0 else (c, whole)
        product = make_dot(m.build, m.root, *pair, dims)
        zero = m.build.scalar(0, offsets[free].shape)
        starts = (offsets[free], zero) if number == 0 else (zero, offsets[free])
        return m.build.dynamic_slice(product, starts, m.root.shape.dimensions, m.root.shape)
    return None


@rule(REDUCED_DOT, layouts="insensitive", signature=reads_ones)
def dot_without_ones(m: AlgsimpMatch) -> Result:
    """Dimensions of size 1 of the operands are reshaped away, and put back behind the dot."""
    dims = dot_dimensions(m.root)
    operands, sides = [], []
    for x, side in zip((m.a, m.b), dims.sides, strict=True):
        sizes = x.shape.dimensions
        place = {d: n for n, d in enumerate(d for d, size in enumerate(sizes) if size != 1)}
        operands.append(
            x if len(place) == len(sizes) else m.build.reshape(x, [sizes[d] for d in place])
        )
        sides.append(
            Side.of(
                len(place),
                [place[d] for d in side.batch if d in place],
                [place[d] for d in side.contracting if d in place],
            )
        )
    small = make_dot(m.build, m.root, operands[0], operands[1], DotDimensions(*sides))
    if small.shape.dimensions == m.root.shape.dimensions:
        return small
    return m.build.reshape(small, m.root.shape)


@rule(op("dot", op("transpose", "a").named("left"), op("transpose", "b").named("right"))
      .where(lambda dot: not _is_unreduced(dot)), layouts="insensitive")  # fmt: skip
def dot_of_transposes(m: AlgsimpMatch) -> Result:
    """A dot of two operands transposed alike → transpose(dot), its operands exchanged where the
    last two dimensions were."""
    order = dimensions_of(m.left)
    dims, rank = dot_dimensions(m.root), len(order)
    batch = rank - 2
    if order != dimensions_of(m.right) or is_identity(order) or rank < 2:
        return None
    leading = tuple(range(batch))
    if (dims.left.batch, dims.right.batch) != (leading, leading):
        return None
    if (dims.left.contracting, dims.right.contracting) != ((rank - 1,), (rank - 2,)):
        return None
    if any(d >= batch for d in order[:batch]):
        return Missed("the transposes move batch dimensions behind others")
    is_swapped = order[batch:] == (rank - 1, rank - 2)
    pair = (m.b, m.a) if is_swapped else (m.a, m.b)
    inner = make_dot(m.build, m.root, *pair, dims, swapped=is_swapped)
    return m.build.transpose(inner, order, m.root.shape)


_UNARY = ELEMENTWISE_UNARY


def is_like_parameter(x: Instruction) -> bool:
    """Whether a value is a parameter, or unary operations on one."""
    while x.opcode in _UNARY or x.opcode in (Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.BITCAST):
        (x,) = x.operands
    return x.opcode is Opcode.PARAMETER


@rule(REDUCED_DOT, layouts="insensitive", option="enable_move_dot_param_to_rhs")
def dot_parameter_to_right(m: AlgsimpMatch) -> Result:
    """dot(parameter, x) → transpose(dot(x, parameter)), unless x is like a parameter, too."""
    if not is_like_parameter(m.a) or is_like_parameter(m.b):
        return None
    dims = dot_dimensions(m.root)
    inner = make_dot(m.build, m.root, m.b, m.a, DotDimensions(dims.right, dims.left), swapped=True)
    batch, left, right = len(dims.left.batch), len(dims.left.free), len(dims.right.free)
    order = (*range(batch), *range(batch + right, batch + right + left),
             *range(batch, batch + right))  # fmt: skip
    return m.build.transpose(inner, order, m.root.shape)


@rule(op("transpose", op("dot", "a", "b").one_use().named("dot")))
def transpose_of_dot(m: AlgsimpMatch) -> Result:
    """transpose(dot(a, b)) → dot(b, a) where it exchanges their free dimensions, and moves batch
    dimensions among themselves only."""
    order, dims = dimensions_of(m.root), dot_dimensions(m.dot)
    batch, left, right = len(dims.left.batch), len(dims.left.free), len(dims.right.free)
    if m.dot.has_control_dependencies or _is_unreduced(m.dot):
        return None
    is_settled = is_like_parameter(m.b) and not is_like_parameter(m.a)
    if m.options.enable_move_dot_param_to_rhs and is_settled:
        return Missed(f"%{m.b.name} is to stay on the right")
    if not m.options.supports_non_canonical_dots:
        leading = tuple(range(batch))
        if (left, right) != (1, 1) or order[:batch] != leading:
            return None
        if (dims.left.batch, dims.right.batch) != (leading, leading):
            return None
    if any(d >= batch for d in order[:batch]):
        return None
    wanted = (*range(batch + left, batch + left + right), *range(batch, batch + left))
    if order[batch:] != wanted or not (left and right):
        return None
    sides = [
        Side(tuple(side.batch[d] for d in order[:batch]), side.contracting, side.free)
        for side in (dims.right, dims.left)
    ]
    return make_dot(
        m.build, m.dot, m.b, m.a, DotDimensions(*sides), swapped=True, shape=m.root.shape
    )


RULES = (
    dot_of_empty,
    dot_to_multiply,
    dot_to_reduce,
    dot_of_rearranged,
    dot_of_concatenate,
    dot_of_dynamic_slice,
    dot_without_ones,
    dot_of_transposes,
    dot_parameter_to_right,
)
