"""Rewriting: what only some branches of a conditional use is computed in these."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.passes.control_flow.conditional_code_motion.arguments import Plan
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Group, Position
from hloopt.passes.control_flow.conditional_code_motion.branch_argument import BranchArgument
from hloopt.passes.rewriting.replace import remove_unused


def move_operands_in(conditional: Instruction, groups: Sequence[Group]) -> None:
    """Move groups of operands into the branches they are for, which nothing else runs.

    O(operands x branches of what moves + elements of the tuples handed to branches).
    """
    for group in groups:
        if group.position is Position.OPERAND:
            _move(conditional, [boundary.first for boundary in group.moved])


def _move(conditional: Instruction, group: list[Instruction]) -> None:
    plan = Plan(group)
    argument = plan.build()
    branches: list[Computation] = []
    for number, branch in enumerate(conditional.called, start=1):
        if conditional.operands[number] is plan.argument:
            conditional.replace_operand(number, argument)
            branches.append(branch)
    for branch in branches:
        BranchArgument(branch, plan).rewrite()
    remove_unused(group)
