"""One segment of a value's life: from its definition, or a use, to its next use."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.memory_space.allocation.allocations import Allocation
from hloopt.memory_space.allocation.copies import Copies
from hloopt.memory_space.allocation.requests import (
    GivenUp,
    NotConverted,
    PlannedConversion,
    Reason,
    Request,
    live_at,
)
from hloopt.memory_space.allocation.values import AllocationValue, TimedUse
from hloopt.memory_space.heap.chunks import Chunk
from hloopt.memory_space.ledger.requirements import Requirement


@dataclass(slots=True)
class SegmentAllocator:
    """Finds a place for each segment: stays, evicts, prefetches, or leaves it in default memory.

    The rules of section 7.4 of the specification.
    """

    copies: Copies

    def allocate(self, request: Request) -> Reason:
        """Place one segment; the reasons why its use reads default memory, none if it does not.

        Raises GivenUp where no place will do.
        """
        owner, sequence = request.owner, request.owner.sequence
        if request.start == request.end and sequence:
            user = request.site.use.user
            read = (stay for stay in sequence if stay.uses and stay.uses[-1].user is user)
            stay = next(read, None) or live_at(sequence, request.end)
            stay.uses.append(request.site.use)
            return Reason.NONE
        at_start = self.copies.ledger.requirements.at(owner.value, request.start)
        at_end = self._required_for(owner, request.site)
        if at_start is not None:
            self._begin_as_required(request, at_start)
        must_stay_out = any(r is not None and r.is_default for r in (at_start, at_end))
        is_out_at_end = at_end is not None and at_end.is_default
        is_spilled = self.copies.options.always_spill_to_default_memory
        may_move = not owner.is_contiguous and request.conversion is None
        if is_spilled and not is_out_at_end and may_move:
            return self._spill(request, at_end)
        reasons = Reason.NONE
        if request.allow_no_copy and not must_stay_out:
            reasons = self._stay(request, at_end)
            if not reasons and request.conversion is None:
                sequence[-1].uses.append(request.site.use)
                return reasons
        if request.at_any_distance:
            raise GivenUp(reasons or Reason.REQUIRED)
        if request.defined_in_alternate and not sequence:
            self._define_in_alternate(request)
        if owner.is_contiguous and sequence and sequence[-1].chunk is not None:
            raise GivenUp(reasons or Reason.REQUIRED)
        if request.conversion is not None:
            return self._convert(request, request.conversion)
        outside = self._in_default(request)
        if request.in_alternate:
            self.copies.load_at_once(request, outside, at_end)
            return Reason.NONE
        found = self._read(request, outside, at_end)
        return reasons | found if found else found

    def _convert(self, request: Request, plan: PlannedConversion) -> Reason:
        """Load the result of an operation on the value. Raises NotConverted."""
        at_first_use = self._required_for(plan.result, plan.result.uses[0])
        if at_first_use is not None and at_first_use.is_default:
            raise NotConverted(plan.conversion, Reason.REQUIRED)
        try:
            source = self._in_default(request)
        except GivenUp as failure:
            raise NotConverted(plan.conversion, failure.reason) from None
        return self.copies.convert(request, plan, source, at_first_use and at_first_use.chunk)

    def _read(self, request: Request, outside: Allocation, at_end: Requirement | None) -> Reason:
        """Prefetch the value for its use, or let the use read default memory."""
        reasons = Reason.NONE
        if at_end is not None and at_end.is_default:
            reasons = Reason.REQUIRED
        elif request.allow_prefetch and not request.owner.is_contiguous:
            reasons = self.copies.prefetch(request, outside, at_end)
            if not reasons:
                return reasons
        if at_end is not None and not at_end.is_default:
            raise GivenUp(reasons or Reason.REQUIRED)
        outside.extend(request.end)
        outside.uses.append(request.site.use)
        return reasons

    def _required_for(self, owner: AllocationValue, site: TimedUse) -> Requirement | None:
        """The place that a use requires, by itself or since other positions share its place."""
        requirements, flow = self.copies.ledger.requirements, self.copies.program.flow
        found = requirements.at(owner.value, site.time)
        for alias in site.aliases:
            value = flow.held[alias.instruction][alias.slot]
            other = requirements.at(value, self.copies.program.time(alias.instruction))
            if other is None:
                continue
            if found is not None and not found.agrees_with(other):
                raise GivenUp(Reason.REQUIRED)
            found = other if found is None or found.chunk is None else found
        return found

    def _begin_as_required(self, request: Request, required: Requirement) -> None:
        owner = request.owner
        for allocation in reversed(owner.sequence):
            if (allocation.chunk is None) is required.is_default:
                allocation.extend(request.start)
                return
        made = Allocation(owner.position, required.chunk, request.start, request.start)
        owner.sequence.append(made)
        if made.chunk is not None:
            self.copies.ledger.take(made.chunk, request.start, request.start)

    def _stay(self, request: Request, at_end: Requirement | None) -> Reason:
        """Keep the value where it is in alternate memory, or define it there."""
        owner = request.owner
        last = owner.sequence[-1] if owner.sequence else None
        if last is not None and last.chunk is None:
            return Reason.REQUIRED
        is_forced = request.at_any_distance or request.in_alternate or request.prefers_to_stay
        if not is_forced and not self.copies.picker.fits_without_copy(
            request.size, request.start, request.end
        ):
            return Reason.TOO_FAR
        start, chunk = request.start, None
        if last is not None:
            start, chunk = last.end + 1, last.chunk
        for wanted in (request.preferred_chunk, at_end and at_end.chunk):
            if wanted is None:
                continue
            if chunk is not None and chunk.offset != wanted.offset:
                return Reason.NO_ROOM
            if chunk is not None and chunk is not wanted:
                self.copies.ledger.heap.unite(chunk, wanted)
            chunk = chunk or wanted
        found = self.copies.find(request, start, chunk, stays=True)
        if found is None:
            return Reason.NO_ROOM
        if start <= request.end:
            self.copies.ledger.take(found, start, request.end)
        if last is None:
            last = Allocation(owner.position, found, request.start, request.end)
            owner.sequence.append(last)
        last.extend(request.end)
        return Reason.NONE

    def _in_default(self, request: Request) -> Allocation:
        """The stay in default memory that the segment can read: an eviction makes one."""
        sequence = request.owner.sequence
        for allocation in reversed(sequence):
            if allocation.chunk is None:
                return allocation
        if sequence:
            is_colored = request.in_alternate is not None or request.defined_in_alternate
            try:
                return self.copies.evict(request, sequence[-1])
            except GivenUp:
                if not is_colored:
                    raise
                return self.copies.evict_at_once(request, sequence[-1])
        made = Allocation(request.owner.position, None, request.start, request.end)
        sequence.append(made)
        return made

    def _define_in_alternate(self, request: Request) -> None:
        """Let the value be in alternate memory when it is defined, and at no other time."""
        self._place(request, self.copies.room(request, request.start, request.start))

    def _place(self, request: Request, chunk: Chunk) -> Allocation:
        self.copies.ledger.take(chunk, request.start, request.start)
        made = Allocation(request.owner.position, chunk, request.start, request.start)
        request.owner.sequence.append(made)
        return made

    def _spill(self, request: Request, at_end: Requirement | None) -> Reason:
        """Evict the value as soon as it is defined, and load it right before each use."""
        sequence = request.owner.sequence
        wanted = request.preferred_chunk or (at_end and at_end.chunk)
        if not sequence:
            try:
                chunk = self.copies.room(request, request.start, request.start + 1)
            except GivenUp:
                sequence.append(
                    Allocation(request.owner.position, None, request.start, request.end)
                )
            else:
                made = self._place(request, chunk)
                self.copies.evict_at_once(request, made)
                self.copies.ledger.take(chunk, request.start + 1, request.start + 1)
                made.extend(request.start + 1)
                if request.end == made.end and wanted is None:
                    made.uses.append(request.site.use)
                    return Reason.NONE
        source = self._in_default(request)
        try:
            self.copies.load_at_once(request, source, at_end)
        except GivenUp as failure:
            if at_end is not None:
                raise
            source.extend(request.end)
            source.uses.append(request.site.use)
            return failure.reason
        return Reason.NONE
