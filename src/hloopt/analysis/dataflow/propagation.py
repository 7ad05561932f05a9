"""The values of a module, and how they reach the parts of instructions that hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from operator import itemgetter
from typing import NamedTuple

from hloopt.analysis.dataflow.forwarding import (
    DEFINES_NOTHING,
    FORWARDING,
    Forward,
    defined_slots,
    forwards_of,
    misfit,
)
from hloopt.analysis.dataflow.phis import superfluous_phis
from hloopt.analysis.dataflow.scope import (
    MAY_HOLD_OTHERS,
    Scope,
    callees_in_order,
    control_flow_callees,
)
from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.async_chains import all_bound_operands, async_followers
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS

NOTHING = -1
"""Stands where a slot holds no value: the table of operands of a collective-permute-start."""

_MERGING = (Opcode.WHILE, Opcode.CONDITIONAL)
_ONE_SOURCE = (Opcode.CALL, Opcode.ASYNC_START)


class _Source(NamedTuple):
    """From where a merging instruction gets all its slots: `instruction`, from `start` on."""

    instruction: Instruction
    start: int


class Propagation:
    """Numbers the values of a module and lets them flow until nothing changes."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.held: dict[Instruction, list[int]] = {}
        self.definer: list[Instruction] = []
        self.slot: list[int] = []
        self.numbers: list[int] = []
        self.phis: dict[int, None] = {}
        self.unions: dict[int, tuple[int, ...]] = {}
        self.merged: dict[int, list[int]] = {}
        self._next_number = 0
        self._phi_at: dict[tuple[Instruction, int], int] = {}
        self._sources: dict[Instruction, list[_Source]] = {}
        self._parameters: dict[Computation, list[Instruction]] = {}

    def run(self) -> None:
        """Fill the fields that `Dataflow` has as well. Near-linear in the slots."""
        self._define_all()
        self._propagate()
        self._simplify()

    # -- definitions --------------------------------------------------------------------------

    def _define_all(self) -> None:
        """Give every new value its number, computation by computation."""
        scope = self.scope
        for computation in scope.all:
            order = scope.orders.get(computation)
            if order is None:
                self._next_number += sum(
                    1 if _is_plain(i) else len(defined_slots(i)) for i in computation.instructions
                )
                continue
            self._find_sources(computation)
            self._define_in(order)

    def _define_in(self, order: list[Instruction]) -> None:
        """Number the values of a computation; most instructions define a single array."""
        held, definer = self.held, self.definer
        for instruction in order:
            if _is_plain(instruction):
                held[instruction] = [len(definer)]
                definer.append(instruction)
                continue
            opcode = instruction.opcode
            if opcode in _MERGING:
                self._sources[instruction] = _merged(instruction)
            if opcode in DEFINES_NOTHING:
                held[instruction] = [NOTHING] * len(slots_of(instruction.shape).parts)
                continue
            self._number_plain()
            self._define(instruction)
        self._number_plain()

    def _number_plain(self) -> None:
        """Number the values added to `definer` since the last call: arrays, at slot 0."""
        more = len(self.definer) - len(self.slot)
        self.slot += [0] * more
        self.numbers += range(self._next_number, self._next_number + more)
        self._next_number += more

    def _define(self, instruction: Instruction) -> None:
        held = self.held[instruction] = [NOTHING] * len(slots_of(instruction.shape).parts)
        if instruction in self._sources:
            return
        for slot in defined_slots(instruction):
            held[slot] = self._new_value(instruction, slot)

    def _new_value(self, instruction: Instruction, slot: int) -> int:
        self.definer.append(instruction)
        self.slot.append(slot)
        self.numbers.append(self._next_number)
        self._next_number += 1
        return len(self.definer) - 1

    def _new_phi(self, instruction: Instruction, slot: int) -> int:
        value = self._new_value(instruction, slot)
        if instruction.opcode is Opcode.PARAMETER and all(
            caller.opcode in _ONE_SOURCE for caller in instruction.parent.callers
        ):
            self.unions[value] = ()
            self.numbers[value] = NOTHING
            self._next_number -= 1
        else:
            self.phis[value] = None
        return value

    # -- where merging instructions get their values --------------------------------------------

    def _find_sources(self, computation: Computation) -> None:
        """Note the sources of the parameters, if control flow calls the computation."""
        callers = [
            caller
            for caller in computation.callers
            if caller.opcode in CONTROL_FLOW_CALLERS
            and caller.parent in self.scope.orders
            and computation in control_flow_callees(caller)
        ]
        if callers:
            self._parameters[computation] = computation.parameters
            for parameter in self._parameters[computation]:
                found = [s for caller in callers for s in _feeds(parameter, caller)]
                self._sources[parameter] = list(dict.fromkeys(found))

    # -- propagation ----------------------------------------------------------------------------

    def _propagate(self) -> None:
        """Update instructions, always the earliest that waits, until none does."""
        ranks = self.scope.ranks
        by_rank = {
            rank: instruction
            for instruction, rank in sorted(ranks.items(), key=itemgetter(1))
            if _can_change(instruction, self._sources)
        }
        self._check_widths()
        crossing = self._crossing()
        waiting: set[int] = set()
        for reached in by_rank:  # what stands behind has its first turn to come anyway
            queue = [reached]
            while queue:
                rank = heappop(queue)
                waiting.discard(rank)
                instruction = by_rank[rank]
                if not self._update(instruction):
                    continue
                if rank == reached and instruction not in crossing:
                    continue  # its users have their first turn to come
                for other in self._affected(instruction):
                    again = ranks.get(other)
                    if again is None or again > reached:
                        continue
                    if again in by_rank and again not in waiting:
                        waiting.add(again)
                        heappush(queue, again)

    def _crossing(self) -> set[Instruction]:
        """The instructions whose values may reach what has a smaller rank: by another way than
        through users, which stand in the same computation."""
        roots = {computation.root for computation in self.scope.orders}
        return roots.union(s.instruction for sources in self._sources.values() for s in sources)

    def _check_widths(self) -> None:
        for instruction, sources in self._sources.items():
            width = len(slots_of(instruction.shape).parts)
            for source, start in sources:
                if start + width > len(slots_of(source.shape).parts):
                    raise misfit(instruction)

    def _update(self, instruction: Instruction) -> bool:
        sources = self._sources.get(instruction)
        held = self.held[instruction]
        if sources is not None:
            return self._merge(instruction, held, sources)
        changed = False
        for forward in forwards_of(instruction):
            changed |= self._forward(instruction, held, forward)
        return changed

    def _forward(self, instruction: Instruction, held: list[int], forward: Forward) -> bool:
        slot, source, start, count, arrays_only = forward
        new = self.held[source][start : start + count]
        if arrays_only:
            parts = slots_of(instruction.shape).parts
            for i in range(count):
                if parts[slot + i].is_tuple:
                    new[i] = held[slot + i]
        if held[slot : slot + count] == new:
            return False
        held[slot : slot + count] = new
        return True

    def _merge(self, instruction: Instruction, held: list[int], sources: list[_Source]) -> bool:
        changed = False
        for slot, current in enumerate(held):
            if (instruction, slot) in self._phi_at:
                continue
            feeding = [
                value
                for source, start in sources
                if (value := self.held[source][start + slot]) != NOTHING
            ]
            if not feeding:
                continue
            if len(feeding) == 1:
                new = feeding[0]
            else:
                new = self._phi_at[instruction, slot] = self._new_phi(instruction, slot)
            if new != current:
                held[slot] = new
                changed = True
        return changed

    def _affected(self, changed: Instruction) -> Iterator[Instruction]:
        for user in changed.users:
            yield user
            if user.opcode in CONTROL_FLOW_CALLERS:
                for callee in control_flow_callees(user):
                    yield from self._parameters[callee]
        if changed.is_root:
            for caller in changed.parent.callers:
                if caller.parent not in self.scope.orders:
                    continue  # in a fusion
                yield caller
                if caller.opcode is Opcode.WHILE:
                    for callee in callees_in_order(caller):
                        yield from self._parameters[callee]
                elif caller.opcode is Opcode.ASYNC_START:
                    yield from async_followers(caller)

    # -- simplification -------------------------------------------------------------------------

    def _simplify(self) -> None:
        """Let what equals one value be that value."""
        inputs = {
            phi: [
                value
                for source, start in self._sources[instruction]
                if (value := self.held[source][start + slot]) != NOTHING
            ]
            for (instruction, slot), phi in self._phi_at.items()
        }
        replacements = superfluous_phis(inputs)
        for phi in replacements:
            self.phis.pop(phi, None)
            self.unions.pop(phi, None)
            self.numbers[phi] = NOTHING
        self.merged = {
            phi: [replacements.get(value, value) for value in values]
            for phi, values in inputs.items()
            if phi not in replacements
        }
        for union in self.unions:
            self.unions[union] = members_of(union, self.merged, self.unions)
        if not replacements:
            return
        for instruction in self.scope.ranks:
            held = self.held[instruction]
            for slot, value in enumerate(held):
                if value in replacements:
                    held[slot] = replacements[value]


