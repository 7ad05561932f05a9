"""The operations that run beside the main stream, and on what, as a scheduler sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.analysis.async_operations import SYNC_COLLECTIVES, exchanges
from hloopt.analysis.gpu_async import is_gpu_begin
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.memory.backends import Backend, backend_of
from hloopt.memory.traffic import Move, asynchronous_move
from hloopt.patterns import pattern
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.simulation.operations import SYNCHRONOUS, Stream

UNLISTED = Stream("async", None)
"""The stream of operations that use no resource of the scheduler: calls on other threads."""

_PREFIX = pattern("^k(GpuAsyncStream)?")
_WORD = pattern(r"(?<=[a-z])(?=[A-Z0-9])")


@dataclass(slots=True)
class Streams:
    """The resources of a scheduler as streams: the limit of each says how much is in flight.

    Moves between memory spaces, which only XLA:GPU's scheduler counts, have a stream for each pair
    of memories, first in first out, as in XLA's model of them.
    """

    tracker: ResourceTracker
    is_limited: bool = True
    """Whether limits count; XLA's figures do without."""
    _streams: dict[int, Stream] = field(default_factory=dict)
    _backends: dict[Module, Backend] = field(default_factory=dict)

    def is_start(self, instruction: Instruction) -> bool:
        """Whether it begins an operation that runs beside others."""
        return self._may_be(instruction) and (
            self.tracker.is_start(instruction) or self.moves_slice(instruction)
        )

    def is_done(self, instruction: Instruction) -> bool:
        """Whether it waits for the end of such an operation."""
        if not self._may_be(instruction):
            return False
        is_done = instruction.opcode is Opcode.ASYNC_DONE
        return self.tracker.is_done(instruction) or (
            is_done and self.moves_slice(async_start_of(instruction))
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
        if (move := self.move(start)) is not None:
            backend = self._backend(start.parent.module)
            spaces = backend.space_name(move.source), backend.space_name(move.destination)
            return Stream(" to ".join(spaces), 1 if self.is_limited else None, spaces)
        uses = self.tracker.uses(start)
        if not uses:
            return UNLISTED
        number = uses[0][0]
        if number not in self._streams:
            resource = self.tracker.resources[number]
            name = _WORD.sub("-", _PREFIX.sub("", resource.name)).lower()
            self._streams[number] = Stream(name, resource.limit if self.is_limited else None)
        return self._streams[number]

    def move(self, start: Instruction) -> Move | None:
        """The move between memory spaces that has a stream for such moves; None for others."""
        return None if self.tracker.config.preset == "xla-gpu" else asynchronous_move(start)

    def moves_slice(self, instruction: Instruction) -> bool:
        """Whether it begins such a move of a slice, of whose halves no scheduler knows."""
        return instruction.opcode is Opcode.ASYNC_START and self.move(instruction) is not None

    def _backend(self, module: Module) -> Backend:
        if module not in self._backends:
            self._backends[module] = backend_of(module)
        return self._backends[module]

    def _may_be(self, instruction: Instruction) -> bool:
        """A quick no for most."""
        return self.tracker.may_be_asynchronous(instruction.opcode)
