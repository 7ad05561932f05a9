"""The order in which instructions run and values are defined, as far as it is known."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.reachability import Reachability
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.opcode import ASYNC
from hloopt.passes.copy_insertion.call_tree import CallTree

Positions = Mapping[Computation, Mapping[Instruction, int]]
"""The positions of instructions in the schedule of their computation."""


def schedule_positions(module: Module) -> Positions | None:
    """The positions in a module's schedule; None where it has none. O(instructions)."""
    if not module.is_scheduled:
        return None
    return {
        computation: {instruction: n for n, instruction in enumerate(computation.instructions)}
        for computation in module.computations.values()
    }


class Order(Enum):
    """The time at which one instruction runs, seen from another."""

    SAME = auto()
    BEFORE_START = auto()
    """It is over before the other begins; in the condition of a loop, before one in the body."""
    BEFORE_END = auto()
    """It is over before the other is: it is in a branch of that."""
    EXCLUSIVE_BEFORE = auto()
    """In another branch, one with a lower number: only one of the two runs."""
    EXCLUSIVE_AFTER = auto()
    """In another branch, one with a higher number."""
    AFTER = auto()
    UNORDERED = auto()


_SHOWS = (Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST)
"""Opcodes that take no time: whatever waits for them may wait for their operand."""
BEFORE = (Order.BEFORE_START, Order.BEFORE_END, Order.EXCLUSIVE_BEFORE)


class ExecutionOrder:
    """The order of a module's instructions: its schedule, or what dependencies demand.

    Edges added through `add_edge` count. What was made of copies meanwhile does not: the order is
    that of the module with all of them.
    """

    def __init__(self, flow: Dataflow, positions: Positions | None) -> None:
        """`positions` are those of the schedule, if there is one."""
        self.flow = flow
        self.tree = CallTree(flow.module)
        self.version = 0
        """Counts edges added."""
        self._positions = positions
        self._reachability: dict[Computation, Reachability] = {}

    # -- instructions -----------------------------------------------------------------------------

    def of(self, a: Instruction, b: Instruction) -> Order:
        """The time at which `a` runs, seen from `b`."""
        if a is b or (a.opcode in ASYNC and _is_wrapped(a, b)):
            return Order.SAME
        if b.opcode in ASYNC and _is_wrapped(b, a):
            return Order.SAME
        meeting = self.tree.meeting(a, b)
        if meeting is None:
            return Order.UNORDERED
        one, other, inside_one, inside_other = meeting
        if one is not other:
            if self.runs_before(one, other):
                return Order.BEFORE_START
            return Order.AFTER if self.runs_before(other, one) else Order.UNORDERED
        if one.opcode is Opcode.WHILE:
            body, condition = one.called
            is_first = inside_one is condition and inside_other is body
            return Order.BEFORE_START if is_first else Order.UNORDERED
        if one.opcode is Opcode.CONDITIONAL:
            if inside_other is None:
                return Order.BEFORE_END
            if inside_one is None:
                return Order.AFTER
            is_lower = one.called.index(inside_one) < one.called.index(inside_other)
            return Order.EXCLUSIVE_BEFORE if is_lower else Order.EXCLUSIVE_AFTER
        return Order.UNORDERED

    def runs_before(self, a: Instruction, b: Instruction) -> bool:
        """Whether `a` runs before `b`, another instruction of its computation."""
        computation = a.parent
        if self._positions is not None:
            positions = self._positions[computation]
            return a is not computation.root and positions[a] < positions[b]
        if b in a.users:
            return True
        return self._reachability_in(computation).reachable(a, b)

    def _reachability_in(self, computation: Computation) -> Reachability:
        found = self._reachability.get(computation)
        if found is None:
            order = self.flow.scope.orders[computation]
            found = self._reachability[computation] = Reachability(computation, order)
        return found

    def add_edge(self, before: Instruction, after: Instruction) -> None:
        """Let an instruction run after another one of its computation."""
        self.version += 1
        if self._positions is not None:
            after.add_control_predecessor(before)
            return
        reachability = self._reachability_in(after.parent)
        after.add_control_predecessor(before)
        reachability.update([after])

    def release(self, copy: Instruction) -> None:
        """Drop the control edges of a copy that goes away.

        Orders that lead through it become edges between others, for something may rely on them.
        That two copies stand in is not one of them: it is the order of the old and the new state
        of a loop, where one of the two needs no copy.
        """
        before = [p for p in copy.control_predecessors if p.opcode is not Opcode.COPY]
        after = [s for s in copy.control_successors if s.opcode is not Opcode.COPY]
        copy.drop_control_dependencies()
        for predecessor in before:
            for follower in (*copy.users, *after):
                if follower.users or not follower.is_root:  # else it is the last anyway
                    self.add_edge(predecessor, follower)
        source = copy.operands[0]
        while source.opcode in _SHOWS:
            source = source.operands[0]
        for successor in after:
            if source.operands or source.called:
                self.add_edge(source, successor)

    @property
    def is_scheduled(self) -> bool:
        return self._positions is not None

    # -- values -----------------------------------------------------------------------------------

    def is_defined_before(self, a: int, b: int) -> bool:
        """Whether value `a` is defined before value `b`."""
        definer = self.flow.definer
        one, other = definer[a], definer[b]
        for definition, answer in ((other, False), (one, True)):
            if definition.opcode is Opcode.PARAMETER and definition.parent.is_entry:
                return answer
        tree = self.tree
        if self._is_parameter_phi(a) and not self._is_parameter_phi(b):
            if tree.is_within(other, one.parent):
                return True
        elif self._is_parameter_phi(b) and tree.is_within(one, other.parent):
            return False
        if (
            b in self.flow.phis
            and other.opcode in (Opcode.WHILE, Opcode.CONDITIONAL)
            and any(tree.is_within(one, callee) for callee in other.called)
        ):
            return True
        return self.of(one, other) in BEFORE

    def _is_parameter_phi(self, value: int) -> bool:
        return value in self.flow.phis and self.flow.definer[value].opcode is Opcode.PARAMETER


def _is_wrapped(step: Instruction, instruction: Instruction) -> bool:
    """Whether `instruction` is the operation that a step of an asynchronous chain wraps."""
    return async_start_of(step).called[0].root is instruction
