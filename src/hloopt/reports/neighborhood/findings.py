"""An instruction, what it is computed from, and what is computed from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TypeAlias

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.query import values

MOST_NEIGHBORS = 8
"""Neighbours of one instruction that are shown."""
_PASS_ON = frozenset((Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST))
"""Opcodes that only name a part of a value: they are no step away."""
_HAND_OVER = frozenset((Opcode.CALL, Opcode.FUSION))
"""Opcodes whose operands are the parameters of what they call."""
Neighbors: TypeAlias = Callable[[Instruction], Sequence[Instruction]]


@dataclass(slots=True)
class Neighbor:
    """An instruction in a tree of neighbours."""

    instruction: Instruction
    is_above: bool = False
    """Whether what is below it is shown elsewhere in the tree."""
    is_end: bool = False
    """Whether there is more below it, which is too far away."""
    left_out: int = 0
    """Neighbours of it that are not shown, as there are too many."""
    below: list[Neighbor] = field(default_factory=list)


@dataclass(slots=True)
class Neighborhood:
    """An instruction with its neighbours; None in a direction that was not asked for."""

    instruction: Instruction
    operands: Neighbor | None
    """Its operands, theirs, and so on; of a parameter what is handed over, or the caller."""
    users: Neighbor | None
    """Its users, theirs, and so on; of a root the callers."""


def find_neighborhood(
    instruction: Instruction, depth: int, *, up: bool = True, down: bool = True
) -> Neighborhood:
    """The neighbours within `depth` steps; get-tuple-element and bitcast are none.

    At most MOST_NEIGHBORS of each, the largest ones. O(instructions shown and their neighbours).
    """
    return Neighborhood(
        instruction,
        _tree(instruction, _sources, depth) if up else None,
        _tree(instruction, _users, depth) if down else None,
    )


def _tree(root: Instruction, neighbors: Neighbors, depth: int) -> Neighbor:
    """Breadth first, so that what several lead to is below the nearest of them."""
    top = Neighbor(root)
    seen = {root}
    waiting = deque([(top, depth)])
    while waiting:
        node, left = waiting.popleft()
        found = neighbors(node.instruction)
        if not left:
            node.is_end = bool(found)
            continue
        shown = largest(found, MOST_NEIGHBORS)
        node.left_out = len(found) - len(shown)
        for each in shown:
            child = Neighbor(each, is_above=each in seen)
            node.below.append(child)
            if not child.is_above:
                seen.add(each)
                waiting.append((child, left if each.opcode in _PASS_ON else left - 1))
            elif not neighbors(each):
                child.is_above = False
    return top


def largest(found: Sequence[Instruction], most: int) -> list[Instruction]:
    """At most so many instructions, those with the largest results, in their order."""
    if len(found) <= most:
        return list(found)
    chosen = set(nlargest(most, found, key=lambda each: values.size(each.shape)[0]))
    return [each for each in found if each in chosen]


def _sources(instruction: Instruction) -> Sequence[Instruction]:
    if instruction.opcode is not Opcode.PARAMETER:
        return list(dict.fromkeys(instruction.operands))
    number = instruction.parameter_number
    return list(
        dict.fromkeys(
            caller.operands[number] if caller.opcode in _HAND_OVER else caller
            for caller in instruction.parent.callers
        )
    )


def _users(instruction: Instruction) -> Sequence[Instruction]:
    callers = instruction.parent.callers if instruction.is_root else ()
    return list(dict.fromkeys((*instruction.users, *callers)))
