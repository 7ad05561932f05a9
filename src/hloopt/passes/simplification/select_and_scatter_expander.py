"""Find the selected places of windows with a reduce-window, and scatter there."""

from __future__ import annotations

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.clone import copy_instructions
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule, stable_order
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.rewriting.rules import Builder

_INDEX = array_shape("s32")


@register(
    "select-and-scatter-expander",
    preserves="rounding",
    xla=XlaPass("SelectAndScatterExpander", "xla/service/select_and_scatter_expander.h"),
)
class SelectAndScatterExpander(ModulePass):
    """Make a reduce-window and a scatter of a select-and-scatter.

    The reduce-window goes over the operand and an iota for each dimension, so that it gives the
    place of the element that each window selects; the scatter adds the source at these places of an
    array of initial values. An iota of -1 says that an element is outside. Dynamic sizes and
    scalars stay, and so do fusions' insides and the computation that selected. Linear in the size
    of the module and of the result.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        for selection in list(module.instructions(Opcode.SELECT_AND_SCATTER)):
            if selection.parent.is_fusion:
                continue
            if reason := _why_not(selection):
                context.missed(selection, reason)
                continue
            if not context.apply(selection, "a reduce-window and a scatter now"):
                break
            context.count("select-and-scatters expanded")
            touched[selection.parent] = None
            _expand(selection)
        repair_schedule(touched)
        return bool(touched)


def _why_not(selection: Instruction) -> str | None:
    """The reason why a select-and-scatter must stay, or None where it may be expanded."""
    if any(shape.is_dynamic for shape in (selection.shape, *(o.shape for o in selection.operands))):
        return "its sizes are dynamic"
    return None if selection.shape.dimensions else "it selects from a scalar"


def _expand(selection: Instruction) -> None:
    operand, source, init = selection.operands
    select, scatter = selection.called
    rank = operand.shape.rank
    build = Builder(selection.parent)
    places = array_shape("s32", operand.shape.dimensions, layout=operand.shape.layout)
    iotas = [build.iota(places, d) for d in range(rank)]
    outside = build.make(Opcode.CONSTANT, shape=_INDEX, payload="-1")
    found = build.make(
        Opcode.REDUCE_WINDOW,
        *(operand, *iotas, init, *([outside] * rank)),
        shape=tuple_shape(
            [source.shape.with_element_type(operand.shape.type_name)]
            + [source.shape.with_element_type("s32")] * rank
        ),
        called=(_reducer(select, operand.shape.type_name, rank),),
        attributes={"window": selection.attributes["window"]},
    )
    sizes = (*source.shape.dimensions, 1)
    columns = [build.reshape(read_element(found, 1 + d), sizes) for d in range(rank)]
    indices = build.concatenate(columns, len(sizes) - 1)
    dimensions = format_ints(range(rank))
    scattered = build.make(
        Opcode.SCATTER,
        *(build.broadcast(init, (), selection.shape), indices, source),
        shape=selection.shape,
        called=(scatter,),
        attributes={
            "update_window_dims": "{}",
            "inserted_window_dims": dimensions,
            "scatter_dims_to_operand_dims": dimensions,
            "index_vector_dim": str(rank),
        },
    )
    replace_instruction(selection, scattered)


def _reducer(select: Computation, type_name: str, rank: int) -> Computation:
    """A computation over values and places: of two elements the one that is selected.

    The left one stays if it is inside the array and `select` holds, or if the right one is outside.
    """
    made = select.module.add_computation(f"{select.name}.reduce_window")
    scalar: Shape = array_shape(type_name)
    sides = [
        [
            made.add(
                Opcode.PARAMETER,
                scalar if d == 0 else _INDEX,
                name=f"{'iota' if d else 'operand'}_{side}",
                payload=str(number * (rank + 1) + d),
            )
            for d in range(rank + 1)
        ]
        for number, side in enumerate(("lhs", "rhs"))
    ]
    left, right = sides
    parameters = dict(zip(select.parameters, (left[0], right[0]), strict=True))
    inside = [i for i in stable_order(select) if i.opcode is not Opcode.PARAMETER]
    holds = copy_instructions(inside, made, parameters)[select.root]
    build = Builder(made)
    outside = build.make(Opcode.CONSTANT, shape=_INDEX, payload="-1")
    is_left = build.binary(Opcode.AND, holds, build.compare("NE", left[1], outside))
    no_right = build.unary(Opcode.NOT, build.compare("NE", right[1], outside))
    keeps = build.binary(Opcode.OR, is_left, no_right)
    made.set_root(
        make_tuple(made, [build.select(keeps, a, b) for a, b in zip(left, right, strict=True)])
    )
    return made
