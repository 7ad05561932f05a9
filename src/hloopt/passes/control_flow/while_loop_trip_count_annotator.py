"""Write what is known of the trips of while loops into their backend_config."""

from __future__ import annotations

import json

from hloopt.analysis.loops.annotation import backend_config
from hloopt.analysis.loops.induction import induction_variable, lagging_variable, plus_constant
from hloopt.analysis.loops.trip_count import LoopTrips, loop_trips
from hloopt.diagnostics import counted
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order, stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import replace_instruction


@register(
    "while-loop-trip-count-annotator",
    preserves="bits",
    xla=XlaPass(
        "WhileLoopTripCountAnnotator", "xla/hlo/transforms/while_loop_trip_count_annotator.h"
    ),
)
class WhileLoopTripCountAnnotator(ModulePass):
    """Annotate while loops with their trip count and their induction variable.

    The `backend_config` of a loop gets `known_trip_count`, `known_induction_variable` (the only
    element of the state that the condition reads, made from itself alone), `known_init_step`
    (where that element goes up by a constant) and `dynamic_variables` (the elements that index
    slices moved between host and device). What it states already is replaced; a trip count that
    cannot be computed stays. The last value of an induction variable, where it is known, replaces
    what reads it after the loop. Linear in the size of loop bodies.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        # Where a loop starts may follow from the last value of another one before or around it.
        for computation in reversed(computation_post_order(module)):
            if not any(i.opcode is Opcode.WHILE for i in computation.instructions):
                continue
            version = computation.version
            for instruction in stable_order(computation):
                if instruction.opcode is Opcode.WHILE:
                    trips = loop_trips(instruction)
                    _annotate(instruction, trips, context)
                    _forward_last_value(instruction, trips, context)
            if module.is_scheduled and computation.version != version:
                computation.reorder(stable_order(computation))
        return module.version != before


def _annotate(loop: Instruction, trips: LoopTrips, context: PassContext) -> None:
    if trips.computed is None:
        context.missed(loop, f"its trip count is not known: {trips.reason}")
    element = _induction_element(loop)
    if element is None and trips.computed is None:
        return
    before = backend_config(loop)
    if before is None:
        context.missed(loop, "its backend_config is no JSON object")
        return
    after = {key: value for key, value in before.items() if key not in _KEYS}
    if trips.count is not None:
        after["known_trip_count"] = {"n": str(trips.count)}
    if _goes_up(trips) and trips.variable is not None:
        after["known_init_step"] = _init_step(trips.variable.init, trips.variable.step)
    if element is not None:
        after["known_induction_variable"] = {"tuple_index": str(element)}
    after["dynamic_variables"] = [
        _dynamic_variable(loop, index) for index in _indices_of_transfers(loop)
    ]
    if after == before:
        return
    is_known = trips.computed is not None
    what = f"it makes {counted(trips.computed or 0, 'trip')}" if is_known else "annotated"
    if not context.apply(loop, what, remark=is_known):
        return
    loop.set_attribute("backend_config", json.dumps(after, separators=(",", ":")))
    if is_known:
        context.count("trip counts found")


_KEYS = ("known_trip_count", "known_init_step", "known_induction_variable", "dynamic_variables")


def _induction_element(loop: Instruction) -> int | None:
    """The only element of a loop's state that its condition reads, if what the body makes of it
    depends on it alone; one that stays as it is counts, too. O(condition + body)."""
    body, condition = loop.called
    element = _only_element(condition.root, condition.parameters[0])
    if element is None or body.root.opcode is not Opcode.TUPLE:
        return None
    following = _only_element(body.root.operands[element], body.parameters[0])
    return element if following == element else None


def _only_element(value: Instruction, state: Instruction) -> int | None:
    """The element of a state that a value is computed from; None for several and for none."""
    elements: set[int] = set()
    seen = {value}
    stack = [value]
    while stack:
        found = stack.pop()
        if found.opcode is Opcode.GET_TUPLE_ELEMENT and found.operands[0] is state:
            elements.add(found.tuple_index)
        elif found.opcode is Opcode.PARAMETER:
            return None
        else:
            stack += [operand for operand in found.operands if operand not in seen]
            seen.update(found.operands)
    return elements.pop() if len(elements) == 1 else None


def _goes_up(trips: LoopTrips) -> bool:
    """Whether init and step of the counter are stated: only those that go up, as in XLA."""
    return (
        trips.last is not None
        and trips.comparison is not None
        and trips.comparison.direction in ("LT", "LE")
    )


def _init_step(init: int | None, step: int) -> dict[str, str]:
    return {"init": str(init), "step": str(step)}


def _dynamic_variable(loop: Instruction, index: int) -> dict[str, str]:
    found = induction_variable(loop, index) or lagging_variable(loop, index)
    variable = {"tuple_index": str(index)}
    if found is not None and found.init is not None:
        variable |= _init_step(found.init, found.step)
    return variable


def _indices_of_transfers(loop: Instruction) -> list[int]:
    """The elements of a loop's state that say which slice moves between host and device.

    That is a dynamic-slice that goes to the device, or a dynamic-update-slice of what comes to
    the host. O(body).
    """
    found: set[int] = set()
    for instruction in loop.called[0].instructions:
        if custom_call_target(instruction) == "MoveToDevice":
            moved = instruction.operands[0]
            offsets = moved.operands[1:] if moved.opcode is Opcode.DYNAMIC_SLICE else []
        elif instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            is_host = custom_call_target(instruction.operands[1]) == "MoveToHost"
            offsets = instruction.operands[2:] if is_host else []
        else:
            continue
        sources = (plus_constant(offset)[0] for offset in offsets)
        found.update(e for e in (source.element_of(loop) for source in sources) if e is not None)
    return sorted(found)


def _forward_last_value(loop: Instruction, trips: LoopTrips, context: PassContext) -> None:
    """Let constants stand for the counter where it is read after the loop."""
    if not _goes_up(trips):
        return
    for read in list(loop.users):
        if read.opcode is Opcode.GET_TUPLE_ELEMENT and read.tuple_index == trips.element:
            if not context.apply(read, f"replaced by {trips.last}, the counter's last value"):
                break
            last = loop.parent.add(Opcode.CONSTANT, read.shape, payload=str(trips.last))
            replace_instruction(read, last)
