"""The search for what may move across the border of a conditional, and the decision."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import data_bytes
from hloopt.passes.control_flow.conditional_code_motion.benefit import Benefit
from hloopt.passes.control_flow.conditional_code_motion.boundaries import (
    Boundary,
    Group,
    Position,
)
from hloopt.passes.control_flow.conditional_code_motion.facts import Facts
from hloopt.passes.control_flow.conditional_code_motion.leftovers import collective_left_behind
from hloopt.passes.control_flow.conditional_code_motion.movable import Movability, Sameness

_UNIT = 512


class Outfeeds:
    """The computations with an outfeed, each looked at once."""

    def __init__(self) -> None:
        self._found: dict[Computation, bool] = {}

    def any_in(self, computations: Iterable[Computation]) -> bool:
        """Whether one of them has an outfeed. O(instructions of those not seen before)."""
        for computation in computations:
            if computation not in self._found:
                self._found[computation] = any(
                    i.opcode is Opcode.OUTFEED for i in computation.instructions
                )
        return any(self._found[computation] for computation in computations)


@dataclass(slots=True, eq=False)
class Decision:
    """The groups of one conditional to move, all in one direction, and why the rest stays."""

    groups: list[Group]
    reasons: dict[Instruction, str]


class Search:
    """Searches from one conditional. Linear in the edges it follows, times the branches."""

    def __init__(
        self,
        facts: Facts,
        movability: Movability,
        sameness: Sameness,
        benefit: Benefit,
        visits: dict[Instruction, int],
        allowance: int,
        counts_all_memory: bool,
    ) -> None:
        self._facts = facts
        self._movability = movability
        self._sameness = sameness
        self._benefit = benefit
        self._visits = visits
        """Instructions that were reached and kept, with the number of groups that reached them."""
        self._allowance = allowance
        self._counts_all_memory = counts_all_memory
        self._sizes: dict[Instruction, int] = {}
        self._reasons: dict[Instruction, str] = {}

    def decide(self) -> Decision:
        """The groups in the direction that has the greater benefit, outwards before inwards."""
        out: list[Group] = []
        into: list[Group] = []
        for group in self._groups():
            (out if group.moves_out else into).append(group)
        benefit_out, benefit_in = (sum(g.benefit for g in groups) for groups in (out, into))
        chosen, dropped, why = out, into, "moving other operations out of the branches"
        if benefit_in > benefit_out:
            chosen, dropped, why = into, out, "moving other operations into the branches"
        elif not out:
            chosen, why = [], "leaving it alone"
        for group in dropped:
            self._reasons[group.moved[0].first] = f"{why} has as much benefit"
        for group in chosen:
            for boundary in group.moved:
                self._reasons.pop(boundary.first, None)
        return Decision(chosen, self._reasons)

    def _groups(self) -> list[Group]:
        """The groups that are worth moving, in the order in which they are found."""
        found: list[Group] = []
        waiting = deque(self._starts())
        entered = set(waiting)
        while waiting:
            group = self._group(waiting.popleft())
            if not group.moved:
                fresh = dict.fromkeys(b for b in group.kept if b not in entered)
                entered.update(fresh)
                waiting += fresh
            elif reason := self._why_not_worth_it(group):
                self._reasons[group.moved[0].first] = reason
                for boundary in group.kept:
                    self._visits.pop(boundary.first, None)
            else:
                found.append(group)
        return found

    def _starts(self) -> dict[Boundary, None]:
        conditional = self._facts.conditional
        users = [Boundary(Position.USER, (user,)) for user in conditional.users]
        operands = [Boundary(Position.OPERAND, (o,)) for o in conditional.operands[1:]]
        return dict.fromkeys((self._facts.roots, *users, *operands))

    def _group(self, start: Boundary) -> Group:
        """The group that moves together with a boundary: empty where that has to stay."""
        group = Group(start.position)
        waiting = deque((start,))
        entered = {start}
        while waiting:
            boundary = waiting.popleft()
            reason = self._why_not(boundary, group)
            if reason is None:
                group.moved.append(boundary)
                group.memory -= self._size(boundary.first)
                for other in boundary.next():
                    if other not in entered:
                        entered.add(other)
                        waiting.append(other)
                    group.memory += self._size(other.first)
            elif _may_be_copied(boundary, group):
                group.moved.append(boundary)
                group.memory -= self._size(boundary.first)
            else:
                group.kept.append(boundary)
                self._visits.setdefault(boundary.first, 1)
                self._reasons[boundary.first] = reason
        return group

    def _why_not(self, boundary: Boundary, group: Group) -> str | None:
        """The reason why a boundary cannot move, or None where it can."""
        if boundary.position is Position.INSIDE and not self._sameness.holds(boundary):
            return "it is not the same in all branches"
        return self._why_unsafe(boundary, group) or self._movability.why_not(boundary)

    def _why_unsafe(self, boundary: Boundary, group: Group) -> str | None:
        """The reason why something else would miss a boundary that moves."""
        instruction, position = boundary.first, boundary.position
        count = self._facts.dependents(boundary)
        if count <= 1:
            is_decisive = instruction is self._facts.conditional.operands[0]
            if position is Position.OPERAND and is_decisive:
                return "it decides which branch runs"
            return None
        if instruction not in self._visits:
            self._visits[instruction] = 1
            group.kept.append(boundary)
        else:
            self._visits[instruction] += 1
            if position is not Position.INSIDE and self._visits[instruction] >= count:
                del self._visits[instruction]
                return None
        if position is Position.USER:
            return "not all of its operands move"
        return f"it has {counted(count, 'user')}"

    def _why_not_worth_it(self, group: Group) -> str | None:
        if left := collective_left_behind(group):
            return f"%{left.name} would run in its branch all the same"
        group.benefit = self._benefit.of(group)
        if group.benefit < 0:
            return "moving it has no benefit"
        if group.memory > 0 and group.memory // len(group.moved) > self._allowance:
            average = group.memory // len(group.moved) * _UNIT
            return (
                f"moving it takes {average} more bytes per operation, and "
                f"{self._allowance * _UNIT} are allowed"
            )
        return None

    def _size(self, instruction: Instruction) -> int:
        """The memory that an instruction counts with."""
        size = self._sizes.get(instruction)
        if size is None:
            counts = (
                self._counts_all_memory
                or instruction.opcode is Opcode.REDUCE
                or any(user.opcode is Opcode.REDUCE for user in instruction.users)
            )
            size = data_bytes(instruction.shape) // _UNIT if counts else 0
            self._sizes[instruction] = size
        return size


def _may_be_copied(boundary: Boundary, group: Group) -> bool:
    """Whether a boundary that has to stay is a broadcast that may be made anew in branches."""
    instruction = boundary.first
    if boundary.position is not Position.OPERAND or len(group.moved) < 2:
        return False
    last = group.moved[-1].first
    return (
        instruction.opcode is Opcode.BROADCAST
        and last in instruction.users
        and last.opcode is not Opcode.TUPLE
    )
