"""A finer test of whether two buffers may become one: where each of them is written and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from hloopt.analysis.async_operations import OWN_DONES, SEND_RECV_DONE
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.opcode import STARTS
from hloopt.passes.copy_insertion.execution_order import ExecutionOrder
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.forced_order import (
    AFTER,
    BEFORE,
    SAME,
    UNORDERED,
    ForcedOrder,
    Relation,
)
from hloopt.passes.copy_insertion.value_lists import Node, ValueList, list_of


class Merge(Enum):
    """The ways to merge the values of two buffers."""

    FIRST_TARGET_INTO_SOURCE = auto()
    """The values behind the copy come right after its source."""
    LAST_SOURCE_INTO_TARGET = auto()
    """The source and what is before it come where the copy is."""


_WRITES_NOTHING = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
        *(Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL),  # what happens inside them counts
    )
)
_OVERLAPPING = STARTS.union(
    (*OWN_DONES, *SEND_RECV_DONE, Opcode.ASYNC_DONE, Opcode.COLLECTIVE_PERMUTE)
)
"""Opcodes of operations that are in flight while other instructions run."""


@dataclass(slots=True, eq=False)
class Access:
    """The access of an instruction to a buffer."""

    instruction: Instruction
    defines: bool = False
    """Whether it makes one of its values."""
    used: Instruction | None = None
    """The instruction that made the value it reads; None where it reads none."""


@dataclass(slots=True)
class Region:
    """The region of a buffer: the definitions and uses of its values."""

    accesses: dict[Instruction, Access] = field(default_factory=dict)
    by_computation: dict[Computation, list[Access]] = field(default_factory=dict)

    @classmethod
    def of(cls, values: ValueList, facts: Facts) -> Region:
        """O(definitions and uses)."""
        region = cls()
        for node in values.first.onwards() if values.first else ():
            definer = facts.flow.definer[node.value]
            region._access(definer).defines = True
            for use in node.uses:
                region._access(use.user).used = definer
        return region

    def _access(self, instruction: Instruction) -> Access:
        access = self.accesses.get(instruction)
        if access is None:
            access = self.accesses[instruction] = Access(instruction)
            self.by_computation.setdefault(instruction.parent, []).append(access)
        return access


class RegionTest:
    """Finds out whether values of two buffers may be in one, although their order is not known.

    Every instruction that accesses the one buffer is compared with those that access the other.
    Where an order of two may be chosen freely it is, and becomes a control edge if the test ends
    well. O(accesses of the one · accesses of the other).
    """

    def __init__(self, facts: Facts, order: ExecutionOrder) -> None:
        self.facts = facts
        self.order = order

    def allows(self, copy: Instruction, source: Node, target: Node, merge: Merge) -> bool:
        """Whether the lists of a copy's source and target may be merged; adds the edges needed."""
        written, read = (Region.of(list_of(node), self.facts) for node in (source, target))
        forced = ForcedOrder(self.order, copy)
        onto_source = _Comparison(self.facts, forced, written, read).relation()
        onto_target = _Comparison(self.facts, forced, read, written).relation()
        if onto_source.overlaps and onto_target.overlaps:
            return False
        if onto_source.overlaps:
            matters = merge is not Merge.FIRST_TARGET_INTO_SOURCE
            if onto_source.intercepts or (matters and onto_target.intercepts):
                return False
        elif onto_target.overlaps:
            matters = merge is not Merge.LAST_SOURCE_INTO_TARGET
            if onto_target.intercepts or (matters and onto_source.intercepts):
                return False
        return forced.confirm()


@dataclass(slots=True)
class _Relations:
    """The times at which the accesses of one region run, seen from another one."""

    entries: list[Relation] = field(default_factory=list)
    """Different ones; what includes another stands for both."""
    intercepts: bool = False
    """Whether one of them may overwrite a value between its definition and a use."""

    @property
    def overlaps(self) -> bool:
        return any(entry & UNORDERED == UNORDERED for entry in self.entries)

    def add(self, relation: Relation) -> None:
        if not any(entry & relation == relation for entry in self.entries):
            self.entries = [e for e in self.entries if e & relation != e] + [relation]


