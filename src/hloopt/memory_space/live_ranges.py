"""The times at which each buffer is live, over the flattened schedule."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.memory.buffers import Buffer

Range = tuple[int, int]
"""The first and the last time of a range, both included."""


class BufferLiveRanges:
    """The ranges of times at which buffers are live: several where a branch does not need one.

    A value that a conditional gets is live in each branch that gets it, up to its last use there;
    a branch in between that does not get it may have other data in its place. A question is
    O(uses · nesting of conditionals).
    """

    def __init__(self, flow: Dataflow, schedule: FlatSchedule) -> None:
        self.flow = flow
        self.schedule = schedule
        self._branches: dict[Computation, Computation] = {}

    def of_buffer(self, buffer: Buffer) -> list[Range]:
        """The ranges of all values of a buffer, in order; those that share a time are one."""
        return joined(each for value in buffer.values for each in self.of_value(value))

    def of_value(self, value: int) -> list[Range]:
        """The ranges of a value, as they come; none for what the schedule does not reach."""
        times = self.schedule.times
        definer = self.flow.definer[value]
        start = times.get(definer)
        if start is None:
            return []
        own = self._branch(definer.parent)
        last_in = {self._branch_inside(own, i): -1 for i, _ in self.flow.positions(value)}
        last_in[own] = start
        found: list[Range] = []
        if _is_parameter_of_condition(definer):
            last_in[own] = times[definer.parent.root]
        for use in self.flow.uses(value):
            user = use.user
            branch = self._branch_inside(own, user)
            last_in[branch] = max(last_in[branch], self._time_of_use(user))
            if user.opcode is Opcode.ASYNC_DONE:
                wrapped = async_start_of(user).called[0]
                found.append((self._first(wrapped), times[user]))
        found.append((start, last_in.pop(own)))
        for branch, last in last_in.items():
            first = self._first(branch)
            found.append((first, max(first, last)))
        return found

    def _time_of_use(self, user: Instruction) -> int:
        """The time until which a user needs its operand outside of the computations it calls."""
        if user.opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
            return min(map(self._first, user.called))
        return self.schedule.times[user]

    def _first(self, computation: Computation) -> int:
        return self.schedule.spans[computation][0]

    def _branch_inside(self, own: Computation, instruction: Instruction) -> Computation:
        """The branch in `own` that an instruction is in; `own` for what is behind that.

        A conditional with one branch passes on what is defined in it.
        """
        branch = self._branch(instruction.parent)
        return branch if self._is_inside(branch, own) else own

    def _branch(self, computation: Computation) -> Computation:
        """The innermost branch of a conditional that a computation is in; else the entry."""
        path = []
        while computation not in self._branches:
            path.append(computation)
            caller = self.schedule.first_call.get(computation)
            if caller is None or caller.opcode is Opcode.CONDITIONAL:
                self._branches[computation] = computation
            else:
                computation = caller.parent
        branch = self._branches[computation]
        for inner in path:
            self._branches[inner] = branch
        return branch

    def _is_inside(self, branch: Computation, outer: Computation) -> bool:
        """Whether a branch is another one or in it."""
        while branch is not outer:
            caller = self.schedule.first_call.get(branch)
            if caller is None:
                return False
            branch = self._branch(caller.parent)
        return True


def _is_parameter_of_condition(definer: Instruction) -> bool:
    """Whether an instruction is a parameter of the condition of a while."""
    return definer.opcode is Opcode.PARAMETER and any(
        caller.opcode is Opcode.WHILE and caller.called[1] is definer.parent
        for caller in definer.parent.callers
    )


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in order, those that share a time as one; adjacent ones stay apart. O(n log n)."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found
