"""The allocation sequence: one buffer after the other gets its places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Position
from hloopt.ir import Opcode
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.copies import Copies
from hloopt.memory_space.allocation.placing import BufferPlacer
from hloopt.memory_space.allocation.requests import GivenUp, NotConverted, Reason
from hloopt.memory_space.allocation.scoped import ScopedMemory
from hloopt.memory_space.allocation.values import AllocationValue, allocation_values
from hloopt.memory_space.costs.efficiency import inefficient_times
from hloopt.memory_space.heap.moving import Mover
from hloopt.memory_space.ledger.requirements import DEFAULT, Contradiction


@dataclass(slots=True)
class Allocator:
    """Allocates buffers in the order in which they are given."""

    placer: BufferPlacer
    mover: Mover
    scoped: ScopedMemory = field(default_factory=ScopedMemory)
    values: list[AllocationValue] = field(default_factory=list)
    """All that was placed, in the order of placing."""
    has_conversions: bool = False
    """Whether an operation that was placed is to become asynchronous."""
    _final: set[Buffer] = field(default_factory=set)

    @property
    def copies(self) -> Copies:
        return self.placer.copies

    def require_entry_places(self) -> None:
        """Require what the entry's parameters, results and constants say of their memory."""
        program = self.copies.program
        flow, requirements = program.flow, self.copies.ledger.requirements
        entry = program.module.entry
        ends = [Position(entry.root, slot) for slot in range(len(flow.held[entry.root]))]
        for value in flow.values():
            definer = flow.definer[value]
            is_parameter = definer.opcode is Opcode.PARAMETER and definer.parent is entry
            if is_parameter or definer.opcode is Opcode.CONSTANT:
                ends.append(Position(definer, flow.slot[value]))
        for position in ends:
            value = flow.held[position.instruction][position.slot]
            if program.shape(position).is_array and position.instruction in program.schedule.times:
                requirements.add(value, program.time(position.instruction), DEFAULT)
        requirements.keep()

    def settle(self, buffers: Iterable[Buffer]) -> None:
        """Take buffers as placed for good."""
        self._final.update(buffers)
        self.copies.ledger.keep()

    def allocate(self, buffer: Buffer) -> Reason:
        """Place the values of a buffer; the reasons why uses of it read default memory.

        Raises PassRefused where it has to be in alternate memory and does not fit.
        """
        if buffer in self._final:
            return Reason.NONE
        if self.copies.options.repack_after_every_allocation:
            self._repack()
        ledger = self.copies.ledger
        reason = Reason.NONE
        attempt, may_repack = 0, True
        while attempt < self.copies.options.max_retries:
            group = self._with_conversions(buffer)
            made: list[AllocationValue] | None = None
            try:
                made, reason = self._attempt(group, attempt)
            except NotConverted as failure:
                self.placer.conversions.give_up(failure.conversion)
                ledger.undo()
                continue
            except GivenUp as failure:
                reason = failure.reason
            except Contradiction:
                reason = Reason.REQUIRED
            if reason & Reason.NO_ROOM and may_repack and self.mover.can_move:
                ledger.undo()
                may_repack = False
                self._repack()
            elif made is None:
                ledger.undo()
                attempt += 1
            elif self._require_efficient(made):
                ledger.undo()
            else:
                ledger.keep()
                self._final.update(group)
                self.add(made)
                return reason
        self._final.add(buffer)
        if self.placer.colored.is_demanded(buffer):
            raise self.placer.colored.not_satisfied(buffer)
        return reason

    def _attempt(
        self, group: Sequence[Buffer], attempt: int
    ) -> tuple[list[AllocationValue], Reason]:
        """Place the values of some buffers together. Raises what `_place` does."""
        program, picker = self.copies.program, self.copies.picker
        picker.retry = attempt
        made = [one for member in group for one in allocation_values(program, member.values)]
        made.sort(key=lambda one: one.time)
        for one in made:
            one.is_contiguous = self.placer.allowed.is_contiguous(one.position)
        for member in group:
            self.placer.require_allowed(member)
        is_last = attempt == self.copies.options.max_retries - 1
        return made, self.placer.place(made, is_last_try=is_last)

    def _repack(self) -> None:
        """Find places anew for all that is placed, as long as nothing was converted."""
        if self.has_conversions:
            return
        if self.copies.options.reduce_scoped_memory_limit:
            self.scoped.ask_again(self.copies.options, self.copies.ledger, self.values)
        fixed = [
            (chunk, self.copies.program.time(instruction))
            for instruction, chunk in self.scoped.chunks.items()
        ]
        reserved = [
            r for reservations in self.placer.colored.reserved.values() for r in reservations
        ]
        self.mover.move(self.values, fixed, reserved)

    def add(self, made: Iterable[AllocationValue]) -> None:
        """Note what is placed for good."""
        for value in made:
            self.values.append(value)
            self.has_conversions |= any(copy.operation is not None for copy in value.copies)

    def _require_efficient(self, made: Sequence[AllocationValue]) -> bool:
        """Require default memory of what is copied for too little; whether there is any of that."""
        copies, found = self.copies, self.placer.inefficient
        ratio = copies.options.inefficient_use_to_copy_ratio
        if ratio <= 0 or copies.costs is None:
            return False
        known = len(found)
        found.update(inefficient_times(copies.program, made, copies.costs, ratio))
        return len(found) > known

    def _with_conversions(self, buffer: Buffer) -> list[Buffer]:
        """A buffer with those that conversions tie to it: sources, and results of one source."""
        of_value = self.copies.program.buffers.of_value
        found = {buffer: None}
        waiting = [buffer]
        for member in waiting:  # grows
            for value in member.values:
                definer = self.copies.program.flow.definer[value]
                made = self.placer.conversions.by_result.get(definer)
                tied = [] if made is None else [made.source]
                tied += [c.result for c in self.placer.conversions.by_source.get(value, ())]
                for other in tied:
                    neighbour = of_value[other]
                    if neighbour not in found:
                        found[neighbour] = None
                        waiting.append(neighbour)
        return list(found)
