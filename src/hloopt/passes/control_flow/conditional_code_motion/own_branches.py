"""Branches that a conditional has for itself, so that they may change."""

from __future__ import annotations

from collections import Counter

from hloopt.ir.clone import clone_computation, own_computations
from hloopt.ir.instruction import Instruction


def own_branches(conditional: Instruction) -> list[dict[Instruction, Instruction]]:
    """Give each branch of a conditional a computation that nothing else runs, by copying.

    Of the uses of a computation the last one keeps it. Returns for each branch the copies by
    original, none where the branch is not a copy. O(branches + instructions copied).
    """
    uses = Counter({branch: sum(branch.callers.values()) for branch in conditional.called})
    branches = list(conditional.called)
    copies: list[dict[Instruction, Instruction]] = [{} for _ in branches]
    for number, branch in enumerate(conditional.called):
        if uses[branch] > 1:
            uses[branch] -= 1
            branches[number], copies[number] = clone_computation(branch)
            for copy in copies[number].values():
                own_computations(copy)
    if branches != list(conditional.called):
        conditional.set_called(tuple(branches))
    return copies
