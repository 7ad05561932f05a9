"""Rules for reduce."""

from __future__ import annotations

from math import prod

from hloopt.analysis.equality import Equality
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.clone import clone_computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import splat_value
from hloopt.passes.rewriting.rules.pattern import op, scalar_constant, value
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.rearranging.chains import reshape_is_bitcast
from hloopt.passes.simplification.algsimp.reductions.reducers import (
    are_neutral,
    argument_of_extreme,
    may_repeat,
    neutral_of,
    operation_of,
)
from hloopt.passes.simplification.algsimp.shapes import has_zero, is_sorted, unmodified
from hloopt.passes.simplification.algsimp.signatures import (
    is_or_reads_empty,
    is_tuple,
    repeats_nothing,
)
from hloopt.passes.simplification.algsimp.terms import is_float

_NOT_NEUTRAL = Missed("its reducer may not ignore the initial value")


@rule(op(("reduce", "reduce-window")), signature=is_or_reads_empty)
def reduce_of_empty(m: AlgsimpMatch) -> Result:
    """A reduce without elements, before or after it → broadcast of the initial value, or a tuple of
    them."""
    root, build = m.root, m.build
    count = len(root.operands) // 2
    if not has_zero(root.operands[0].shape) and not has_zero(
        (root.shape.leaves() or [root.shape])[0]
    ):
        return None
    inits = root.operands[count:]
    if not root.shape.is_tuple:
        return build.fill(inits[0], root.shape)
    parts = [build.fill(i, s) for i, s in zip(inits, root.shape.elements, strict=True)]
    return build.make("tuple", *parts, shape=root.shape)


@rule(op(("reduce", "reduce-window"), "x", "init"), signature=is_tuple)
def reduce_one_tuple(m: AlgsimpMatch) -> Result:
    """A variadic reduce of one input, whose computation returns a 1-tuple → tuple(reduce)."""
    root = m.root
    body = root.called[0].root
    if body.opcode is not Opcode.TUPLE or m.build.only_existing:
        return None
    plain = clone_computation(root.called[0])[0]
    tuple_root = plain.root
    plain.set_root(tuple_root.operands[0])
    plain.remove(tuple_root)
    inner = m.build.make(
        root.opcode, m.x, m.init, shape=root.shape.elements[0], called=(plain,),
        attributes=root.attributes,
    )  # fmt: skip
    return m.build.make("tuple", inner, shape=root.shape)


@rule(op("reduce"), floats="finite", signature=repeats_nothing)
def reduce_of_ones(m: AlgsimpMatch) -> Result:
    """A reduce of dimensions of size 1 alone, from values that its reducer ignores → reshape; with
    layouts only where that is a bitcast."""
    count = len(m.root.operands) // 2
    operands, inits = m.root.operands[:count], m.root.operands[count:]
    shapes = m.root.shape.elements if m.root.shape.is_tuple else (m.root.shape,)
    for x, shape in zip(operands, shapes, strict=True):
        if x.shape.element_type is not shape.element_type:
            return None
        if m.layout_sensitive and not reshape_is_bitcast(m.options, x.shape, shape):
            return None
    if not are_neutral(m.root.called[0], inits):
        return _NOT_NEUTRAL
    parts = [m.build.reshape(x, shape) for x, shape in zip(operands, shapes, strict=True)]
    if not m.root.shape.is_tuple:
        return parts[0]
    return m.build.make("tuple", *parts, shape=m.root.shape)


@rule(op("reduce", op("negate", "x"), scalar_constant(0).named("init")), layouts="insensitive",
      floats="rounding")  # fmt: skip
def reduce_of_negate(m: AlgsimpMatch) -> Result:
    """The float sum of -x from 0 → -(sum of x)."""
    if m.root.shape.is_tuple or operation_of(m.root.called[0]) is not Opcode.ADD:
        return None
    if not is_float(m.root):
        return None
    total = m.build.clone(m.root, [m.x, m.init], m.root.shape)
    return m.build.make("negate", total, shape=m.root.shape)


@rule(op("reduce", op("broadcast", scalar_constant().named("c")), op("iota").named("iota"),
         "init", "first"), layouts="insensitive", floats="finite")  # fmt: skip
def argmax_of_broadcast(m: AlgsimpMatch) -> Result:
    """argmax or argmin of one constant everywhere, along the counted dimension of the iota → that
    constant and 0."""
    extreme = argument_of_extreme(m.root.called[0])
    counted = int(m.iota.attributes["iota_dimension"])
    if extreme is None or dimensions_of(m.root) != (counted,):
        return None
    if splat_value(m.init) != neutral_of(extreme, m.c) or splat_value(m.first) != 0:
        return None
    value, index = m.root.shape.elements
    parts = (m.build.fill(m.c, value), m.build.splat(0, index))
    return m.build.make("tuple", *parts, shape=m.root.shape)


