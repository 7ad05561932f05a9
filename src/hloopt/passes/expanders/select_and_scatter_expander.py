"""Write select-and-scatter as a reduce-window that finds positions, and a scatter."""

from __future__ import annotations

from hloopt.ir.clone import copy_instructions, own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.expanders.indices import set_ints
from hloopt.passes.rewriting.rules import Builder, Match, Missed, Result, RulePass, op, rule

_MOST = (1 << 31) - 1
_S32 = array_shape("s32")
_OUTSIDE = -1
"""The position of what is not inside the window."""


@rule(op("select-and-scatter", "x", "source", "init"), floats="rounding", moves_control=True)
def expand(match: Match) -> Result:
    """select-and-scatter(x, source, init) -> scatter(init, positions, source)."""
    build, x, source, root = match.build, match.x, match.source, match.root
    sizes, rank = source.shape.dimensions, x.shape.rank
    if not rank:
        return Missed("it works on a scalar")
    if max(x.shape.dimensions) > _MOST:
        return Missed(f"positions in %{x.name} do not fit s32")
    select, combine = root.called
    positions = array_shape("s32", x.shape.dimensions)
    iotas = [build.iota(positions, dimension) for dimension in range(rank)]
    outside = build.scalar(_OUTSIDE, _S32)
    found = array_shape("s32", sizes)
    selected = build.make(
        "reduce-window", x, *iotas, match.init, *[outside] * rank,
        shape=tuple_shape([array_shape(x.shape.type_name, sizes), *[found] * rank]),
        called=(_selector(select, rank, x.shape),),
        attributes={"window": root.attributes.get("window", "{}")},
    )  # fmt: skip
    parts = []
    for number in range(1, rank + 1):
        element = build.make(
            "get-tuple-element", selected, shape=found, attributes={"index": str(number)}
        )
        parts.append(build.reshape(element, (*sizes, 1)))
    indices = build.concatenate(parts, len(sizes))
    start = build.broadcast(match.init, (), root.shape)
    scatter = build.make(
        "scatter", start, indices, source, shape=root.shape, called=(combine,),
        attributes={"update_window_dims": "{}", "index_vector_dim": str(len(sizes))},
    )  # fmt: skip
    every = range(rank)
    set_ints(scatter, {"inserted_window_dims": every, "scatter_dims_to_operand_dims": every})
    return scatter


def _selector(select: Computation, rank: int, operand: Shape) -> Computation:
    """The reducer of (value, position…): the left one if it is inside and selected, or alone."""
    made = select.module.add_computation(f"{select.name}.reduce_window")
    scalar = array_shape(operand.type_name)
    shapes = [scalar, *[_S32] * rank]
    parameters = [
        made.add(Opcode.PARAMETER, shape, payload=str(n)) for n, shape in enumerate(shapes * 2)
    ]
    left, right = parameters[: rank + 1], parameters[rank + 1 :]
    build = Builder(made)
    copies = copy_instructions(
        [i for i in post_order(select) if i.opcode is not Opcode.PARAMETER],
        made,
        dict(zip(select.parameters, (left[0], right[0]), strict=True)),
    )
    for copy in copies.values():
        own_computations(copy)
    outside = build.scalar(_OUTSIDE, _S32)
    keeps = build.binary("and", copies[select.root], build.compare("NE", left[1], outside))
    is_alone = build.unary("not", build.compare("NE", right[1], outside))
    takes_left = build.binary("or", keeps, is_alone)
    chosen: list[Instruction] = [
        build.select(takes_left, a, b) for a, b in zip(left, right, strict=True)
    ]
    made.set_root(build.make("tuple", *chosen))
    return made


@register(
    "select-and-scatter-expander",
    preserves="rounding",
    xla=XlaPass("SelectAndScatterExpander", "xla/service/select_and_scatter_expander.h"),
)
class SelectAndScatterExpander(RulePass):
    """Write select-and-scatter as a reduce-window that selects a position, and a scatter to it.

    The reduce-window works on the operand and an iota for each dimension; padding has the position
    -1, and is never selected. The positions are the indices by which the source is scattered into a
    broadcast of the initial value, with the old computation. Scalars stay. Linear in the number of
    instructions.
    """

    rules = (expand,)
    max_sweeps = 1
