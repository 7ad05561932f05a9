"""Convert what a collective reduces instead of its result."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule, stable_order
from hloopt.ir.reduction_kind import reduction_kind
from hloopt.ir.tuples import is_parameter_element
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.rewriting.conversions import commutes, reduction_of_type
from hloopt.passes.rewriting.replace import attributes_for_another_value, inherit
from hloopt.passes.simplification.reorder_reduce_transpose import is_called_by_one_loop


@register(
    "reorder-convert-reduce-add",
    preserves="rounding",
    xla=XlaPass(
        "ReorderConvertReduceAdd",
        "xla/hlo/transforms/collectives/while_loop_all_reduce_code_motion_setup.h",
        compared="nothing",
    ),
)
class ReorderConvertReduceAdd(ModulePass):
    """In bodies of while loops, convert what an all-reduce takes instead of what it gives.

    `sum += convert(all-reduce(x))` becomes `sum += all-reduce(convert(x))`, where `sum` is an
    element of the state: the collective reduces values of the type that is accumulated, and
    `while-loop-all-reduce-code-motion` loses no precision when it moves it. Where what is reduced
    was converted from that very type, the program wants it smaller on the wire, and it stays. So
    do converts of integers that would no longer overflow. Linear in the size of loop bodies.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        enable_reduce_scatter: bool = option(False, "also do so for reduce-scatters")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        wanted = {Opcode.ALL_REDUCE}
        if self.options.enable_reduce_scatter:
            wanted.add(Opcode.REDUCE_SCATTER)
        changed: dict[Computation, None] = {}
        for computation in list(module.computations.values()):
            if not is_called_by_one_loop(computation):
                continue
            for convert in stable_order(computation):
                if convert.opcode is not Opcode.CONVERT:
                    continue
                collective = convert.operands[0]
                if collective.opcode not in wanted:
                    continue
                if reason := _why_not(collective, convert):
                    context.missed(collective, f"%{convert.name} stays behind it: {reason}")
                    continue
                if not context.apply(collective, f"%{convert.name} comes before it now"):
                    break
                context.count("converts moved")
                changed[computation] = None
                _swap(collective, convert)
        repair_schedule(changed)
        return bool(changed)


def _swap(collective: Instruction, convert: Instruction) -> None:
    (add,) = convert.users
    parent, value = convert.parent, collective.operands[0]
    type_name = convert.shape.type_name
    converted = parent.add(
        Opcode.CONVERT, value.shape.with_element_type(type_name), [value], name=convert.name
    )
    moved = parent.add(
        collective.opcode,
        convert.shape,
        [converted],
        name=collective.name,
        attributes=attributes_for_another_value(collective),
        called=(reduction_of_type(collective.called[0], type_name),),
    )
    inherit(convert, converted)
    left, right = add.operands
    add.set_operands([moved, right if left is convert else left])
    parent.remove(convert)
    parent.remove(collective)


def _why_not(collective: Instruction, convert: Instruction) -> str | None:
    if len(collective.operands) != 1 or collective.has_control_dependencies:
        return "it has several operands or control dependencies"
    user = next(iter(convert.users), None)
    if user is None or user.opcode is not Opcode.ADD:
        return "its result is not added to the state"
    left, right = user.operands
    if left is right or not is_parameter_element(right if left is convert else left):
        return "its result is not added to the state"
    for value in (collective, convert):
        if len(value.users) > 1 or value.is_root:
            return f"%{value.name} has other users, too"
    kind = reduction_kind(collective.called[0])
    if kind is None or not commutes(convert, kind):
        return "it cannot be done before reducing"
    value = collective.operands[0]
    if value.opcode is Opcode.RESHAPE:
        value = value.operands[0]
    if value.opcode is Opcode.CONVERT and (
        value.operands[0].shape.type_name == convert.shape.type_name
    ):
        return f"%{value.name} converts from {convert.shape.type_name}, and is undone"
    return None