def is_plain(m: AlgsimpMatch) -> bool:
    """Whether the root is a reduce of one array."""
    return not m.root.shape.is_tuple


@rule(op("reduce", op("transpose", "x").named("transpose"), "init"), layouts="insensitive",
      floats="rounding")  # fmt: skip
def reduce_of_transpose(m: AlgsimpMatch) -> Result:
    """reduce(transpose(x)) → reduce(x), transposed where the order of what is kept differs."""
    users = m.transpose.users
    if not is_plain(m):
        return None
    if not (
        m.options.unconditionally_simplify_reduce_of_transpose_or_reshape
        or m.root.shape.rank < 2
        or len(users) == 1
        or all(user.opcode is Opcode.REDUCE for user in users)
    ):
        return Missed(f"%{m.transpose.name} has other users")
    order = dimensions_of(m.transpose)
    removed = dimensions_of(m.root)
    kept = [order[d] for d in range(len(order)) if d not in removed]
    result = m.build.reduce(m.x, m.init, sorted(order[d] for d in removed), m.root.called[0])
    if is_sorted(kept):
        return result
    places = sorted(kept)
    return m.build.transpose(result, [places.index(d) for d in kept], m.root.shape)


@rule(op("reduce", op("reduce", "x", "inner_init").named("inner"), "init"), layouts="insensitive",
      floats="rounding")  # fmt: skip
def reduce_of_reduce(m: AlgsimpMatch) -> Result:
    """reduce(reduce(x)) → reduce(x) with one initial value, which may count once or twice, and
    equivalent reducers."""
    if not is_plain(m) or m.inner.shape.is_tuple:
        return None
    if m.init is not m.inner_init and (
        splat_value(m.init) is None or splat_value(m.init) != splat_value(m.inner_init)
    ):
        return None
    own, theirs = m.root.called[0], m.inner.called[0]
    same = own is theirs or operation_of(own) is operation_of(theirs) is not None
    if not same and not Equality(is_layout_sensitive=False).same_callees(m.root, m.inner):
        return Missed("the reducers differ")
    if not may_repeat(own, m.init):
        return _NOT_NEUTRAL
    removed = dimensions_of(m.inner)
    left = [d for d in range(m.x.shape.rank) if d not in removed]
    all_removed = sorted([*removed, *[left[d] for d in dimensions_of(m.root)]])
    return m.build.reduce(m.x, m.init, all_removed, own, m.root.shape)


@rule(op("reduce", op("reshape", "x").named("reshape"), "init"), layouts="insensitive",
      option="enable_reduce_of_reshape", floats="rounding")  # fmt: skip
def reduce_of_reshape(m: AlgsimpMatch) -> Result:
    """reduce(reshape(x)) → reduce(x) where the reshape leaves all kept dimensions as they are;
    reshape(reduce(x)) where it leaves the reduced ones."""
    before, after = m.x.shape.dimensions, m.reshape.shape.dimensions
    if not is_plain(m) or not m.x.shape.element_count():
        return None
    place = {new: old for old, new in unmodified(before, after).items()}
    removed = dimensions_of(m.root)
    kept = [d for d in range(len(after)) if d not in removed and after[d] != 1]
    wide = [d for d in removed if after[d] != 1]
    if not wide:
        return None
    if all(d in place for d in kept):
        own = [d for d in range(len(before)) if d not in {place[k] for k in kept}]
        result = m.build.reduce(m.x, m.init, own, m.root.called[0])
        if result.shape.dimensions == m.root.shape.dimensions:
            return result
        return m.build.reshape(result, m.root.shape)
    if not all(d in place for d in wide):
        return None
    if len(m.reshape.users) != 1 and not (
        m.options.unconditionally_simplify_reduce_of_transpose_or_reshape
    ):
        return Missed(f"%{m.reshape.name} has other users")
    result = m.build.reduce(m.x, m.init, sorted(place[d] for d in wide), m.root.called[0])
    return m.build.reshape(result, m.root.shape)


@rule(op("reduce", op("concatenate").named("joined"), "init"), layouts="insensitive",
      floats="rounding")  # fmt: skip
