"""The work that neither feeds nor needs an operation, and when streams are full."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hloopt.ir import Instruction
from hloopt.ir.ordering import dependencies
from hloopt.simulation.execution import ComputationRun
from hloopt.simulation.operations import Operation, Stream

Positions = npt.NDArray[np.intp]
Times = npt.NDArray[np.float64]


class IndependentWork:
    """The work of a run that operations neither wait for nor are waited for by, by position."""

    def __init__(
        self,
        run: ComputationRun,
        times: Sequence[float],
        operations: Sequence[Operation],
        hazards: Iterable[tuple[Instruction, Instruction]],
    ) -> None:
        """`times`: of the work at each position. O(edges · operations / 64)."""
        related = _related(run, operations, hazards)
        self.positions = np.flatnonzero(np.array(times) > 0)
        """The positions of work."""
        width = (len(operations) + 7) // 8
        packed = b"".join(
            related[position].to_bytes(width, "little") for position in self.positions
        )
        self._related = np.frombuffer(packed, np.uint8).reshape(len(self.positions), width)

    def of(self, number: int) -> Positions:
        """The positions of work that is independent of operation `number`. O(work)."""
        byte, bit = divmod(number, 8)
        is_related = (self._related[:, byte] >> bit & 1).astype(bool)
        independent: Positions = self.positions[~is_related]
        return independent


def _related(
    run: ComputationRun,
    operations: Sequence[Operation],
    hazards: Iterable[tuple[Instruction, Instruction]],
) -> list[int]:
    """By position the operations, as a bit set, that an instruction feeds or needs."""
    own: dict[Instruction, int] = {}
    for number, operation in enumerate(operations):
        for instruction in (operation.start, operation.done):
            own[instruction] = own.get(instruction, 0) | 1 << number
    before = {instruction: dependencies(instruction) for instruction in run.order}
    positions = run.positions
    for earlier, later in hazards:
        if positions[earlier] < positions[later]:  # else a copy is to come between them
            before[later] = (*before[later], earlier)
    needs: dict[Instruction, int] = {}
    for instruction in run.order:
        bits = own.get(instruction, 0)
        for source in before[instruction]:
            bits |= needs[source]
        needs[instruction] = bits
    feeds = dict(own)
    result: list[int] = []
    for instruction in reversed(run.order):
        bits = feeds.get(instruction, 0)
        result.append(bits | needs[instruction])
        if bits:
            for source in before[instruction]:
                feeds[source] = feeds.get(source, 0) | bits
    result.reverse()
    return result


def full_shares(run: ComputationRun, stream: Stream) -> Times:
    """By position for how much of an instruction's time a stream is full."""
    shares = np.zeros(len(run.order))
    for first, last in _full_times(run, stream):
        position = bisect_right(run.end, first)
        while position < len(shares) and run.begin[position] < last:
            begin, end = run.begin[position], run.end[position]
            if end > begin:
                shares[position] += (min(end, last) - max(begin, first)) / (end - begin)
            position += 1
    return shares


def _full_times(run: ComputationRun, stream: Stream) -> Iterator[tuple[float, float]]:
    """From when to when a stream takes no further operation, in order."""
    own = [operation for operation in run.operations if operation.stream is stream]
    if stream.limit is None:
        return
    changes = [(operation.begin, 1) for operation in own]
    changes += [(operation.finish, -1) for operation in own]
    count, since = 0, 0.0
    for time, change in sorted(changes):
        if count + change >= stream.limit > count:
            since = time
        elif count >= stream.limit > count + change:
            yield since, time
        count += change
