"""What scalars that depend only on a device's own number are on each device."""

from __future__ import annotations

from hloopt.analysis.loops.expressions import Expression
from hloopt.analysis.loops.sources import Source, source_of
from hloopt.ir.collective_devices import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

MOST_DEVICES = 1 << 12
"""On how many devices values are computed at most."""
_LARGEST_TABLE = 1 << 16
_MOST_STEPS = 64


class DeviceValues:
    """Values of scalar integers on all devices of a grid, each computed once.

    They hold as long as nobody changes what they are computed from.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._known: dict[Source, list[int] | None] = {}

    def of(self, value: Instruction) -> list[int] | None:
        """The value on each device, by its number.

        None where it depends on more than partition-id, replica-id and constants. O(devices ·
        instructions it is computed from) the first time.
        """
        source = source_of(value)
        if source not in self._known:
            self._known[source] = self._compute(value)
        return self._known[source]

    def _compute(self, value: Instruction) -> list[int] | None:
        import numpy as np

        if self._grid.device_count > MOST_DEVICES or not value.shape.is_scalar:
            return None
        numbers = _own_numbers(value)
        expression = Expression.of(value, numbers, most_elements=_LARGEST_TABLE)
        if expression is None:
            return None
        known: dict[tuple[int, ...], int] = {}
        found: list[int] = []
        for device in range(self._grid.device_count):
            replica, partition = divmod(device, self._grid.partitions)
            given = tuple(
                replica if number.instruction.opcode is Opcode.REPLICA_ID else partition
                for number in numbers
            )
            if given not in known:
                result = expression.evaluate(*map(np.uint32, given))
                if result is None:
                    return None
                known[given] = int(result)
            found.append(known[given])
        return found


def _own_numbers(value: Instruction) -> list[Source]:
    """The partition-ids and replica-ids that a value is computed from."""
    seen = {source_of(value)}
    stack = list(seen)
    while stack and len(seen) <= _MOST_STEPS:
        for operand in stack.pop().instruction.operands:
            source = source_of(operand)
            if source not in seen:
                seen.add(source)
                stack.append(source)
    own = (Opcode.PARTITION_ID, Opcode.REPLICA_ID)
    return [source for source in seen if source.instruction.opcode in own]
