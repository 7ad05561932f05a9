"""Whether one value is needed no more when another one comes into being."""

from __future__ import annotations

from hloopt.analysis.dataflow import Use
from hloopt.ir import Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.opcode import ASYNC
from hloopt.passes.copy_insertion.execution_order import BEFORE, ExecutionOrder, Order
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.value_lists import Node


class LiveRanges:
    """Orders live ranges by what is known to run before what."""

    def __init__(self, facts: Facts, order: ExecutionOrder) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.order = order

    def ends_before(self, a: Node, b: Node) -> bool:
        """Whether `a` is needed no more when `b` is defined. O(uses of `a`)."""
        if not a.uses:
            return self.order.is_defined_before(a.value, b.value)
        computation = self.flow.definer[b.value].parent
        if a.value in self.flow.held_by(computation.root):
            return False
        return self.are_before(a.uses, b)

    def are_before(self, uses: list[Use], b: Node) -> bool:
        """Whether all uses lie before the definition of `b`."""
        return all(self._is_before(use, b.value) for use in reversed(uses))  # late ones, first

    def _is_before(self, use: Use, value: int) -> bool:
        user, definer = use.user, self.flow.definer[value]
        if user is definer and self.facts.may_share(use, value):
            return True
        order = self.order.of(user, definer)
        if order in BEFORE or order is Order.EXCLUSIVE_AFTER:
            return True
        tree = self.order.tree
        opcode = user.opcode
        if opcode is Opcode.WHILE:
            body, condition = user.called
            if tree.is_within(definer, body):
                return True  # the use is what the state begins with
            if tree.is_within(definer, condition):
                return definer is condition.parameters[0]
        if definer.opcode is Opcode.WHILE and any(
            tree.is_within(user, callee) for callee in definer.called
        ):
            return True  # the phi stands for the state after the last trip
        if opcode is Opcode.CALL:
            return tree.is_within(definer, user.called[0])
        if opcode in ASYNC:
            return tree.is_within(definer, async_start_of(user).called[0])
        if opcode is Opcode.CONDITIONAL:
            if user is definer:
                return True
            is_inside = any(tree.is_within(definer, branch) for branch in user.called)
            return is_inside and not self._escapes(use, value)
        return False

    def _escapes(self, use: Use, value: int) -> bool:
        """Whether a value defined in a branch may be part of the result.

        The conditional then gives on what reads the same operand, if that is not a new tuple.
        """
        operand = use.user.operands[use.operand]
        top = self.flow.held[operand][0]
        if self.flow.definer[top] is operand and self.flow.slot[top] == 0:
            return False
        return any(other.user.is_root for other in self.flow.uses(value))
