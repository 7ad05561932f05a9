"""The values, on each device, of scalars that depend on the device's own number alone."""

from __future__ import annotations

from collections.abc import Hashable

from hloopt.analysis.loops.expressions import Expression
from hloopt.analysis.loops.sources import Source, source_of
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_INTEGERS = ("signed", "unsigned", "pred")
_MOST_DEVICES = 1 << 12
"""On how many devices values are computed at most."""
_LARGEST_TABLE = 1 << 16
_MOST_STEPS = 64


class DeviceValues:
    """Values of scalar integers on all devices of a grid, equal ones computed once."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._known: dict[Hashable, list[int] | None] = {}

    def of(self, value: Instruction) -> list[int] | None:
        """The value of an integer or pred scalar on each device, by device number.

        None for other shapes, and if it depends on more than device ids and constants.
        O(devices · instructions it is computed from), or without devices if an equal value is
        known.
        """
        element = value.shape.element_type
        if element is None or element.kind not in _INTEGERS or not value.shape.is_scalar:
            return None
        if self._grid.device_count > _MOST_DEVICES:
            return None
        numbers = _own_numbers(value)
        expression = Expression.of(value, numbers, most_elements=_LARGEST_TABLE)
        if expression is None:
            return None
        opcodes = tuple(number.instruction.opcode for number in numbers)
        key = (opcodes, expression.key)
        if key not in self._known:
            self._known[key] = self._compute(expression, opcodes)
        return self._known[key]

    def _compute(self, expression: Expression, numbers: tuple[Opcode, ...]) -> list[int] | None:
        known: dict[tuple[int, ...], int] = {}
        found: list[int] = []
        for device in range(self._grid.device_count):
            replica, partition = divmod(device, self._grid.partitions)
            given = tuple(replica if n is Opcode.REPLICA_ID else partition for n in numbers)
            if given not in known:
                result = expression.evaluate(*given)
                if result is None:
                    return None
                known[given] = result
            found.append(known[given])
        return found


def _own_numbers(value: Instruction) -> list[Source]:
    """The partition-ids and replica-ids that a value is computed from."""
    seen = {source_of(value): None}
    stack = list(seen)
    while stack and len(seen) <= _MOST_STEPS:
        for operand in stack.pop().instruction.operands:
            source = source_of(operand)
            if source not in seen:
                seen[source] = None
                stack.append(source)
    own = (Opcode.PARTITION_ID, Opcode.REPLICA_ID)
    return [source for source in seen if source.instruction.opcode in own]
