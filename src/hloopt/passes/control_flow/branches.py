"""Computations that conditionals run, made free to be changed.

A conditional that runs asynchronously cannot change, since it has to stay alone in its computation:
it is not meant here where conditionals are spoken of.
"""

from __future__ import annotations

from hloopt.ir.clone import clone_to_change
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.replace import inherit
from hloopt.passes.rewriting.slice_places import forget_slices, has_notes


def runs_asynchronously(instruction: Instruction) -> bool:
    """Whether an async-start runs the computation of the instruction. O(callers)."""
    return any(caller.opcode is Opcode.ASYNC_START for caller in instruction.parent.callers)


def branches_of(module: Module) -> list[Computation]:
    """The computations that conditionals run, in the module's order. O(calls)."""
    return [c for c in module.computations.values() if any(map(_is_meant, c.callers))]


def callers_of_branch(branch: Computation) -> list[tuple[Instruction, int]]:
    """Each conditional that runs the branch, with the number the branch has there."""
    return [
        (caller, number)
        for caller in branch.callers
        if _is_meant(caller)
        for number, called in enumerate(caller.called)
        if called is branch
    ]


def apart_from_others(branch: Computation) -> Computation:
    """The branch, or a copy for all conditionals where something else calls it as well.

    O(callers), and O(instructions) for a copy.
    """
    conditionals = [caller for caller in branch.callers if _is_meant(caller)]
    if len(conditionals) == len(branch.callers):
        return branch
    copy = clone_to_change(branch)
    for conditional in conditionals:
        conditional.set_called(tuple(copy if c is branch else c for c in conditional.called))
    return copy


def _is_meant(caller: Instruction) -> bool:
    return caller.opcode is Opcode.CONDITIONAL and not runs_asynchronously(caller)


def call_branch(conditional: Instruction, number: int) -> Instruction:
    """A new call of a branch with the argument that the conditional has for it. O(1)."""
    call = conditional.parent.add(
        Opcode.CALL,
        conditional.shape,
        [conditional.operands[number + 1]],
        called=(conditional.called[number],),
    )
    inherit(conditional, call)
    return call


def call_both_branches(conditional: Instruction) -> list[Instruction]:
    """New calls of both branches, each of which runs where the other one did as well.

    Notes on slices in them go, which may be true only where the branch did run. O(1), and
    O(instructions of both and of what they call) to find notes.
    """
    calls = [call_branch(conditional, 0), call_branch(conditional, 1)]
    for call in calls:
        if has_notes(call.called[0].instructions):
            call.set_called((clone_to_change(call.called[0]),))
            forget_slices(call.called[0].instructions)
    return calls


def own_branches(conditional: Instruction) -> dict[Computation, Computation]:
    """Give a conditional branches that nothing else calls; returns the copies by original.

    O(branches + instructions of those that are copied).
    """
    shared = [branch for branch in dict.fromkeys(conditional.called) if len(branch.callers) > 1]
    copies = {branch: clone_to_change(branch) for branch in shared}
    if copies:
        conditional.set_called(tuple(copies.get(branch, branch) for branch in conditional.called))
    return copies
