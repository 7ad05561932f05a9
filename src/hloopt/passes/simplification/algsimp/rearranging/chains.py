"""Chains of transposes, reshapes, bitcasts and copies that end where they began."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.rewriting.rules.pattern import either, op
from hloopt.passes.rewriting.rules.rule import Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch, AlgsimpOptions
from hloopt.passes.simplification.algsimp.shapes import (
    is_bitcast,
    is_identity,
    transpose_is_bitcast,
)
from hloopt.passes.simplification.algsimp.signatures import moves_a_one, permutes_ones

_MOVES = ("reshape", "bitcast", "transpose")
_LONGEST = 64


def _may_end_a_chain(move: Instruction) -> bool:
    """Whether something is above a move that it may undo, or it moves nothing."""
    (x,) = move.operands
    if move.opcode is not Opcode.TRANSPOSE:
        return moves_a_one(x.shape, move.shape)
    return x.opcode in _MOVES or permutes_ones(move)


@rule(
    either(op("transpose", "x"), op(("reshape", "bitcast"), op(_MOVES).named("x"))),
    moves_control=True,
    signature=_may_end_a_chain,
)
def transpose_reshape_chain(m: AlgsimpMatch) -> Result:
    """A chain of transposes, and of reshapes that only move a dimension of size 1, goes where the
    transposes undo each other and the shape is again that of its start; with layouts it becomes a
    bitcast where that moves nothing."""
    for start in _undone(m.root, m):
        if m.same_shape(start, m.root):
            return m.if_compatible(start)
        if m.layout_sensitive and reshape_is_bitcast(m.options, start.shape, m.root.shape):
            return m.build.bitcast(start, m.root.shape)
    return None


def _undone(root: Instruction, m: AlgsimpMatch) -> Iterator[Instruction]:
    """Values above `root` that differ from it by dimensions of size 1 at most; chains with a
    transpose only."""
    order = list(range(sum(size != 1 for size in root.shape.dimensions)))
    current, has_transpose = root, False
    for _ in range(_LONGEST):
        if not current.operands:
            return
        before = current.operands[0]
        if current.opcode is Opcode.TRANSPOSE:
            if is_identity(dimensions_of(current)):
                return
            has_transpose = True
            order = _through(current, order)
        elif (
            current.opcode not in (Opcode.RESHAPE, Opcode.BITCAST)
            or not moves_a_one(before.shape, current.shape)
            or (
                current.opcode is Opcode.BITCAST
                and not (
                    m.layout_sensitive
                    and reshape_is_bitcast(m.options, before.shape, current.shape)
                )
            )
        ):
            return
        current = before
        if has_transpose and current.shape.element_type is not root.shape.element_type:
            return
        if has_transpose and is_identity(order):
            yield current


def _through(transpose: Instruction, order: list[int]) -> list[int]:
    """For each dimension of the root that is not 1, its place above the transpose."""
    sizes = transpose.operands[0].shape.dimensions
    places = {d: n for n, d in enumerate(d for d, size in enumerate(sizes) if size != 1)}
    moved = [places[d] for d in dimensions_of(transpose) if sizes[d] != 1]
    return [moved[n] for n in order]


def reshape_is_bitcast(options: AlgsimpOptions, before: Shape, after: Shape) -> bool:
    """Whether a reshape moves nothing in memory, as the option `reshape_is_bitcast` decides."""
    decide = options.reshape_is_bitcast
    if decide == "never":
        return False
    if callable(decide):
        return bool(decide(before, after))
    return is_bitcast(before, after)


@rule(op("transpose", "x"), layouts="sensitive")
def transpose_to_bitcast(m: AlgsimpMatch) -> Result:
    """A transpose that moves nothing in memory → bitcast."""
    if m.options.reshape_is_bitcast == "never":
        return None
    if not transpose_is_bitcast(m.x.shape, m.root.shape, dimensions_of(m.root)):
        return None
    return m.build.bitcast(m.x, m.root.shape)


@rule(op(("reshape", "copy"), op(("reshape", "copy", "bitcast"))), layouts="sensitive")
def reshape_copy_chain_to_bitcast(m: AlgsimpMatch) -> Result:
    """A chain of reshapes and copies → bitcast of its start where nothing moves between both."""
    best: Instruction | None = None
    current = m.root
    while current.opcode in (Opcode.RESHAPE, Opcode.COPY):
        (current,) = current.operands
        if reshape_is_bitcast(m.options, current.shape, m.root.shape):
            best = current
    if best is None:
        return None
    if best.shape is m.root.shape:
        return m.if_compatible(best)
    return m.build.bitcast(best, m.root.shape)


@rule(op("reshape", "x"), layouts="sensitive")
def reshape_to_bitcast(m: AlgsimpMatch) -> Result:
    """A reshape that moves nothing in memory → bitcast."""
    if not reshape_is_bitcast(m.options, m.x.shape, m.root.shape):
        return None
    return m.build.bitcast(m.x, m.root.shape)


RULES_OF_CHAINS = (transpose_reshape_chain,)
RULES_OF_BITCASTS = (transpose_to_bitcast, reshape_copy_chain_to_bitcast, reshape_to_bitcast)
