"""The operations that run beside the main stream, and on what, as a scheduler sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.analysis.async_operations import SYNC_COLLECTIVES, exchanges, wrapped
from hloopt.analysis.gpu_async import is_gpu_begin
from hloopt.ir import Instruction, Opcode
from hloopt.memory.traffic import move_of
from hloopt.patterns import pattern
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.simulation.operations import SYNCHRONOUS, Stream

UNLISTED = Stream("async", None)
"""The stream of operations that use no resource of the scheduler: calls on other threads."""
SLICES = Stream("slice", None)
"""The stream of asynchronous slices from one memory space to another, which no scheduler counts."""

_PREFIX = pattern("^k(GpuAsyncStream)?")
_WORD = pattern(r"(?<=[a-z])(?=[A-Z0-9])")


@dataclass(slots=True)
class Streams:
    """The resources of a scheduler as streams: the limit of each says how much is in flight."""

    tracker: ResourceTracker
    is_limited: bool = True
    """Whether limits count; XLA's figures do without."""
    _streams: dict[int, Stream] = field(default_factory=dict)

    def is_start(self, instruction: Instruction) -> bool:
        """Whether it begins an operation that runs beside others."""
        return self._may_be(instruction) and (
            self.tracker.is_start(instruction) or _moves_slice(instruction, Opcode.ASYNC_START)
        )

    def is_done(self, instruction: Instruction) -> bool:
        """Whether it waits for the end of such an operation."""
        return self._may_be(instruction) and (
            self.tracker.is_done(instruction) or _moves_slice(instruction, Opcode.ASYNC_DONE)
        )

    def is_synchronous(self, instruction: Instruction) -> bool:
        """Whether it is a collective or transfer for all of which the main stream waits, or begins
        one."""
        if instruction.opcode in SYNC_COLLECTIVES:
            return True
        return self._begins_in_main(instruction) and exchanges(instruction)

    def is_whole_work(self, instruction: Instruction) -> bool:
        """Whether it begins other work, a call or a copy, that the main stream does itself."""
        return self._begins_in_main(instruction) and not exchanges(instruction)

    def _begins_in_main(self, instruction: Instruction) -> bool:
        """Whether it begins an operation that no stream runs beside the main one."""
        return (
            self._may_be(instruction)
            and is_gpu_begin(instruction)
            and not self.is_start(instruction)
        )

    def of(self, start: Instruction) -> Stream:
        """The stream of the operation that `start` begins."""
        if self.is_synchronous(start):
            return SYNCHRONOUS
        if _moves_slice(start, Opcode.ASYNC_START):
            return SLICES
        uses = self.tracker.uses(start)
        if not uses:
            return UNLISTED
        number = uses[0][0]
        if number not in self._streams:
            resource = self.tracker.resources[number]
            name = _WORD.sub("-", _PREFIX.sub("", resource.name)).lower()
            self._streams[number] = Stream(name, resource.limit if self.is_limited else None)
        return self._streams[number]

    def _may_be(self, instruction: Instruction) -> bool:
        """A quick no for most."""
        return self.tracker.may_be_asynchronous(instruction.opcode)


def _moves_slice(instruction: Instruction, step: Opcode) -> bool:
    """Whether it is this step of a slice that moves to another memory space."""
    if instruction.opcode is not step:
        return False
    work = wrapped(instruction)
    return work.opcode in (Opcode.SLICE, Opcode.DYNAMIC_SLICE) and move_of(work) is not None
