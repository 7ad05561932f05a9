"""Copies of a loop's invariant instructions in front of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hloopt.analysis.calls import callees_first
from hloopt.diagnostics import counted
from hloopt.ir.attributes.annotations import origin, origin_leaves
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first, repair_schedule
from hloopt.ir.tuples import element
from hloopt.pass_framework.base import PassContext
from hloopt.passes.control_flow.loop_invariants.widening import WideLoop
from hloopt.passes.rewriting.replace import inherit
from hloopt.passes.rewriting.slice_places import leave_loop


def invariant_elements(loop: Instruction) -> list[Instruction]:
    """The reads of the state in a loop's body that the root tuple hands on at their own index."""
    body = loop.called[0]
    (state,) = body.parameters
    if body.root.opcode is not Opcode.TUPLE:
        return []
    return [
        value
        for index, value in enumerate(body.root.operands)
        if value.opcode is Opcode.GET_TUPLE_ELEMENT
        and value.operands[0] is state
        and value.tuple_index == index
    ]


def hoist_all(
    module: Module, context: PassContext, choose: Callable[[Instruction], Sequence[Instruction]]
) -> bool:
    """Hoist what `choose` names of each loop, inner loops first; whether anything was."""
    changed: list[Computation] = []
    for computation in callees_first(module):
        for loop in [i for i in computation.instructions if i.opcode is Opcode.WHILE]:
            chosen = choose(loop)
            if not chosen:
                continue
            if not context.apply(loop, f"{counted(len(chosen), 'instruction')} hoisted"):
                break
            context.count("instructions hoisted", len(chosen))
            hoist(loop, chosen)
            changed.append(computation)
    repair_schedule(changed)
    return bool(changed)


def hoist(loop: Instruction, chosen: Sequence[Instruction]) -> Instruction:
    """Compute instructions of the body in front of the loop; returns the loop in its place.

    Whatever they need is copied, too, from the elements of the loop's first state on. Original
    values say in which loop a value was computed. O(what is copied + body + condition).
    """
    (state,) = loop.called[0].parameters
    path = _call_path(loop)
    copies: dict[Instruction, Instruction] = {}
    for instruction in depth_first(chosen, lambda i: () if _reads(i, state) else i.operands):
        if _reads(instruction, state):
            copies[instruction] = element(loop.operands[0], instruction.tuple_index)
            continue
        copy = loop.parent.add_clone(instruction, [copies[o] for o in instruction.operands])
        if "origin" in copy.attributes:
            copy.set_attribute("origin", _within(path, copy.attributes["origin"]))
        copies[instruction] = copy
    made = [copies[instruction] for instruction in chosen]
    origins = [_leaf(copy) for copy in made] if path else []
    wide = WideLoop(loop, made, origins)
    for number, instruction in enumerate(chosen):
        inner = wide.copies[instruction]
        if inner.users or inner.is_root:
            taken = wide.taken(number)
            inherit(inner, taken)
            if "origin" in inner.attributes:
                taken.set_attribute("origin", inner.attributes["origin"])
            inner.replace_all_uses_with(taken)
        inner.parent.remove(inner)
    leave_loop(copies.values())
    repair_schedule(wide.loop.called)
    return wide.loop


def _reads(value: Instruction, state: Instruction) -> bool:
    return value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0] is state


def _call_path(loop: Instruction) -> str:
    """The name under which the original value of a loop stands; empty without one."""
    if "origin" not in loop.attributes:
        return ""
    for leaf in origin_leaves(origin(loop.attributes["origin"])):
        name = leaf.partition('"')[2].rpartition('"')[0]
        if name:
            return name
    return ""


def _within(path: str, text: str) -> str | None:
    """An original value as one of any trip of a loop; None where the loop has no name."""
    if not path:
        return None
    return origin(text).replace('{"', f'{{"{path}#*/')


def _leaf(copy: Instruction) -> str:
    text = origin(copy.attributes.get("origin", "{[synthetic_call]}"))
    leaves = origin_leaves(text) if text.startswith('{{"') else []
    return leaves[0] if len(leaves) == 1 else "{}"
