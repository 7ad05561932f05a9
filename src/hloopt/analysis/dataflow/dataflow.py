"""The values of a module, and the parts of instructions that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from hloopt.analysis.dataflow.forwarding import Forward, defined_slots, forwards_of, misfit
from hloopt.analysis.dataflow.phis import superfluous_phis
from hloopt.analysis.dataflow.scope import Scope, callees_in_order, control_flow_callees
from hloopt.analysis.dataflow.slots import Index, slots_of
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.shape import Shape

NOTHING = -1
"""Stands where a slot holds no value: the table of operands of a collective-permute-start."""

_MERGES = frozenset((Opcode.PARAMETER, Opcode.WHILE, Opcode.CONDITIONAL))
_ONE_SOURCE = (Opcode.CALL, Opcode.ASYNC_START)
_PASSES_TABLE_ONLY = (Opcode.GET_TUPLE_ELEMENT, Opcode.COPY)
_READS_NOTHING = (Opcode.TUPLE, Opcode.DOMAIN)


class Position(NamedTuple):
    """A part of a result that holds a value."""

    instruction: Instruction
    slot: int


class Use(NamedTuple):
    """A part of an operand through which an instruction reads a value."""

    user: Instruction
    operand: int
    slot: int


@dataclass(slots=True)
class Dataflow:
    """The values of a module: results that need memory of their own, numbered from 0.

    An instruction holds one value per slot of its shape. It defines it, passes it on, as
    get-tuple-element does, or merges several that may reach it into a new one, a phi, as a while
    does. The bodies of fusions are left out, but their values count in `numbers`, which are those
    of XLA. Near-linear in the slots of all instructions covered.
    """

    module: Module
    scope: Scope
    held: dict[Instruction, Sequence[int]] = field(default_factory=dict)
    """The value in each slot of a covered instruction."""
    definer: list[Instruction] = field(default_factory=list)
    slot: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """XLA's number of each value: the same order, with gaps."""
    phis: dict[int, None] = field(default_factory=dict)
    unions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Stand-ins for any of several values, without memory of their own: what reaches a parameter
    of a computation that several instructions call."""
    _positions: list[list[Position]] = field(default_factory=list)

    @classmethod
    def of(cls, module: Module) -> Dataflow:
        """Raises HloVerifyError where shapes do not fit or a computation calls itself."""
        result = cls(module, Scope.of(module))
        builder = _Builder(result)
        builder.define()
        builder.propagate()
        builder.simplify()
        return result

    # -- values -------------------------------------------------------------------------------

    def shape(self, value: int) -> Shape:
        """The shape of a value, where it is defined."""
        return slots_of(self.definer[value].shape).parts[self.slot[value]]

    def index(self, value: int) -> Index:
        """The shape index at which a value is defined."""
        return slots_of(self.definer[value].shape).indices[self.slot[value]]

    def members(self, held: Iterable[int]) -> Iterable[int]:
        """The values among those held: stand-ins give way to what they stand for."""
        if not self.unions:
            return held
        return [member for value in held for member in self.unions.get(value, (value,))]

    def values(self) -> Iterator[int]:
        """The values in order; phis that turned out superfluous have no number."""
        return (value for value, number in enumerate(self.numbers) if number >= 0)

    def at(self, instruction: Instruction, index: Index) -> int | None:
        """The value `instruction` holds at a shape index, or None. O(length of the index)."""
        slot = slots_of(instruction.shape).at(index)
        value = NOTHING if slot is None else self.held[instruction][slot]
        return None if value == NOTHING else value

    def positions(self, value: int) -> list[Position]:
        """Where a value is held: its definition, then in order of the text. O(all), once."""
        if not self._positions:
            self._find_positions()
        return self._positions[value]

    def uses(self, value: int) -> list[Use]:
        """Who reads a value, by its positions.

        Tuples and domains read nothing, get-tuple-elements and copies of tuples the outermost
        pointer table only; but what the root of a computation holds itself, it uses.
        """
        result: list[Use] = []
        for instruction, slot in self.positions(value):
            for user in instruction.users:
                if not self._reads(user, slot, value):
                    continue
                result += [
                    Use(user, number, slot)
                    for number, operand in enumerate(user.operands)
                    if operand is instruction
                ]
        return result

    def _reads(self, user: Instruction, slot: int, value: int) -> bool:
        if user.is_root and value in self.members(self.held[user]):
            return True
        if user.opcode in _READS_NOTHING:
            return False
        return not slot or user.opcode not in _PASSES_TABLE_ONLY

    def _find_positions(self) -> None:
        positions = [[Position(i, s)] for i, s in zip(self.definer, self.slot, strict=True)]
        for computation in self.scope.orders:
            for instruction in computation.instructions:
                for slot, held in enumerate(self.held[instruction]):
                    for value in self.members((held,)):
                        if value != NOTHING and (
                            self.definer[value] is not instruction or self.slot[value] != slot
                        ):
                            positions[value].append(Position(instruction, slot))
        self._positions = positions


def read_slots(user: Instruction, operand: Instruction, flow: Dataflow) -> Iterable[int]:
    """The values `user` reads of an operand, the exception for roots aside. O(result)."""
    opcode = user.opcode
    if opcode in _READS_NOTHING:
        return ()
    held = flow.held[operand]
    return flow.members(held[:1] if opcode in _PASSES_TABLE_ONLY else held)


class _Source(NamedTuple):
    """From where a merging instruction gets all its slots: `instruction`, from `start` on."""

    instruction: Instruction
    start: int


class _Builder:
    """Lets values flow until nothing changes."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.held: dict[Instruction, list[int]] = {}
        self.next_number = 0
        self.phi_at: dict[tuple[Instruction, int], int] = {}
        self.sources: dict[Instruction, list[_Source]] = {}
        self.parameters: dict[Computation, list[Instruction]] = {}

    # -- definitions --------------------------------------------------------------------------

    def define(self) -> None:
        """Give every new value its number, computation by computation."""
        scope = self.flow.scope
        for computation in scope.all:
            order = scope.orders.get(computation)
            if order is None:
                self.next_number += sum(len(defined_slots(i)) for i in computation.instructions)
                continue
            self._find_sources(computation)
            for instruction in order:
                self._define(instruction)

    def _define(self, instruction: Instruction) -> None:
        if instruction in self.sources:
            self.held[instruction] = [NOTHING] * len(slots_of(instruction.shape).parts)
            return
        slots = defined_slots(instruction)
        width = len(slots_of(instruction.shape).parts)
        if len(slots) == width == 1:
            self.held[instruction] = [self._new_value(instruction, 0)]
            return
        held = self.held[instruction] = [NOTHING] * width
        for slot in slots:
            held[slot] = self._new_value(instruction, slot)

    def _new_value(self, instruction: Instruction, slot: int) -> int:
        flow = self.flow
        flow.definer.append(instruction)
        flow.slot.append(slot)
        flow.numbers.append(self.next_number)
        self.next_number += 1
        return len(flow.definer) - 1

    def _new_phi(self, instruction: Instruction, slot: int) -> int:
        flow = self.flow
        value = self._new_value(instruction, slot)
        if instruction.opcode is Opcode.PARAMETER and all(
            caller.opcode in _ONE_SOURCE for caller in instruction.parent.callers
        ):
            flow.unions[value] = ()
            flow.numbers[value] = NOTHING
            self.next_number -= 1
        else:
            flow.phis[value] = None
        return value

    # -- where merging instructions get their values --------------------------------------------

    def _find_sources(self, computation: Computation) -> None:
        """The sources of the computation's parameters, if called, and of its own merges."""
        callers = [c for c in computation.callers if computation in control_flow_callees(c)]
        if callers:
            self.parameters[computation] = computation.parameters
            for parameter in self.parameters[computation]:
                found = [s for caller in callers for s in _feeds(parameter, caller)]
                self.sources[parameter] = list(dict.fromkeys(found))
        for instruction in computation.instructions:
            if instruction.opcode is Opcode.WHILE:
                found = [_Source(instruction.called[0].root, 0), _Source(_operand(instruction), 0)]
                self.sources[instruction] = found
            elif instruction.opcode is Opcode.CONDITIONAL:
                found = [_Source(branch.root, 0) for branch in instruction.called]
                self.sources[instruction] = list(dict.fromkeys(found))

    # -- propagation ----------------------------------------------------------------------------

    def propagate(self) -> None:
        """Update instructions, always the earliest that waits, until none does."""
        ranks = self.flow.scope.ranks
        by_rank = {
            rank: instruction
            for instruction, rank in ranks.items()
            if _can_change(instruction, self.sources)
        }
        queue = list(by_rank)
        heapify(queue)
        waiting = set(queue)
        self._check_widths()
        while queue:
            rank = heappop(queue)
            waiting.remove(rank)
            instruction = by_rank[rank]
            if not self._update(instruction):
                continue
            for other in self._affected(instruction):
                other_rank = ranks.get(other)
                if other_rank in by_rank and other_rank not in waiting:
                    waiting.add(other_rank)
                    heappush(queue, other_rank)
        self.flow.held = dict(self.held)

    def _check_widths(self) -> None:
        for instruction, sources in self.sources.items():
            width = len(slots_of(instruction.shape).parts)
            for source, start in sources:
                if start + width > len(slots_of(source.shape).parts):
                    raise misfit(instruction)

    def _update(self, instruction: Instruction) -> bool:
        sources = self.sources.get(instruction)
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
            if (instruction, slot) in self.phi_at:
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
                new = self.phi_at[instruction, slot] = self._new_phi(instruction, slot)
            if new != current:
                held[slot] = new
                changed = True
        return changed

    def _affected(self, changed: Instruction) -> Iterator[Instruction]:
        for user in changed.users:
            yield user
            for callee in control_flow_callees(user):
                yield from self.parameters[callee]
        if changed.is_root:
            for caller in changed.parent.callers:
                yield caller
                if caller.opcode is Opcode.WHILE:
                    for callee in callees_in_order(caller):
                        yield from self.parameters[callee]
                elif caller.opcode is Opcode.ASYNC_START:
                    yield from _async_chain(caller)

    # -- simplification -------------------------------------------------------------------------

    def simplify(self) -> None:
        """Let what equals one value be that value."""
        flow = self.flow
        inputs = {
            phi: [
                value
                for source, start in self.sources[instruction]
                if (value := self.held[source][start + slot]) != NOTHING
            ]
            for (instruction, slot), phi in self.phi_at.items()
        }
        replacements = superfluous_phis(inputs)
        for phi in replacements:
            flow.phis.pop(phi, None)
            flow.unions.pop(phi, None)
            flow.numbers[phi] = NOTHING
        for union in flow.unions:
            flow.unions[union] = self._members(union, inputs, replacements)
        if not replacements:
            return
        for held in self.held.values():
            for slot, value in enumerate(held):
                if value in replacements:
                    held[slot] = replacements[value]

    def _members(
        self, union: int, inputs: dict[int, list[int]], replacements: dict[int, int]
    ) -> tuple[int, ...]:
        """All that a union stands for, also through other unions."""
        seen = {union: None}
        waiting = [union]
        for value in waiting:  # grows
            if value in self.flow.unions:
                new = (replacements.get(source, source) for source in inputs[value])
                new_values = [source for source in new if source not in seen]
                seen.update(dict.fromkeys(new_values))
                waiting += new_values
        return tuple(sorted(value for value in seen if value not in self.flow.unions))


def _can_change(instruction: Instruction, sources: dict[Instruction, list[_Source]]) -> bool:
    return instruction in sources or (
        instruction.opcode not in _MERGES and bool(forwards_of(instruction))
    )


def _async_chain(start: Instruction) -> Iterator[Instruction]:
    """The updates and the done of an asynchronous start."""
    waiting = list(start.users)
    for user in waiting:  # grows along the chain
        if user.opcode in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
            yield user
            waiting += user.users


def _operand(instruction: Instruction) -> Instruction:
    if not instruction.operands:
        raise misfit(instruction)
    return instruction.operands[0]


def _feeds(parameter: Instruction, caller: Instruction) -> Iterator[_Source]:
    """What a call gives a parameter of a computation it runs."""
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
    operands = list(caller.operands)
    if caller.opcode is Opcode.ASYNC_START:
        for update in _async_chain(caller):
            if update.opcode is Opcode.ASYNC_UPDATE:
                operands += update.operands[1:]
    if number >= len(operands):
        raise misfit(caller)
    yield _Source(operands[number], 0)
