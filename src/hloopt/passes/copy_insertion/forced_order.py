"""An order of instructions in which some that nothing orders are put before others."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag

from hloopt.analysis.in_place import InPlace
from hloopt.ir import Instruction, Opcode
from hloopt.passes.copy_insertion.execution_order import ExecutionOrder, Order


class Relation(IntFlag):
    """The order of an instruction and another one; no flag is set where only one of them runs."""

    SAME = 1
    BEFORE = 2
    AFTER = 4


SAME, BEFORE, AFTER = Relation.SAME, Relation.BEFORE, Relation.AFTER
UNORDERED = BEFORE | AFTER
_RELATIONS = {
    Order.SAME: SAME,
    Order.BEFORE_START: BEFORE,
    Order.BEFORE_END: BEFORE | SAME,
    Order.EXCLUSIVE_BEFORE: Relation(0),
    Order.EXCLUSIVE_AFTER: Relation(0),
    Order.AFTER: AFTER,
    Order.UNORDERED: UNORDERED,
}


class ForcedOrder:
    """The order of a module, and what was decided beyond it, for one test."""

    def __init__(self, order: ExecutionOrder, copy: Instruction) -> None:
        """`copy` is what the test is about: nothing relies on where it runs, it goes away."""
        self._order = order
        self._copy = copy
        self.tree = order.tree
        self._followers: dict[Instruction, dict[Instruction, None]] = {}
        """The decisions: instructions that run after others."""
        self._known: dict[tuple[Instruction, Instruction], Relation] = {}

    def of(self, a: Instruction, b: Instruction) -> Relation:
        """The time at which `a` runs, seen from `b`."""
        relation = self._known.get((a, b))
        if relation is None:
            relation = self._known[a, b] = _RELATIONS[self._order.of(a, b)]
        if relation != UNORDERED or a.parent is not b.parent or not self._followers:
            return relation
        if self._leads(a, b):
            return BEFORE
        return AFTER if self._leads(b, a) else UNORDERED

    def _leads(self, a: Instruction, b: Instruction) -> bool:
        """Whether decisions, and what is known besides, put `a` before `b`."""
        order = self._order
        seen: set[Instruction] = set()
        stack = [a]
        while stack:
            reached = stack.pop()
            if reached is b or order.runs_before(reached, b):
                return True
            for first, followers in self._followers.items():
                if first not in seen and (first is reached or self._precedes(reached, first)):
                    seen.add(first)
                    stack += followers
        return False

    def _precedes(self, a: Instruction, b: Instruction) -> bool:
        return a.parent is b.parent and self._order.runs_before(a, b)

    def force(
        self,
        instruction: Instruction,
        others: Sequence[Instruction],
        relation: Relation,
        in_place: InPlace,
    ) -> bool:
        """Let `instruction` run before, or after, all others, if that may be chosen."""
        if relation not in (BEFORE, AFTER):
            return False
        for other in others:
            first, second = (instruction, other) if relation == BEFORE else (other, instruction)
            if first.parent is not second.parent or first.is_root:
                return False
            if second.opcode is Opcode.COPY and any(
                first.operands[pair.operand] is second.operands[0]
                for pair in in_place.pairs(first)
                if pair.operand < len(first.operands)
            ):
                return False
        for other in others:
            first, second = (instruction, other) if relation == BEFORE else (other, instruction)
            if self._copy in (first, second):
                self._known[first, second], self._known[second, first] = BEFORE, AFTER
            else:
                self._followers.setdefault(first, {})[second] = None
        return True

    def confirm(self) -> bool:
        """Make control edges of what was decided; not possible where there is a schedule."""
        if self._followers and self._order.is_scheduled:
            return False
        for first, followers in self._followers.items():
            for second in followers:
                self._order.add_edge(first, second)
        return True
