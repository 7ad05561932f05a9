"""The number of devices that take part in operations."""

from __future__ import annotations

from hloopt.analysis.async_operations import wrapped
from hloopt.ir import Opcode
from hloopt.ir.devices.collective_devices import group_sizes
from hloopt.ir.devices.grid import Grid
from hloopt.ir.opcode import COLLECTIVES
from hloopt.simulation import Operation


def group_size(operation: Operation, grid: Grid) -> int | None:
    """The number of devices of a program that meet in a collective, where most do; None for
    other operations. O(groups that are listed, or pairs)."""
    start = operation.start
    collective = wrapped(start) if start.opcode is Opcode.ASYNC_START else start
    if collective.opcode not in COLLECTIVES:
        return None
    return max(group_sizes(collective, grid), default=0)
