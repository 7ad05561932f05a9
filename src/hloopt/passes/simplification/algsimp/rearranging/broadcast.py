"""Rules for broadcast and iota."""

from __future__ import annotations

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.rewriting.rules.pattern import op, value
from hloopt.passes.rewriting.rules.rule import EDITED, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.shapes import (
    inverse,
    is_sorted,
    only_inserts_ones,
    without_ones,
)
from hloopt.passes.simplification.algsimp.signatures import (
    has_dimensions,
    is_one_or_empty,
    reads_ones,
    repeats_nothing,
)
from hloopt.passes.simplification.algsimp.terms import is_elementwise

_BROADCAST = Opcode.BROADCAST  # a member of an enum is slow to look up in a loop


@rule(op("broadcast", "x"), signature=repeats_nothing)
def broadcast_to_reshape(m: AlgsimpMatch) -> Result:
    """A broadcast that repeats nothing and keeps the order of dimensions → reshape."""
    if not is_sorted(dimensions_of(m.root)):
        return None
    if m.same_shape(m.x, m.root):
        return m.if_compatible(m.x)
    return m.build.reshape(m.x, m.root.shape)


@rule(op("broadcast", "x"), signature=repeats_nothing)
def broadcast_to_transpose(m: AlgsimpMatch) -> Result:
    """A broadcast that repeats nothing and has the rank of its operand → transpose."""
    x, root = m.x.shape, m.root.shape
    if x.rank != root.rank:
        return None
    return m.build.transpose(m.x, inverse(dimensions_of(m.root)), root)


def _inserts_ones(reshape: Instruction) -> bool:
    before, after = reshape.operands[0].shape.dimensions, reshape.shape.dimensions
    return len(before) < len(after) and only_inserts_ones(before, after) is not None


@rule(op("broadcast", op("reshape", "x").where_known(_inserts_ones).named("reshape")))
def broadcast_of_reshape(m: AlgsimpMatch) -> Result:
    """broadcast(reshape(x)) → broadcast(x) where the reshape only inserts dimensions of size 1."""
    kept = only_inserts_ones(m.x.shape.dimensions, m.reshape.shape.dimensions)
    assert kept is not None  # by the pattern
    places = dimensions_of(m.root)
    return m.build.broadcast(m.x, [places[kept[d]] for d in range(m.x.shape.rank)], m.root.shape)


@rule(op("broadcast", "x"), option="enable_sink_broadcast", signature=has_dimensions)
def sink_broadcast(m: AlgsimpMatch) -> Result:
    """user(broadcast(a), broadcast(b), …) → broadcast(user(a, b, …)) for elementwise users, where
    all broadcasts have one operand shape and dimensions, or spread scalars."""
    done = False
    for user in list(m.root.users):
        if user.operands[0].opcode is not _BROADCAST or user.operands[-1].opcode is not _BROADCAST:
            continue  # of most users, which are many: no call for these
        operands = _sunk_operands(m, user)
        if operands is None:
            continue
        build, small = m.build, m.x.shape
        parts = [
            part if part.shape.dimensions == small.dimensions and not is_scalar else
            build.broadcast(part, (), small.with_element_type(part.shape.type_name))
            for part, is_scalar in operands
        ]  # fmt: skip
        shape = small.with_element_type(user.shape.type_name)
        made = build.clone(user, parts, shape)
        spread = build.broadcast(made, dimensions_of(m.root), user.shape)
        m.touched += [o for o in user.operands if o is not m.root]
        replace_instruction(user, spread)
        m.touched.append(spread)
        done = True
    return EDITED if done else None


def _sunk_operands(m: AlgsimpMatch, user: Instruction) -> list[tuple[Instruction, bool]] | None:
    """The operands for a user above its broadcasts, with whether each is a scalar to spread."""
    if any(operand.opcode is not _BROADCAST for operand in user.operands):
        return None
    if not is_elementwise(user) or user.opcode is Opcode.COPY or user.shape.is_dynamic:
        return None
    if user.has_control_dependencies or user.called or not (user.users or user.is_root):
        return None
    places = dimensions_of(m.root)
    found: list[tuple[Instruction, bool]] = []
    for operand in user.operands:
        (source,) = operand.operands
        if source.shape.is_scalar:
            found.append((source, True))
        elif source.shape.dimensions == m.x.shape.dimensions and dimensions_of(operand) == places:
            found.append((source, False))
        else:
            return None
    return found


_PERMUTES = (Opcode.RESHAPE, Opcode.REVERSE, Opcode.TRANSPOSE, Opcode.SORT)
_TAKES = frozenset((*_PERMUTES, Opcode.DYNAMIC_SLICE, Opcode.SLICE))


@rule(op("broadcast", value("x").scalar()))
def broadcast_through_user(m: AlgsimpMatch) -> Result:
    """A user of a broadcast scalar that only permutes it or takes a part → broadcast of the
    scalar: reshape, reverse, transpose, sort of an array, slice, dynamic-slice."""
    for user in m.root.users:
        if user.opcode not in _TAKES:  # as most
            continue
        if not (user.users or user.is_root) or user.has_control_dependencies:
            continue
        if user.opcode in _PERMUTES:
            if not user.shape.is_array or len(user.operands) > 1:
                continue
        elif user.opcode is Opcode.DYNAMIC_SLICE and (
            user.operands[0] is not m.root or m.root in user.operands[1:]
        ):
            continue
        if user.shape.is_dynamic:
            continue
        spread = m.build.broadcast(m.x, (), user.shape)
        m.touched += [o for o in user.operands if o is not m.root]
        replace_instruction(user, spread)
        m.touched.append(spread)
        return EDITED
    return None


@rule(op("broadcast", op("iota").named("iota")))
def broadcast_of_iota(m: AlgsimpMatch) -> Result:
    """broadcast(iota) → iota along the dimension to which the counted one is mapped."""
    counted = dimensions_of(m.root)[int(m.iota.attributes["iota_dimension"])]
    return m.build.iota(m.root.shape, counted)


@rule(op("broadcast", op("broadcast", "x").named("inner")))
def broadcast_of_broadcast(m: AlgsimpMatch) -> Result:
    """broadcast(broadcast(x)) → broadcast(x)."""
    places = dimensions_of(m.root)
    return m.build.broadcast(m.x, [places[d] for d in dimensions_of(m.inner)], m.root.shape)


@rule(
    op("broadcast", "x"),
    layouts="insensitive",
    option="enable_broadcast_degenerate_dimension",
    signature=reads_ones,
)
def broadcast_of_ones(m: AlgsimpMatch) -> Result:
    """broadcast(x) → broadcast(reshape(x)) without the dimensions of size 1 that x has."""
    sizes = m.x.shape.dimensions
    kept = [d for d, size in enumerate(sizes) if size != 1]
    places = dimensions_of(m.root)
    small = m.build.reshape(m.x, without_ones(sizes))
    return m.build.broadcast(small, [places[d] for d in kept], m.root.shape)


@rule(op("iota"), signature=is_one_or_empty)
def iota_of_one(m: AlgsimpMatch) -> Result:
    """iota along a dimension of size 0 or 1 → 0."""
    counted = int(m.root.attributes["iota_dimension"])
    if counted >= m.root.shape.rank or m.root.shape.dimensions[counted] > 1:
        return None
    return m.build.splat(0, m.root.shape)


RULES = (
    broadcast_to_reshape,
    broadcast_to_transpose,
    broadcast_of_reshape,
    sink_broadcast,
    broadcast_through_user,
    broadcast_of_iota,
    broadcast_of_broadcast,
    broadcast_of_ones,
    iota_of_one,
)
