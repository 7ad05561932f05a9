"""Give dynamic slices one scalar index for each dimension."""

from __future__ import annotations

from hloopt.ir.attributes.values import Slice
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import (
    control_dependencies_can_move,
    replace_instruction,
    shardings_differ,
)
from hloopt.passes.rewriting.rules import Builder

_BEFORE_INDICES = {Opcode.DYNAMIC_SLICE: 1, Opcode.DYNAMIC_UPDATE_SLICE: 2}
"""Operands in front of the indices, the last of them what a slice of rank 0 is."""


@register(
    "dynamic-index-splitter",
    preserves="bits",
    xla=XlaPass("DynamicIndexSplitter", "xla/hlo/transforms/expanders/dynamic_index_splitter.h"),
)
class DynamicIndexSplitter(ModulePass):
    """Split the index vector of a dynamic-slice or dynamic-update-slice into scalar indices.

    Each index is a reshape of a slice of the vector. Slices of scalars become the operand, updates
    of scalars the update. Scalar indices stay, and so do fusions' insides. Linear in the size of
    the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        for opcode in _BEFORE_INDICES:
            for operation in list(module.instructions(opcode)):
                if operation.parent.is_fusion:
                    continue
                if _is_of_scalar(operation):
                    changed = _replace_by_operand(operation, context)
                else:
                    changed = _split(operation, context)
                if changed:
                    touched[operation.parent] = None
        repair_schedule(touched)
        return bool(touched)


def _is_of_scalar(operation: Instruction) -> bool:
    return not operation.operands[0].shape.dimensions


def _replace_by_operand(operation: Instruction, context: PassContext) -> bool:
    value = operation.operands[_BEFORE_INDICES[operation.opcode] - 1]
    if not (operation.users or operation.is_root):
        return False
    if operation.shape is not value.shape:
        context.missed(operation, f"its shape differs from that of %{value.name}")
    elif shardings_differ(operation, value):
        context.missed(operation, f"its sharding differs from that of %{value.name}")
    elif not control_dependencies_can_move(operation, value):
        context.missed(operation, f"a control predecessor of it may depend on %{value.name}")
    elif context.apply(operation, f"replaced by %{value.name}: there is one place to slice"):
        context.count("slices of scalars removed")
        replace_instruction(operation, value)
        return True
    return False


def _split(operation: Instruction, context: PassContext) -> bool:
    first = _BEFORE_INDICES[operation.opcode]
    operands = operation.operands
    vector = operands[first]
    if vector.shape.rank != 1:
        return False
    if not context.apply(operation, f"%{vector.name} split into scalar indices"):
        return False
    context.count("index vectors split")
    build = Builder(operation.parent)
    indices = [
        build.reshape(build.slice(vector, [Slice(n, n + 1, 1)]), ())
        for n in range(vector.shape.dimensions[0])
    ]
    operation.set_operands([*operands[:first], *indices])
    return True