def members_of(
    union: int, merged: Mapping[int, Sequence[int]], unions: Collection[int]
) -> tuple[int, ...]:
    """The values that a stand-in stands for, through other stand-ins as well, sorted."""
    seen = {union: None}
    waiting = [union]
    for value in waiting:  # grows
        if value in unions:
            new = [source for source in merged[value] if source not in seen]
            seen.update(dict.fromkeys(new))
            waiting += new
    return tuple(sorted(value for value in seen if value not in unions))


def _is_plain(instruction: Instruction) -> bool:
    """Whether an instruction defines an array, which is all it holds, as most do."""
    return instruction.opcode not in MAY_HOLD_OTHERS and instruction.shape.element_type is not None


def _can_change(instruction: Instruction, sources: dict[Instruction, list[_Source]]) -> bool:
    if instruction.opcode is Opcode.COPY:
        return instruction.shape.is_tuple
    return instruction in sources or instruction.opcode in FORWARDING


def _merged(instruction: Instruction) -> list[_Source]:
    """The sources that the result of a while or conditional merges."""
    if instruction.opcode is Opcode.WHILE:
        return [_Source(instruction.called[0].root, 0), _Source(_operand(instruction), 0)]
    return list(dict.fromkeys(_Source(branch.root, 0) for branch in instruction.called))


def _operand(instruction: Instruction) -> Instruction:
    if not instruction.operands:
        raise misfit(instruction)
    return instruction.operands[0]


def _feeds(parameter: Instruction, caller: Instruction) -> Iterator[_Source]:
    """The values that a call gives a parameter of a computation it runs."""
    number = parameter.parameter_number
    computation = parameter.parent
    if caller.opcode is Opcode.WHILE:
        yield _Source(_operand(caller), 0)
        yield _Source(caller.called[0].root, 0)
        return
    if caller.opcode is Opcode.CONDITIONAL:
        for branch, operand in zip(caller.called, caller.operands[1:], strict=False):
            if branch is computation:
                yield _Source(operand, 0)
        return
    is_start = caller.opcode is Opcode.ASYNC_START
    operands = all_bound_operands(caller) if is_start else caller.operands
    if number >= len(operands):
        raise misfit(caller)
    yield _Source(operands[number], 0)
