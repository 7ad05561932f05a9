"""Loops that make no trip, or one, are no loops."""

from __future__ import annotations

from hloopt.analysis.loops.annotation import STAYS_WITH_ONE_TRIP
from hloopt.analysis.loops.trip_count import LoopTrips
from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import counted
from hloopt.ir.attributes.frontend_attributes import frontend_attributes
from hloopt.ir.clone import clone_to_change
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.call_graph.call_inliner import CallInliner, Inliner
from hloopt.passes.rewriting.replace import OF_THE_VALUE, replace_instruction
from hloopt.passes.rewriting.slice_places import has_notes, leave_loop


def why_not_remove(loop: Instruction, trips: LoopTrips, effects: SideEffects) -> str | None:
    """The reason why a loop has to stay; None where it makes no trip or one, and may go."""
    body, condition = loop.called
    if trips.computed is None:
        return f"its trip count is not known: {trips.reason}"
    if trips.computed > 1:
        return f"it makes {counted(trips.computed, 'trip')}"
    if effects.of_computation(condition):
        return f"%{condition.name} has side effects"
    if loop.shape is not loop.operands[0].shape:
        return "its initial state is laid out in another way"
    if trips.computed == 0:
        return None
    if effects.of_computation(body):
        return f"%{body.name} has side effects"
    hints = frontend_attributes(loop)
    if hints.get("inlineable") == "false":
        return "it is marked inlineable=false"
    if hints.get(STAYS_WITH_ONE_TRIP) == "true":
        return f"it is marked {STAYS_WITH_ONE_TRIP}=true"
    return None


def remove_loop(loop: Instruction, trips: LoopTrips) -> None:
    """Replace a loop by its initial state, or by one trip of its body. O(body + users)."""
    if trips.computed == 0:
        replace_instruction(loop, loop.operands[0])
        return
    computation = loop.parent
    hints = {
        name: text
        for name, text in loop.attributes.items()
        if name in ("frontend_attributes", *OF_THE_VALUE)
    }
    call = computation.add(
        *(Opcode.CALL, loop.shape, loop.operands), attributes=hints, called=loop.called[:1]
    )
    replace_instruction(loop, call)
    if has_notes(call.called[0].instructions):
        call.set_called((clone_to_change(call.called[0]),))
        leave_loop(call.called[0].instructions)
    options = CallInliner.Options(propagate_metadata=False)
    Inliner(computation.module, options, cleans_up=True).inline(computation, [call])
