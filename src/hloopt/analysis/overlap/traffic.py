"""The collectives of a computation: what they move, and how long that takes at best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.async_operations import (
    OWN_STARTS,
    SYNC_COLLECTIVES,
    is_host_transfer,
    wrapped,
)
from hloopt.ir.collective_devices import group_sizes
from hloopt.ir.computation import Computation
from hloopt.ir.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape import Shape
from hloopt.ir.shape_size import shape_bytes
from hloopt.targets import Target

_DONES = frozenset(
    (
        *(Opcode.ALL_REDUCE_DONE, Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
        *(Opcode.ASYNC_DONE, Opcode.RECV_DONE),
    )
)
_POINT_TO_POINT = frozenset((Opcode.COLLECTIVE_PERMUTE, Opcode.RECV, Opcode.COLLECTIVE_BROADCAST))


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """One collective, or the receiving half of a transfer between two devices."""

    opcode: Opcode
    """What is done, in one piece or asynchronously: all-gather, recv …"""
    start: Instruction
    done: Instruction | None
    """`start` itself for one in one piece; None where something outside the computation waits."""
    byte_count: int
    """Of the larger side: gathered, before it is reduced or scattered, or passed on."""
    seconds: float
    """On the fastest link, bandwidth alone."""

    @property
    def is_asynchronous(self) -> bool:
        return self.done is not self.start


def transfers(computation: Computation, grid: Grid, target: Target) -> Iterator[Transfer]:
    """The collectives of a computation between devices, calls not looked into. O(instructions).

    A ring over the fastest link of the target, one direction of it: each device sends and
    receives (n-1)/n of the bytes in a group of n, an all-reduce twice that, a permute or transfer
    all of them. Without links, or in groups of one, it takes no time.
    """
    bandwidth = max((link.bandwidth for link in target.links), default=0.0) / 2
    for start in computation.instructions:
        operation = _operation(start)
        if operation is None:
            continue
        opcode = OWN_STARTS.get(operation.opcode, operation.opcode)
        size = max(_bytes(operation.shape), sum(_bytes(o.shape) for o in operation.operands))
        if operation.opcode in OWN_STARTS or opcode is Opcode.RECV:
            size = _bytes_of_start(operation)
        largest = max(group_sizes(operation, grid), default=1)
        sent = _sent(opcode, size, largest)
        seconds = sent / bandwidth if bandwidth else 0.0
        yield Transfer(opcode, start, _done(start), size, seconds)


def _operation(start: Instruction) -> Instruction | None:
    """The instruction that says what a collective does; None for what is none."""
    opcode = start.opcode
    if opcode in SYNC_COLLECTIVES or (opcode in OWN_STARTS and opcode is not Opcode.COPY_START):
        return start
    if opcode is Opcode.RECV:
        return None if is_host_transfer(start) else start
    if opcode is Opcode.ASYNC_START and wrapped(start).opcode in SYNC_COLLECTIVES:
        return wrapped(start)
    return None


def _done(start: Instruction) -> Instruction | None:
    if start.opcode in SYNC_COLLECTIVES:
        return start
    waiting = [start]
    for instruction in waiting:  # grows by the updates in between
        for user in instruction.users:
            if user.opcode in _DONES:
                return user
            if user.opcode is Opcode.ASYNC_UPDATE:
                waiting.append(user)
    return None


def _bytes_of_start(start: Instruction) -> int:
    """Of the larger of operands and result, which the shape of most starts lists side by side."""
    if start.opcode is Opcode.ALL_REDUCE_START:
        return _bytes(start.shape)
    return max(map(_bytes, start.shape.elements[:2]))


def _bytes(shape: Shape) -> int:
    return sum(map(shape_bytes, shape.leaves()))


def _sent(opcode: Opcode, size: int, group_size: int) -> float:
    """Bytes that each device sends for a collective of `size` bytes in groups of `group_size`."""
    if group_size < 2:
        return 0.0
    if opcode in _POINT_TO_POINT:
        return float(size)
    rounds = 2 if opcode is Opcode.ALL_REDUCE else 1
    return rounds * size * (group_size - 1) / group_size
