"""Cross-program prefetches: parameters that lie in alternate memory from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.analysis.dataflow import Position, slots_of
from hloopt.diagnostics import PassRefused, counted
from hloopt.ir import Instruction, Opcode
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.allocations import Allocation, CopyAllocation
from hloopt.memory_space.allocation.copies import Copies
from hloopt.memory_space.allocation.values import AllocationValue, allocation_values
from hloopt.memory_space.heap.chunks import Chunk

_LARGEST_USED_SHARE = 0.6
"""A parameter that is used for less of the program may give its place back in between."""


@dataclass(frozen=True, slots=True)
class CrossProgramPrefetch:
    """A parameter that is loaded before the program runs."""

    parameter: int
    index: tuple[int, ...]
    chunk: Chunk


@dataclass(slots=True)
class CrossProgramPrefetcher:
    """Chooses parameters, in the order given, and allocates them for the whole program."""

    copies: Copies
    memory_pressure: int
    """The sizes, added up, of all buffers that might lie in alternate memory."""

    def prefetch(
        self, annotated: Sequence[Buffer], candidates: Sequence[Buffer]
    ) -> list[tuple[Buffer, CrossProgramPrefetch, AllocationValue]]:
        """Prefetch the parameters that the entry's layout puts there, then candidates.

        Raises PassRefused where there are more of the first than the options allow.
        """
        options = self.copies.options
        most = options.max_cross_program_prefetches if options.enable_cross_program_prefetch else 0
        if most >= 0 and len(annotated) > most:
            raise PassRefused(
                f"{counted(len(annotated), 'parameter')} laid out in alternate memory, "
                f"but at most {most} may be prefetched across programs",
                help="raise max_cross_program_prefetches (-1: no limit)",
            )
        found: list[tuple[Buffer, CrossProgramPrefetch, AllocationValue]] = []
        for buffer in (*annotated, *candidates):
            if most >= 0 and len(found) >= most:
                break
            made = self._prefetch(buffer, rank=len(found))
            if made is not None:
                found.append((buffer, *made))
        return found

    def is_candidate(self, buffer: Buffer) -> bool:
        """Whether a buffer holds a parameter that the program reads, but not as an activation."""
        value = self._parameter_value(buffer)
        if value is None or buffer.is_live_out:
            return False
        flow = self.copies.program.flow
        shape = flow.shape(value)
        uses = flow.uses(value)
        if not shape.is_array or not uses or len(flow.index(value)) > 1:
            return False
        permissive = self.copies.options.cross_program_prefetch_permissive_mode
        for use in uses:
            operand = use.user.operands[use.operand]
            if operand.opcode is Opcode.BITCAST and operand.operands[0].opcode in _ELEMENTS:
                continue  # the reader of the bitcast counts as one of what it is made of
            if operand.opcode not in _ELEMENTS or _is_activation(operand, permissive):
                return False
        return True

    def _parameter_value(self, buffer: Buffer) -> int | None:
        definer = self.copies.program.flow.definer
        for value in buffer.values:
            if definer[value].opcode is Opcode.PARAMETER and definer[value].parent.is_entry:
                return value
        return None

    def _prefetch(
        self, buffer: Buffer, rank: int
    ) -> tuple[CrossProgramPrefetch, AllocationValue] | None:
        program, ledger = self.copies.program, self.copies.ledger
        value = self._parameter_value(buffer)
        assert value is not None
        parameter = program.flow.definer[value]
        position = Position(parameter, program.flow.slot[value])
        owner = next(o for o in allocation_values(program, [value]) if o.position == position)
        offset = ledger.heap.best_offset(owner.size, 0, program.end)
        if offset + owner.size > self.copies.limit or not owner.uses:
            return None
        chunk = Chunk(offset, owner.size)
        outside = Allocation(position, None, owner.time, program.end)
        first = min(site.time for site in owner.uses)
        last, again = self._freed(buffer, owner)
        loaded = CopyAllocation(
            position,
            chunk,
            owner.time,
            last,
            source=outside,
            start_after=owner.time - 1,
            done_before=first,
            cross_program_index=rank,
        )
        loaded.uses += [site.use for site in owner.uses]
        owner.sequence += [outside, loaded]
        ledger.take(chunk, 0, last)
        if again is not None:
            owner.sequence.append(
                CopyAllocation(
                    position,
                    chunk,
                    again,
                    program.end,
                    source=outside,
                    start_after=again,
                    done_before=program.end,
                    is_for_next_run=True,
                )
            )
            ledger.take(chunk, again + 1, program.end)
        ledger.keep()
        index = slots_of(parameter.shape).indices[position.slot]
        return CrossProgramPrefetch(parameter.parameter_number, index, chunk), owner

    def _freed(self, buffer: Buffer, owner: AllocationValue) -> tuple[int, int | None]:
        """The last time of the parameter's place, and when to load it again for the next run."""
        program, picker = self.copies.program, self.copies.picker
        ranges, end = program.ranges, program.end
        last = max([site.time for site in owner.uses])
        last = max([last, *(ranges.end[v] for v in buffer.values if v != owner.value)])
        may_free = (
            self.copies.options.enable_cross_program_prefetch_freeing
            and self.memory_pressure > self.copies.limit
            and last < _LARGEST_USED_SHARE * end
        )
        latest = picker.latest_prefetch_start(owner.size, last, end, None) if may_free else -1
        if latest <= last:
            return end, None
        return last, picker.preferred_prefetch_start(owner.size, last, latest, end)


_ELEMENTS = (Opcode.PARAMETER, Opcode.GET_TUPLE_ELEMENT)
_LOOKED_THROUGH = (Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.BROADCAST, Opcode.TRANSPOSE)
_SLICES = (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE)
_ACTIVATIONS = {
    Opcode.CONVOLUTION: slice(0, 1),
    Opcode.DOT: slice(0, 1),
    Opcode.GATHER: slice(1, 2),
    Opcode.DYNAMIC_SLICE: slice(1, None),
    Opcode.DYNAMIC_UPDATE_SLICE: slice(1, None),
    Opcode.COPY: slice(0, 1),
}
"""The operands that hold activations rather than weights."""


def _is_activation(value: Instruction, permissive: bool) -> bool:
    """Whether a user, found through what only reshapes, takes a value as an activation.

    Users that say nothing of it count as such unless `permissive`.
    """
    waiting, seen = [value], {value}
    while waiting:
        held = waiting.pop()
        for user in held.users:
            if user.opcode is Opcode.FUSION:
                inner = [
                    p
                    for p in user.called[0].parameters
                    if user.operands[p.parameter_number] is held
                ]
            elif user.opcode in _LOOKED_THROUGH:
                inner = [user]
            elif user.opcode is Opcode.REDUCE:
                if held in user.operands[len(user.operands) // 2 :]:
                    return True
                inner = [user]
            elif user.opcode in _ACTIVATIONS:
                if held in user.operands[_ACTIVATIONS[user.opcode]]:
                    return True
                inner = [user] if user.opcode in _SLICES else []
            elif permissive:
                continue
            else:
                return True
            waiting += [one for one in inner if one not in seen]
            seen.update(inner)
    return False