def reduce_of_concatenate(m: AlgsimpMatch) -> Result:
    """reduce(concatenate(a, b, …)) along a reduced dimension → the reducer mapped over the reduces
    of its pieces."""
    pieces = m.joined.operands
    (dimension,) = dimensions_of(m.joined)
    removed = dimensions_of(m.root)
    if not is_plain(m) or dimension not in removed or len(pieces) < 2:
        return None
    same = all(p.shape.dimensions == pieces[0].shape.dimensions for p in pieces)
    if not (
        same
        or not m.root.shape.dimensions
        or m.options.enable_unconditional_reduce_of_concat_replacement
    ):
        return Missed("the pieces differ in size")
    reducer = m.root.called[0]
    if not may_repeat(reducer, m.init):
        return _NOT_NEUTRAL
    total: Instruction | None = None
    for piece in pieces:
        part = m.build.reduce(piece, m.init, removed, reducer, m.root.shape)
        if total is None:
            total = part
            continue
        places = format_ints(range(m.root.shape.rank))
        total = m.build.make(
            "map", total, part, shape=m.root.shape, called=(reducer,),
            attributes={"dimensions": places},
        )  # fmt: skip
    return total


_EXTREMES = (Opcode.MAXIMUM, Opcode.MINIMUM)
_BELOW_ALL = scalar_constant().where_known(
    lambda init: splat_value(init) in [neutral_of(opcode, init) for opcode in _EXTREMES]
)


@rule(
    op("reduce", value("x").where(lambda x: len(x.users) > 1), _BELOW_ALL.named("init")),
    layouts="insensitive",
)
def reduce_beside_argmax(m: AlgsimpMatch) -> Result:
    """The maximum of what also feeds an argmax over the same dimensions → its element 0."""
    if not is_plain(m):
        return None
    opcode = operation_of(m.root.called[0])
    if opcode not in _EXTREMES:
        return None
    if splat_value(m.init) != neutral_of(opcode, m.x):
        return None
    for user in m.x.users:
        if (
            user.opcode is Opcode.REDUCE
            and user.shape.is_tuple
            and user.operands[0] is m.x
            and len(user.operands) == 4
            and dimensions_of(user) == dimensions_of(m.root)
            and argument_of_extreme(user.called[0]) is opcode
            and splat_value(user.operands[2]) == splat_value(m.init)
            and user.shape.elements[0] is m.root.shape
        ):
            return m.build.make(
                "get-tuple-element", user, shape=m.root.shape, attributes={"index": "0"}
            )
    return None


@rule(op("reduce", op("broadcast", "x").named("spread"), "init"), floats="rounding")
def reduce_of_broadcast_scalar(m: AlgsimpMatch) -> Result:
    """max, min, and, or of a broadcast scalar → the operation on the scalar and the initial
    value."""
    if not is_plain(m) or not m.x.shape.is_scalar or m.root.shape.dimensions:
        return None
    opcode = operation_of(m.root.called[0])
    if opcode not in (Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR):
        return None
    return m.build.make(opcode, m.x, m.init, shape=m.root.shape)


@rule(op("reduce", op("broadcast", "x").named("spread"), "init"), layouts="insensitive",
      floats="rounding")  # fmt: skip
def reduce_below_broadcast(m: AlgsimpMatch) -> Result:
    """reduce(broadcast(x)) → broadcast(reduce(x)) where all reduced dimensions are those of x."""
    places = dimensions_of(m.spread)
    removed = dimensions_of(m.root)
    if not is_plain(m) or not removed or not set(removed) <= set(places):
        return None
    own = sorted(places.index(d) for d in removed)
    result = m.build.reduce(m.x, m.init, own, m.root.called[0])
    kept = [d for d in range(m.spread.shape.rank) if d not in removed]
    left = [kept.index(d) for d in places if d not in removed]
    return m.build.broadcast(result, left, m.root.shape)


@rule(op("reduce", op("broadcast", "x").named("spread"), "init"), floats="finite")
def sum_of_broadcast(m: AlgsimpMatch) -> Result:
    """The sum over n elements that a broadcast made of one → init + broadcast(x·n)."""
    places = dimensions_of(m.spread)
    removed = dimensions_of(m.root)
    if not is_plain(m) or set(removed) & set(places):
        return None
    if operation_of(m.root.called[0]) is not Opcode.ADD or m.root.shape.type_name == "pred":
        return None
    count = prod(m.spread.shape.dimensions[d] for d in removed)
    build = m.build
    factor = build.splat(count, m.x.shape)
    product = build.make("multiply", m.x, factor, shape=m.x.shape)
    kept = [d for d in range(m.spread.shape.rank) if d not in removed]
    spread = build.broadcast(product, [kept.index(d) for d in places], m.root.shape)
    start = build.fill(m.init, m.root.shape)
    return build.make("add", start, spread, shape=m.root.shape)


RULES = (
    reduce_of_empty,
    reduce_one_tuple,
    reduce_of_ones,
    reduce_of_negate,
    argmax_of_broadcast,
    reduce_of_transpose,
    reduce_of_reduce,
    reduce_of_reshape,
    reduce_of_concatenate,
    reduce_beside_argmax,
    reduce_of_broadcast_scalar,
    reduce_below_broadcast,
    sum_of_broadcast,
)