class _Comparison:
    """Compares all accesses of a region with those of another."""

    def __init__(self, facts: Facts, order: ForcedOrder, of: Region, other: Region) -> None:
        self.facts = facts
        self.order = order
        self.region = of
        self.other = other

    def relation(self) -> _Relations:
        """The times at which the accesses of the other region run, seen from this one."""
        result = _Relations()
        tree = self.order.tree
        for computation, accesses in self.region.by_computation.items():
            for inside, others in self.other.by_computation.items():
                if tree.runs_within(inside, computation):
                    for other in others:
                        self._add(other, accesses, result)
        return result

    def _add(self, other: Access, accesses: list[Access], result: _Relations) -> None:
        modifies = self._can_modify(other)
        ordered = Relation(0)
        unordered: list[Access] = []
        intercepts_unordered = False
        for access in accesses:
            relation = self._relate(other, access)
            intercepts = self._intercepts(other, access, relation, modifies)
            if relation == UNORDERED:
                unordered.append(access)
                intercepts_unordered |= intercepts
            else:
                ordered |= relation
                result.intercepts |= intercepts
        if unordered and not self.order.force(
            other.instruction,
            [access.instruction for access in unordered],
            ordered,
            self.facts.in_place,
        ):
            ordered |= UNORDERED
            result.intercepts |= intercepts_unordered
        result.add(ordered)

    def _relate(self, other: Access, access: Access) -> Relation:
        relation = self.order.of(other.instruction, access.instruction)
        if relation == SAME and access.defines != other.defines:
            return BEFORE if access.defines else AFTER
        return relation

    def _can_modify(self, other: Access) -> bool:
        """Whether an access may overwrite what this region holds."""
        instruction, accesses = other.instruction, self.region.accesses
        if not other.defines:
            return any(
                pair.operand < len(instruction.operands)
                and instruction.operands[pair.operand] in accesses
                for pair in self.facts.in_place.pairs(instruction)
            )
        if instruction.opcode is Opcode.COPY:
            (source,) = instruction.operands
            is_same = source.shape is instruction.shape
            if source.opcode is Opcode.GET_TUPLE_ELEMENT:
                source = source.operands[0]
            return not (is_same and source in accesses)
        return instruction.opcode not in _WRITES_NOTHING

    def _intercepts(
        self, other: Access, access: Access, relation: Relation, modifies: bool
    ) -> bool:
        """Whether `other` may overwrite the value that `access` reads before it does."""
        instruction, use, definition = other.instruction, access.instruction, access.used
        is_overlapping = instruction.opcode in _OVERLAPPING
        if definition is None or not modifies:
            return is_overlapping
        if definition.opcode is Opcode.PARAMETER and use.is_root:
            return True
        if definition.parent is use.parent:
            if self._is_trip_between(instruction, definition, use, relation):
                return False
            if definition is instruction and definition.shape.is_tuple and _is_branch(use.parent):
                return True
        if is_overlapping:
            return True
        if relation not in (BEFORE, UNORDERED):
            return False
        return self.order.of(instruction, definition) in (AFTER, UNORDERED)

    def _is_trip_between(
        self, inside: Instruction, definition: Instruction, use: Instruction, relation: Relation
    ) -> bool:
        """Whether `inside` is in a loop that gives the value, and runs before it is read, or in
        one that reads it, and runs after it was made.
        """
        if _has_body(definition, inside.parent):
            return relation == BEFORE
        return _has_body(use, inside.parent) and self.order.of(inside, definition) == AFTER


def _has_body(loop: Instruction, computation: Computation) -> bool:
    return loop.opcode is Opcode.WHILE and loop.called[0] is computation


def _is_branch(computation: Computation) -> bool:
    return any(caller.opcode is Opcode.CONDITIONAL for caller in computation.callers)
