"""Write reshapes as bitcasts and copies, once layouts are assigned."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Builder, Match, Missed, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.shapes import common_factors, is_bitcast


@rule(op("reshape", "x"), moves_control=True)
def decompose(match: Match) -> Result:
    """reshape(x) -> bitcast(x), bitcast(copy(x)), copy(bitcast(x)) or copy(bitcast(copy(x)))."""
    build, x, shape = match.build, match.x, match.root.shape
    if is_bitcast(x.shape, shape):
        return _bitcast(build, x, shape)
    if not (_is_plain(x.shape) and _is_plain(shape)):
        return Missed("its layouts have more than an order of dimensions")
    aligned = _aligned(x.shape, shape)
    if aligned is not None:
        return _bitcast(build, build.make("copy", x, shape=aligned), shape)
    aligned = _aligned(shape, x.shape)
    if aligned is not None:
        return build.make("copy", _bitcast(build, x, aligned), shape=shape)
    dense, result = (array_shape(s.type_name, s.dimensions) for s in (x.shape, shape))
    first = build.make("copy", x, shape=dense)
    return build.make("copy", _bitcast(build, first, result), shape=shape)


def _bitcast(build: Builder, operand: Instruction, shape: Shape) -> Instruction:
    made = build.bitcast(operand, shape)
    if "metadata" in operand.attributes:
        made.set_attribute("metadata", operand.attributes["metadata"])
    return made


def _is_plain(shape: Shape) -> bool:
    layout = shape.layout
    return layout == layout.__class__(layout.minor_to_major)


def _aligned(shape: Shape, other: Shape) -> Shape | None:
    """`shape` in the layout in which it has the bytes of `other`; None where there is none."""
    own, theirs = ([d for d, n in enumerate(s.dimensions) if n != 1] for s in (shape, other))
    groups = common_factors(
        [shape.dimensions[d] for d in own], [other.dimensions[d] for d in theirs]
    )
    group_of = {theirs[place]: n for n, group in enumerate(groups) for place in group.after}
    order: list[int] = []
    last = -1
    for dimension in reversed(other.layout.minor_to_major):
        group = group_of.get(dimension)
        if group is None:  # of size 1
            continue
        if order and order[-1] == group:
            if dimension < last:
                return None
        elif group in order:
            return None
        else:
            order.append(group)
        last = dimension
    major = [own[place] for number in order for place in groups[number].before]
    major += [d for d in range(shape.rank) if d not in own]
    layout = shape.layout._replace(minor_to_major=tuple(reversed(major)))
    return array_shape(shape.type_name, shape.dimensions, layout=layout)


@register(
    "reshape-decomposer",
    preserves="bits",
    xla=XlaPass("ReshapeDecomposer", "xla/hlo/transforms/expanders/reshape_decomposer.h"),
)
class ReshapeDecomposer(RulePass):
    """Write reshapes as what they do in memory: a bitcast where nothing moves, else copies too.

    Where a reshape moves data, its operand is copied to a layout in which it does not; or else the
    result is copied from one; or both are copied, by way of default layouts. Layouts have to be
    assigned; reshapes that move data of tiled ones stay. Linear in the number of instructions.
    """

    rules = (decompose,)
    max_sweeps = 1
