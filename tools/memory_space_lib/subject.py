"""One result of the pass, with what all laws need to know of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.opcode import STARTS
from hloopt.ir.shapes.leaves import index_range, leaf_count
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.passes.memory_space.report import MemorySpaceReport
from memory_space_lib.faults import Fault
from memory_space_lib.liveness import Liveness, is_custom
from memory_space_lib.sharing import Sharing
from memory_space_lib.timeline import Timeline

_CROSS_PROGRAM = "cross_program_prefetch_index"


@dataclass(frozen=True)
class Subject:
    """A module before and after the pass, with the options and the report."""

    before: Module
    line: Timeline
    options: MemorySpaceOptions
    report: MemorySpaceReport

    @property
    def space(self) -> int:
        """The number of alternate memory."""
        return self.options.alternate_memory_space

    @cached_property
    def sharing(self) -> Sharing:
        """The values and places of the result."""
        return Sharing(self.line)

    @cached_property
    def live(self) -> Liveness:
        """The times of the result's values.

        What window prefetches make needs its place when it is read, unless they run before.
        """
        late = {}
        if self.options.window_prefetch_mode == "exposure":
            for step in self.line.steps:
                if is_custom(step, "WindowPrefetch"):
                    late[step] = min(self.line.time[user] for user in step.users)
        return Liveness(self.sharing, late=late)

    @cached_property
    def old(self) -> dict[str, Instruction]:
        """The instructions of the module before, by name."""
        return {i.name: i for c in self.before.computations.values() for i in c.instructions}

    def space_of(self, position: int) -> int:
        """The memory space of a position, by its layout."""
        return self.line.shapes[position].layout.memory_space

    @cached_property
    def chunks(self) -> dict[int, tuple[int, int]]:
        """Offset and size by place: those of the first chunk that is reported of it."""
        found: dict[int, tuple[int, int]] = {}
        for chunk in self.report.chunks:
            if chunk.instruction in self.line.base:
                leaf = index_range(chunk.instruction.shape, chunk.index).start
                position = self.line.base[chunk.instruction] + leaf
                place = self.sharing.places.find(position)
                found.setdefault(place, (chunk.offset, chunk.size))
        return found

    @cached_property
    def colored_before(self) -> set[int]:
        """The places of which a position was in alternate memory before the pass."""
        found = set()
        for instruction in self.line.steps:
            old = self.old.get(instruction.name)
            if old is None or leaf_count(old.shape) != leaf_count(instruction.shape):
                continue
            pairs = zip(self.line.positions(instruction), old.shape.leaves(), strict=True)
            for position, leaf in pairs:
                if leaf.layout.memory_space == self.space:
                    found.add(self.sharing.places.find(position))
        return found

    def new_starts(self) -> Iterator[Instruction]:
        """Starts of copies and of other asynchronous operations that the pass made."""
        for step in self.line.steps:
            is_new = step.name not in self.old or self.old[step.name].opcode is not step.opcode
            if is_new and step.opcode in STARTS:
                yield step


Faults = Iterator[Fault]
"""The faults that a law finds."""


def is_for_next_run(step: Instruction) -> bool:
    """Whether a copy-start loads a parameter for the program rather than in it."""
    return step.opcode is Opcode.COPY_START and step.attribute(_CROSS_PROGRAM) is not None
