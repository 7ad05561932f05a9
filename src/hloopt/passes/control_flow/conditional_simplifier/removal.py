"""Conditionals whose branches may as well run without them."""

from __future__ import annotations

from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.opcode import Opcode
from hloopt.passes.control_flow.branch_contents import BranchContents, only_forwards
from hloopt.passes.control_flow.branches import call_both_branches, call_branch
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.rewriting.selects import select_between, why_no_select


def known_branch(conditional: Instruction) -> int | None:
    """The number of the branch that runs whenever the conditional does; None if that is open."""
    index = conditional.operands[0]
    if len(conditional.called) == 1:
        return 0
    if index.opcode is not Opcode.CONSTANT:
        return None
    value = canonical_literal(index.payload, index.shape)
    if index.shape.type_name == "pred":
        return 0 if value == "true" else 1
    last = len(conditional.called) - 1
    return int(value) if 0 <= int(value) <= last else last


class Removal:
    """Decides which conditionals of a module can go, and puts calls in their place."""

    def __init__(self, effects: SideEffects) -> None:
        self.effects = effects
        self.contents = BranchContents()

    def why_not(self, conditional: Instruction) -> str | None:
        """The reason why the conditional must stay, or None where it can go."""
        if conditional.has_control_dependencies:
            return "it has control dependencies"
        frontend = conditional.attributes.get("frontend_attributes", "{}")
        if "_scheduling_group_id" in parse_frontend_attributes(frontend):
            return "it is in a scheduling group"
        if self.effects.of(conditional):
            return "a branch has a side effect"
        for branch in conditional.called:
            if collective := self.contents.collective(branch):
                return f"%{collective.name} in %{branch.name} communicates"
        if known_branch(conditional) is None:
            return self._why_no_selects(conditional)
        return None

    def _why_no_selects(self, conditional: Instruction) -> str | None:
        """The reason why not to run both branches and select from what they give."""
        index = conditional.operands[0]
        if index.shape.type_name != "pred":
            return f"%{index.name} is not constant, and no predicate"
        if reason := why_no_select(conditional.shape):
            return reason
        gives_arrays = any(leaf.is_array for leaf in conditional.shape.leaves())
        for branch in conditional.called:
            if expensive := self.contents.expensive(branch):
                return f"%{expensive.name} in %{branch.name} may be too expensive to run always"
            if gives_arrays and only_forwards(branch):
                return f"%{branch.name} computes nothing, which is cheaper than a select"
        return None


def replace_by_calls(conditional: Instruction) -> list[Instruction]:
    """Replace a conditional by a call of the known branch, or by calls of both and selects.

    Returns the calls. O(subshapes + users + instructions of the branches and of what they call).
    """
    number = known_branch(conditional)
    if number is not None:
        calls = [call_branch(conditional, number)]
        replacement = calls[0]
    else:
        calls = call_both_branches(conditional)
        replacement = select_between(conditional.operands[0], *calls)
    replace_instruction(conditional, replacement)
    return calls
