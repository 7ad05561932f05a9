"""Runs of values of one buffer that follow each other in every order of execution."""

from __future__ import annotations

from hloopt.analysis.dataflow import Use
from hloopt.ir import Computation, Opcode
from hloopt.ir.opcode import ASYNC
from hloopt.passes.copy_insertion.execution_order import ExecutionOrder, Order
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.value_lists import Node, list_of

_PLAIN_ORDERS = (Order.BEFORE_START, Order.BEFORE_END)


class Chains:
    """Caches runs of linked values, to compare two lists run by run instead of value by value.

    Two values are linked if the first is dead when the second is defined, for reasons that are
    transitive: if a is linked with b and b with c, then a is dead when c is defined. Of two runs
    of linked values it suffices that the last of the one is linked with the first of the other.
    """

    def __init__(self, facts: Facts, order: ExecutionOrder) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.order = order
        self._in_condition: dict[Computation, bool] = {}

    def first_of_run(self, node: Node) -> Node:
        """The first of the values before `node` from which links lead to it. Amortized O(1)."""
        epoch = list_of(node).epoch
        path: list[Node] = []
        while True:
            known = node.run
            if known is not None and known[0] == epoch:
                node = known[1]
                break
            before = node.preceding
            if before is None or not self._is_linked_on(before):
                break
            path.append(node)
            node = before
        for passed in path:
            passed.run = epoch, node
        return node

    def last_of_run(self, node: Node) -> Node:
        """The last of the values after `node` to which links lead from it. O(length)."""
        while node.following is not None and self._is_linked_on(node):
            node = node.following
        return node

    def _is_linked_on(self, node: Node) -> bool:
        """Whether a value is linked with the one that follows."""
        following = node.following
        assert following is not None, "there is one"
        known = node.link
        if known is None or known[0] is not following or known[1] is not node.uses:
            known = node.link = following, node.uses, self.are_linked(node, following)
        return known[2]

    def are_linked(self, a: Node, b: Node) -> bool:
        """Whether two values, of one list or not, are linked. O(uses of `a`)."""
        flow = self.flow
        definer = flow.definer[b.value]
        if (
            flow.shape(a.value) is not flow.shape(b.value)
            or flow.definer[a.value].opcode is Opcode.CONSTANT
            or (definer.opcode is not Opcode.PARAMETER and self._runs_in_condition(definer.parent))
        ):
            return False
        tree = self.order.tree
        for instruction, _ in flow.positions(a.value):
            if instruction.is_root and tree.is_within(definer, instruction.parent):
                return False
        if a.uses:
            return all(self._ends_before(use, b.value) for use in reversed(a.uses))
        order = self.order.of(flow.definer[a.value], definer)
        return order in _PLAIN_ORDERS and self.order.is_defined_before(a.value, b.value)

    def _ends_before(self, use: Use, value: int) -> bool:
        user, definer = use.user, self.flow.definer[value]
        if user is definer:
            return self.facts.may_share(use, value)
        opcode = user.opcode
        if opcode is Opcode.CONDITIONAL or opcode in ASYNC:
            return False  # these have rules of their own
        if self.order.of(user, definer) in _PLAIN_ORDERS:
            return True
        tree = self.order.tree
        if opcode is Opcode.WHILE or opcode is Opcode.CALL:
            return any(tree.is_within(definer, callee) for callee in user.called)
        return definer.opcode is Opcode.WHILE and any(
            tree.is_within(user, callee) for callee in definer.called
        )

    def _runs_in_condition(self, computation: Computation) -> bool:
        """Whether a computation is the condition of a loop, or run by one. O(depth), once."""
        known = self._in_condition.get(computation)
        if known is None:
            caller = self.order.tree.caller(computation)
            known = caller is not None and (
                (caller.opcode is Opcode.WHILE and caller.called[1] is computation)
                or self._runs_in_condition(caller.parent)
            )
            self._in_condition[computation] = known
        return known
