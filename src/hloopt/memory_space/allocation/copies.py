"""Copies between the memories: when they run, and where their results lie."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from hloopt.memory_space.allocation.allocations import Allocation, CopyAllocation
from hloopt.memory_space.allocation.requests import (
    GivenUp,
    NotConverted,
    PlannedConversion,
    Reason,
    Request,
)
from hloopt.memory_space.allocation.slices import ProposedSlice, Slicer, fits
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.costs.pickers import PrefetchIntervalPicker
from hloopt.memory_space.heap.chunks import Chunk
from hloopt.memory_space.ledger.ledger import Ledger
from hloopt.memory_space.ledger.requirements import Requirement
from hloopt.memory_space.options.filters import PreferredTimes
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import Program
from hloopt.memory_space.use_site import UseSite

_SLICES_COST_MORE = 1.8
"""The bandwidth that a copy in slices takes, as a multiple of that of one as a whole."""

WITHOUT_COSTS = 0.1
"""The share of an instruction's time that a copy takes where there is no cost model."""


@dataclass(slots=True)
class Copies:
    """Finds times and places for copies of values, and for values that stay without one.

    A prefetch asks the picker for start times and the heap for room: O(reservations), in arrays,
    for each time that is tried.
    """

    program: Program
    options: MemorySpaceOptions
    ledger: Ledger
    picker: PrefetchIntervalPicker
    costs: MemorySpaceCosts | None
    limit: int
    """The bytes of alternate memory that may be used."""
    preferred: PreferredTimes
    slicer: Slicer
    distances: dict[Hashable, int] = field(default_factory=dict)
    """The time that the last prefetch for each kind of use began before it."""

    def find(
        self, request: Request, start: int, chunk: Chunk | None, *, stays: bool = False
    ) -> Chunk | None:
        """A chunk that is free from `start` to the end of the segment: `chunk`, if it is given.

        Else the one that is free for longest, over as many later uses as could follow without a
        copy: a binary search over them. A value that `stays`, without a copy, may be in `chunk`
        together with what shares its place.
        """
        heap = self.ledger.heap
        if chunk is not None:
            is_free = heap.may_stay if stays else heap.is_free
            fits = chunk.end <= self.limit and is_free(chunk, start, request.end)
            return chunk if fits else None
        times = self._contiguous_uses(request)
        found = None
        first, behind = 0, len(times)
        while first < behind:
            middle = (first + behind) // 2 if found is not None else first
            offset = heap.best_offset(request.size, start, times[middle])
            if offset + request.size <= self.limit:
                found, first = offset, middle + 1
            else:
                behind = middle
        return None if found is None else Chunk(found, request.size)

    def _contiguous_uses(self, request: Request) -> list[int]:
        """The end of the segment and the later uses that can each follow without a copy."""
        times = request.all_use_times
        found = [request.end]
        for position in range(bisect_right(times, request.end), len(times)):
            time = times[position]
            if not self.picker.fits_without_copy(request.size, found[-1], time):
                break
            found.append(time)
        return found

    def room(self, request: Request, start: int, end: int) -> Chunk:
        chunk = Chunk(self.ledger.heap.best_offset(request.size, start, end), request.size)
        if chunk.end > self.limit:
            raise GivenUp(Reason.NO_ROOM)
        return chunk

    def evict(self, request: Request, last: Allocation) -> Allocation:
        chunk, start = last.chunk, last.start
        assert chunk is not None
        heap = self.ledger.heap
        preferred = self.picker.preferred_eviction_end(request.size, start, request.end)
        end = min(max(preferred, last.end), request.latest_prefetch)
        while end > last.end and not heap.is_free(chunk, last.end + 1, end):
            end -= 1
        end = max(end, last.end)
        if end == start or not self._may_evict(request, start, end):
            shorter = (t for t in range(start + 1, end) if self._may_evict(request, start, t))
            end = next(shorter, start)
            if end == start:
                raise GivenUp(Reason.OUTSTANDING)
        if end > last.end:
            self.ledger.take(chunk, last.end + 1, end)
            last.extend(end)
        seconds = 0.0 if request.is_last_try else self._copy_seconds(request)
        return self._add_copy(request, last, None, start, end, end, seconds=seconds)

    def _may_evict(self, request: Request, start: int, end: int) -> bool:
        limit, evictions = self.options.max_outstanding_evictions, self.ledger.evictions
        if limit >= 0 and evictions.outstanding.overlapping(start + 1, end) >= limit:
            return False
        seconds = 0.0 if request.is_last_try else self._copy_seconds(request)
        return evictions.resource.has_enough(start, end, seconds)

    def evict_at_once(self, request: Request, last: Allocation) -> Allocation:
        """Copy the value out before the time that follows its stay, when its place is free."""
        end = last.end + 1
        return self._add_copy(request, last, None, last.end, end, end, seconds=0)

    def load_at_once(
        self, request: Request, source: Allocation, at_end: Requirement | None
    ) -> None:
        """Copy the value in right before its use."""
        wanted = request.preferred_chunk or (at_end and at_end.chunk)
        done = request.latest_prefetch
        chunk = self.find(request, done, wanted)
        if chunk is None:
            raise GivenUp(Reason.NO_ROOM)
        self.ledger.take(chunk, done, request.end, copied=True)
        made = self._add_copy(request, source, chunk, done - 1, done, request.end, seconds=0)
        made.uses.append(request.site.use)

    def prefetch(self, request: Request, source: Allocation, at_end: Requirement | None) -> Reason:
        """Load the value for its use; the reasons why that does not go, none if it does."""
        wanted = request.preferred_chunk or (at_end and at_end.chunk)
        earliest, end = source.available, request.latest_prefetch
        if request.earliest_prefetch is not None:
            earliest = max(earliest, request.earliest_prefetch)
        place = request.site.place
        preferred = request.preferred_prefetch
        if preferred is None:
            preferred = self.preferred.of(place, request.size, earliest, end)
        if preferred is None and self.options.use_repeated_instance_for_preferred_prefetch_time:
            distance = self.distances.get(_instance(place))
            preferred = None if distance is None else end - distance
        seconds = self._copy_seconds(request) if preferred is None else 0.0
        if earliest >= end or (preferred is not None and preferred >= end):
            return Reason.TOO_SHORT
        reasons = Reason.NONE
        slices = self.slicer.propose(self.program.shape(request.owner.position), request.size)
        for start in self.picker.starts(request.size, place, earliest, end, preferred):
            if not slices:
                break
            if self._prefetch_in_slices(request, source, slices, start, wanted):
                return Reason.NONE
        for start in self.picker.starts(request.size, place, earliest, end, preferred):
            refused = self._refusal(request, start, end, seconds)
            if refused:
                reasons |= refused
                continue
            chunk = self.find(request, start + 1, wanted)
            if chunk is None:
                reasons |= Reason.NO_ROOM
                continue
            self.ledger.take(chunk, start + 1, request.end, copied=True)
            made = self._add_copy(request, source, chunk, start, end, request.end, seconds=seconds)
            made.uses.append(request.site.use)
            self.distances[_instance(place)] = end - start
            return Reason.NONE
        return reasons or Reason.TOO_SHORT

    def _prefetch_in_slices(
        self,
        request: Request,
        source: Allocation,
        slices: Sequence[ProposedSlice],
        start: int,
        wanted: Chunk | None,
    ) -> bool:
        """Prefetch the value slice by slice, the first one after `start`; whether that goes."""
        end, heap = request.latest_prefetch, self.ledger.heap
        seconds = _SLICES_COST_MORE * self._copy_seconds(request)
        for timed in self.slicer.timed(slices, start, end):
            copies = [
                (one.start_after, end, seconds * one.part.size / request.size) for one in timed
            ]
            if any(self._refusal(request, *copy) for copy in copies):
                continue
            if not self.ledger.prefetches.resource.has_enough_together(copies):
                continue
            last = max(one.start_after for one in timed)
            chunk = wanted or self.find(request, last + 1, None)
            if chunk is None or not fits(heap, chunk, timed, request.end):
                chunk = wanted or self.find(request, start + 1, None)
                if chunk is None or not fits(heap, chunk, timed, request.end):
                    continue
            for one, (after, _, needed) in zip(timed, copies, strict=True):
                self.ledger.take(chunk, after + 1, request.end, one.part, copied=True)
                self.ledger.add_copy(after, end, needed, out=False)
            made = self._append_copy(request, source, chunk, start, end, request.end)
            made.slices = timed
            made.uses.append(request.site.use)
            return True
        return False

    def convert(
        self,
        request: Request,
        plan: PlannedConversion,
        source: Allocation,
        required: Chunk | None,
    ) -> Reason:
        """Load the result of an operation on a value in default memory, into `required` if given.

        Raises NotConverted where there is no time or no room.
        """
        result = plan.result
        earliest, end = max(source.available, plan.earliest), plan.done_before
        wanted = Request(result, result.uses[0], earliest, end, request.all_use_times)
        wanted.extra_outstanding = self.options.extend_async_copies_limit_for_sync_mem_op_conversion
        reasons = Reason.TOO_SHORT
        if earliest < end:
            seconds = self._copy_seconds(wanted)
            for start in self.picker.starts(result.size, wanted.site.place, earliest, end):
                refused = self._refusal(wanted, start, end, seconds)
                chunk = None if refused else self.find(wanted, start + 1, required)
                if chunk is None:
                    reasons |= refused or Reason.NO_ROOM
                    continue
                self.ledger.take(chunk, start + 1, plan.end, copied=True)
                made = self._add_copy(wanted, source, chunk, start, end, plan.end, seconds=seconds)
                made.operation = plan.conversion.operation
                source.extend(end)
                return Reason.NONE
        raise NotConverted(plan.conversion, reasons)

    def _refusal(self, request: Request, start: int, end: int, seconds: float) -> Reason:
        """The reason why a prefetch may not run from `start` to `end`, if there is one."""
        options, prefetches = self.options, self.ledger.prefetches
        if options.enforce_prefetch_fifo_order and self.ledger.ordering.violates(start, end):
            return Reason.FIFO
        limit = options.max_outstanding_prefetches
        if limit >= 0:
            limit += request.extra_outstanding
            if prefetches.outstanding.overlapping(start + 1, end) >= limit:
                return Reason.OUTSTANDING
        if not prefetches.resource.has_enough(start, end, seconds):
            return Reason.BANDWIDTH
        return Reason.NONE

    def _copy_seconds(self, request: Request) -> float:
        if self.costs is None:
            return WITHOUT_COSTS
        return self.costs.copy_seconds(request.size)

    def _add_copy(
        self,
        request: Request,
        source: Allocation,
        chunk: Chunk | None,
        start: int,
        done: int,
        end: int,
        *,
        seconds: float,
    ) -> CopyAllocation:
        self.ledger.add_copy(start, done, seconds, out=chunk is None)
        return self._append_copy(request, source, chunk, start, done, end)

    def _append_copy(
        self,
        request: Request,
        source: Allocation,
        chunk: Chunk | None,
        start: int,
        done: int,
        end: int,
    ) -> CopyAllocation:
        made = CopyAllocation(
            request.owner.position,
            chunk,
            start,
            end,
            source=source,
            start_after=start,
            done_before=done,
        )
        request.owner.sequence.append(made)
        return made


def _instance(use: UseSite) -> Hashable:
    """A key that uses share which read the same in equal instructions."""
    user = use.instruction
    shapes = (user.shape, *(operand.shape for operand in user.operands))
    return user.opcode, shapes, user.attribute_text, use.operand, use.index
