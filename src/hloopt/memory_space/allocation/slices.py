"""Prefetches in slices, each of which takes its part of the chunk from its own start on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation
from hloopt.ir.shapes.shape import Shape, array_shape, format_shape
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.memory_space.costs.pickers import PrefetchIntervalPicker
from hloopt.memory_space.costs.slice_times import pick_slice_starts, slice_time_permutations
from hloopt.memory_space.heap.chunks import Chunk, ChunkHeap, Part
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import Program


class ProposedSlice(NamedTuple):
    """A slice of an array, and which part of it that is."""

    shape: Shape
    bounds: tuple[tuple[int, int], ...]
    """First and limit of each dimension; of bytes, where the slices are of `s8`."""

    @property
    def size(self) -> int:
        assert self.shape.element_type is not None
        return self.shape.element_count() * self.shape.element_type.bits // 8


class TimedSlice(NamedTuple):
    """A slice with its part of the chunk and the time after which its copy starts."""

    slice: ProposedSlice
    part: Part
    start_after: int


@dataclass(slots=True)
class Slicer:
    """Proposes slices of arrays, and times at which they may be copied."""

    program: Program
    options: MemorySpaceOptions
    picker: PrefetchIntervalPicker

    def propose(self, shape: Shape, size: int) -> list[ProposedSlice]:
        """The slices of an array in the order of memory; none where it is copied as a whole.

        Raises PassRefused for a proposal that does not make up the array.
        """
        settings = self.options.sliced_prefetch_options
        if settings.max_slices < 2 or size < settings.min_bytes:
            return []
        proposals = self.options.slice_proposals or {}
        found = proposals.get(format_shape(shape, layout=False))
        if found is None:
            return self._equal_slices(shape, size)
        if not isinstance(found, Sequence) or isinstance(found, str):
            return []
        slices = [
            ProposedSlice(
                parse_shape(words["shape"]), tuple((low, high) for low, high in words["slice"])
            )
            for words in found
        ]
        if sum(one.size for one in slices) != size:
            raise PassRefused(
                f"the slices proposed for {format_shape(shape, layout=False)} do not make it up",
                help="give slice_proposals that have as many bytes together as the array",
            )
        return slices if len(slices) <= settings.max_slices else []

    def _equal_slices(self, shape: Shape, size: int) -> list[ProposedSlice]:
        """Slices of the preferred size, by bytes; the last has what is left."""
        settings = self.options.sliced_prefetch_options
        step, element = settings.preferred_slice_size, shape.element_type
        is_padded = element is None or shape.element_count() * element.bits != 8 * size
        if step == 0 or is_padded or not 1 < -(-size // step) <= settings.max_slices:
            return []
        bounds = [(low, min(low + step, size)) for low in range(0, size, step)]
        return [
            ProposedSlice(array_shape("s8", (high - low,)), ((low, high),)) for low, high in bounds
        ]

    def timed(
        self, slices: Sequence[ProposedSlice], start: int, end: int
    ) -> Iterator[list[TimedSlice]]:
        """The slices with start times, in the orders that are to be tried.

        None where all would start at one time: slices gain nothing then.
        """
        home = self._home(start)
        starts = pick_slice_starts(
            len(slices), start, end, self.picker.elapsed, lambda time: self._home(time) is home
        )
        if starts[0] == starts[-1]:
            return
        most = self.options.sliced_prefetch_options.all_slice_time_permutations_threshold
        for times in slice_time_permutations(starts, every=len(slices) <= most):
            timed, first = [], 0
            for one, time in zip(slices, times, strict=True):
                timed.append(TimedSlice(one, Part(first, one.size), time))
                first += one.size
            yield timed

    def _home(self, time: int) -> Computation | None:
        """The computation that copies after a time are in."""
        steps = self.program.schedule.steps
        return steps[max(time, 0)].parent if steps else None


def fits(heap: ChunkHeap, chunk: Chunk, slices: Sequence[TimedSlice], end: int) -> bool:
    """Whether each slice's part of a chunk is free from its start to `end`."""
    return all(heap.is_free(chunk, one.start_after + 1, end, one.part) for one in slices)
