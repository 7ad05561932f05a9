"""Refuse scheduling groups whose members use each other."""

from __future__ import annotations

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register


@register(
    "check-no-data-dependency-in-scheduling-annotations",
    preserves="bits",
    xla=XlaPass(
        "CheckNoDataDependencyInSchedulingAnnotations",
        "xla/service/legalize_scheduling_annotations.h",
        compared="nothing",
    ),
)
class CheckNoDataDependencyInSchedulingAnnotations(ModulePass):
    """Refuse a module in which a member of a scheduling group is an operand of another.

    What one member needs of another cannot overlap with it. Only direct operands count: neither
    control dependencies nor paths through what has no annotation. A start is an operand of its
    done, so the check is for programs whose collectives are not split yet. Changes nothing.
    Linear.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        for computation in module.computations.values():
            if computation.is_fusion:
                continue
            for instruction in computation.instructions:
                group = group_of(instruction)
                if group is None:
                    continue
                for operand in instruction.operands:
                    if group_of(operand) == group:
                        raise PassRefused(
                            "Found a direct data dependency between instructions with the same "
                            f"scheduling group id {group}: '%{instruction.name}' and its operand "
                            f"'%{operand.name}'",
                            span=module.span_of(instruction),
                            help="leave one of them out of the group",
                        )
        return False
