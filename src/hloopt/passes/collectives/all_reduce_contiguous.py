"""Let an all-reduce of several values work on one piece of memory."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import attributes_for_another_value, replace_instruction


@register(
    "all-reduce-contiguous",
    preserves="bits",
    xla=XlaPass("AllReduceContiguous", "xla/hlo/transforms/collectives/all_reduce_contiguous.h"),
)
class AllReduceContiguous(ModulePass):
    """Concatenate the operands of an all-reduce of several values, and slice its result.

    What the combiners leave as one collective with many buffers becomes one with a single buffer.
    Asked of XLA:GPU's compiler: the form of the result, from which it drops metadata and frontend
    attributes. Operands of different element types, of which XLA would make a module that is not
    valid, stay, as does what an async-start wraps. Linear in the module's size.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        changed: dict[Computation, None] = {}
        for reduce in list(module.instructions(Opcode.ALL_REDUCE)):
            if len(reduce.operands) < 2:
                continue
            if reason := _why_not(reduce):
                context.missed(reduce, reason)
                continue
            if not context.apply(reduce, f"its {len(reduce.operands)} operands are one now"):
                break
            context.count("operands concatenated", len(reduce.operands))
            changed[reduce.parent] = None
            _concatenate(reduce)
        repair_schedule(changed)
        return bool(changed)


def _why_not(reduce: Instruction) -> str | None:
    if reduce.parent.is_asynchronous:
        return f"%{reduce.parent.name}, which runs asynchronously, holds nothing else"
    if constrains_layout(reduce):
        return "its layout is constrained"
    types = {operand.shape.type_name for operand in reduce.operands}
    if len(types) > 1:
        return f"its operands have several element types: {', '.join(sorted(types))}"
    for operand, shape in zip(reduce.operands, reduce.shape.elements, strict=True):
        if operand.shape is not shape or shape.is_dynamic:
            return f"%{operand.name} has a dynamic size, or another layout than its result"
    return None


def _concatenate(reduce: Instruction) -> None:
    parent, shapes = reduce.parent, reduce.shape.elements
    type_name = shapes[0].type_name
    sizes = [shape.element_count() for shape in shapes]
    flat = [
        parent.add(Opcode.BITCAST, array_shape(type_name, (size,)), [operand])
        for operand, size in zip(reduce.operands, sizes, strict=True)
    ]
    whole = array_shape(type_name, (sum(sizes),))
    attributes = {"dimensions": "{0}"}
    buffer = parent.add(Opcode.CONCATENATE, whole, flat, attributes=attributes)
    attributes = attributes_for_another_value(reduce)
    result = parent.add(
        Opcode.ALL_REDUCE, whole, [buffer], attributes=attributes, called=reduce.called
    )
    values: list[Instruction] = []
    limits = pairwise(accumulate(sizes, initial=0))
    for shape, (start, limit) in zip(shapes, limits, strict=True):
        part = parent.add(
            Opcode.SLICE,
            array_shape(type_name, (limit - start,)),
            [result],
            attributes={"slice": f"{{[{start}:{limit}]}}"},
        )
        values.append(parent.add(Opcode.BITCAST, shape, [part]))
    reduce.move_control_dependencies_to(result)
    reduce_tuple = parent.add(Opcode.TUPLE, reduce.shape, values)
    replace_instruction(reduce, reduce_tuple)
