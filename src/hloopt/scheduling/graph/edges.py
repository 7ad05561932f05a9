"""Edges of a schedule graph that are neither operands nor control dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.reachability import Reachability
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.memory.buffers import Buffer, Buffers

_Readers: TypeAlias = dict[Computation, list[tuple[int, Instruction]]]
Edge = tuple[Instruction, Instruction]
"""Two instructions, the one that comes first before the other."""


@dataclass(slots=True)
class BufferHazards:
    """The instructions that have to be done with a buffer before an operation changes it while
    others run."""

    flow: Dataflow
    buffers: Buffers
    _reachability: dict[Computation, Reachability] = field(default_factory=dict)
    _readers: dict[Buffer, _Readers] = field(default_factory=dict)

    def edges(self, done: Instruction, found: list[Edge]) -> Iterator[Edge]:
        """The readers of values that lie where a done's result lies, each before the start.

        Those that need the result are no such readers: they come after the done. `found` are
        the edges of the computation so far, with which new ones must not make a cycle: XLA:GPU
        lets some do so, and dies ("Not all instructions have been scheduled"). O(uses of the
        buffer's values in the computation · edges found), and once O(uses of them all).
        """
        flow = self.flow
        start = _start_of(done)
        buffers = [self.buffers.of_value[value] for value in flow.members(flow.held[done][:1])]
        readers = [
            reader
            for buffer in buffers
            if not all(self._is_made_by(start, done, value) for value in buffer.values)
            for value, reader in self._readers_of(buffer, done.parent)
            if reader is not start and not self._is_made_by(start, done, value)
        ]
        if not readers:
            return
        reachability = self.reachability(done.parent)
        for reader in readers:
            if not reachability.reachable(done, reader) and not _precedes(
                start, reader, found, reachability
            ):
                yield reader, start

    def _is_made_by(self, start: Instruction, done: Instruction, value: int) -> bool:
        """Whether an operation makes a value, so that what reads it comes after the operation.

        What start makes may be read before it where a computation is called several times: its
        results may come back to it as parameters.
        """
        maker = self.flow.definer[value]
        if maker is done:
            return True
        is_of_start = maker is start or [*maker.parent.callers] == [start]
        return is_of_start and not self.flow.unions

    def _readers_of(
        self, buffer: Buffer, computation: Computation
    ) -> Sequence[tuple[int, Instruction]]:
        """The values of a buffer with each that reads them in a computation, tokens aside.

        O(uses of its values), once: those of a nest of loops lie in one buffer.
        """
        found = self._readers.get(buffer)
        if found is None:
            found = self._readers[buffer] = {}
            for value in buffer.values:
                for use in self.flow.uses(value):
                    if not use.user.operands[use.operand].shape.is_token:
                        found.setdefault(use.user.parent, []).append((value, use.user))
        return found.get(computation, ())

    def reachability(self, computation: Computation) -> Reachability:
        """The paths of a computation. O(edges), once."""
        found = self._reachability.get(computation)
        if found is None:
            found = self._reachability[computation] = Reachability(computation)
        return found


def _precedes(
    start: Instruction, reader: Instruction, added: list[Edge], paths: Reachability
) -> bool:
    """Whether a start is before a reader, by paths that may use added edges. O(added²)."""
    waiting = added
    stack = [start]
    while stack:
        before = stack.pop()
        if paths.reachable(before, reader):
            return True
        rest: list[Edge] = []
        for edge in waiting:
            if paths.reachable(before, edge[0]):
                stack.append(edge[1])
            else:
                rest.append(edge)
        waiting = rest
    return False


def _start_of(done: Instruction) -> Instruction:
    if done.opcode is Opcode.ASYNC_DONE:
        return async_start_of(done)
    return done.operands[0]


@dataclass(slots=True)
class TransferLoops:
    """Loops between a transfer that ended before them and one that goes on after them."""

    hazards: BufferHazards
    order: list[Instruction]
    _loops: list[Instruction] | None = None
    """Found for the first send-done: few computations have one."""

    def edges(self, instruction: Instruction, *, top_down: bool) -> Iterator[Edge]:
        """The edges between a send-done and loops: it comes before the first loop that follows the
        receive it waited for; scheduled top down, a receive after it begins after the loop."""
        if instruction.opcode is not Opcode.SEND_DONE:
            return
        if self._loops is None:
            self._loops = [i for i in self.order if i.opcode is Opcode.WHILE]
        loops = self._loops
        if not loops:
            return
        paths = self.hazards.reachability(instruction.parent)
        received = next(
            (p for p in instruction.control_predecessors if p.opcode is Opcode.RECV_DONE), None
        )
        if received is not None:
            loop = next((w for w in loops if paths.reachable(received, w)), None)
            if loop is not None:
                yield instruction, loop
        if top_down:
            for loop in loops:
                if paths.reachable(loop, instruction):
                    for after in instruction.control_successors:
                        if after.opcode is Opcode.RECV_DONE:
                            yield loop, after.operands[0]
