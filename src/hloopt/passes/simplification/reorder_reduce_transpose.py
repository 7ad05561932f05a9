"""Transpose what a reduce-scatter takes instead of what it gives."""

from __future__ import annotations

from hloopt.analysis.loops.sources import only_caller
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule, stable_order
from hloopt.ir.reduction_kind import reduction_kind
from hloopt.ir.shapes.shape import array_shape
from hloopt.ir.tuples import is_parameter_element
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.conversions import commutes, reduction_of_type
from hloopt.passes.rewriting.replace import attributes_for_another_value, replace_instruction


@register(
    "reorder-reduce-transpose",
    preserves="bits",
    xla=XlaPass(
        "ReorderReduceTranspose",
        "xla/hlo/transforms/collectives/while_loop_all_reduce_code_motion_setup.h",
        compared="nothing",
    ),
)
class ReorderReduceTranspose(ModulePass):
    """In bodies of while loops, transpose what a reduce-scatter takes instead of what it gives.

    So that `sum += transpose(reduce-scatter(x))` becomes a form in which
    `while-loop-all-reduce-code-motion` can move the reduce-scatter out of the loop. The result, or
    a convert of it, is transposed, and then added to an element of the state, or reshaped and
    stored with a dynamic-update-slice. A convert moves, too; then the collective reduces values of
    the new type. Linear in the size of loop bodies.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        changed: dict[Computation, None] = {}
        for computation in list(module.computations.values()):
            if not is_called_by_one_loop(computation):
                continue
            for transpose in stable_order(computation):
                scatter = _scatter_behind(transpose)
                if scatter is None:
                    continue
                if reason := _why_not(scatter, transpose):
                    context.missed(scatter, f"%{transpose.name} stays behind it: {reason}")
                    continue
                if not context.apply(scatter, f"%{transpose.name} comes before it now"):
                    break
                context.count("transposes moved")
                changed[computation] = None
                _swap(scatter, transpose)
        repair_schedule(changed)
        return bool(changed)


def is_called_by_one_loop(computation: Computation) -> bool:
    """Whether one while, and nothing else, calls a computation, as its body or condition."""
    caller = only_caller(computation)
    return caller is not None and caller.opcode is Opcode.WHILE


def _scatter_behind(value: Instruction) -> Instruction | None:
    """The reduce-scatter of which a value is the transpose, perhaps of a convert."""
    if value.opcode is not Opcode.TRANSPOSE:
        return None
    source = value.operands[0]
    if source.opcode is Opcode.CONVERT:
        source = source.operands[0]
    return source if source.opcode is Opcode.REDUCE_SCATTER else None


def _swap(scatter: Instruction, transpose: Instruction) -> None:
    convert = transpose.operands[0]
    order = dimensions_of(transpose)
    value, parent = scatter.operands[0], scatter.parent
    reduction = scatter.called[0]
    if convert is not scatter:
        type_name = convert.shape.type_name
        reduction = reduction_of_type(reduction, type_name)
        value = parent.add(
            Opcode.CONVERT, value.shape.with_element_type(type_name), [value], name=convert.name
        )
    turned = _transposed(value, transpose)
    (dimension,) = dimensions_of(scatter)
    moved = parent.add(
        Opcode.REDUCE_SCATTER,
        transpose.shape,
        [turned],
        name=scatter.name,
        attributes={
            **attributes_for_another_value(scatter),
            "dimensions": format_ints((order.index(dimension),)),
        },
        called=(reduction,),
    )
    replace_instruction(transpose, moved)
    if convert is not scatter:
        parent.remove(convert)
    parent.remove(scatter)


def _transposed(value: Instruction, like: Instruction) -> Instruction:
    """A transpose of another value, in the same order and layout."""
    order = dimensions_of(like)
    shape = value.shape
    dimensions = tuple(shape.dimensions[dimension] for dimension in order)
    turned = array_shape(like.shape.type_name, dimensions, layout=like.shape.layout)
    return value.parent.add(
        Opcode.TRANSPOSE, turned, [value], name=like.name, attributes=like.attributes
    )


def _why_not(scatter: Instruction, transpose: Instruction) -> str | None:
    convert = transpose.operands[0]
    if len(scatter.operands) != 1 or scatter.has_control_dependencies or scatter.shape.is_dynamic:
        return "it has several operands, control dependencies, or a dynamic size"
    if not _is_gathered(transpose):
        return "it is neither added to the state nor stored in it"
    for value in (scatter, convert):
        if len(value.users) > 1 or value.is_root:
            return f"%{value.name} has other users, too"
    if convert is not scatter:
        kind = reduction_kind(scatter.called[0])
        if kind is None or not commutes(convert, kind):
            return f"%{convert.name} cannot be done before reducing"
    return None


def _is_gathered(transpose: Instruction) -> bool:
    """Whether the first user adds the value to the state, or stores it after a reshape."""
    user = next(iter(transpose.users), None)
    if user is None:
        return False
    if user.opcode is Opcode.ADD:
        return any(map(is_parameter_element, user.operands))
    after = next(iter(user.users), None)
    return (
        user.opcode is Opcode.RESHAPE
        and after is not None
        and after.opcode is Opcode.DYNAMIC_UPDATE_SLICE
    )
