"""The values of two runs, side by side, without keeping all of them.

The first program runs and keeps values up to a size; the second one runs and is compared with
them; then both run again for the values behind. Memory is bounded, whatever programs compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from hloopt.equivalence.numerics.arrays import error_of
from hloopt.equivalence.numerics.findings import ArrayError
from hloopt.interpreter.evaluation import Device, Observer
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

Watched: TypeAlias = Callable[[Observer], object]
"""Runs a program with an observer."""
Key: TypeAlias = tuple[int, Instruction, int]
"""A device, an instruction of the first program, its how-manieth run there."""
Report: TypeAlias = Callable[[Key, "ArrayError | None"], object]

HANDED_ON = frozenset(
    (
        *(Opcode.TUPLE, Opcode.PARAMETER, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER),
        *(Opcode.ADD_DEPENDENCY, Opcode.DOMAIN),
    )
)
"""Operations whose tuples have only what other instructions made."""


def compare_runs(
    partners: Mapping[Instruction, Instruction],
    before: Watched,
    after: Watched,
    room: int,
    report: Report,
) -> tuple[Counter[Instruction], Counter[Instruction]]:
    """Compare the values of all pairs of instructions, in the order the second program runs in.

    `room` is how many bytes of values are kept at a time. Returns how often the instructions of
    each ran, over all devices. Raises RunError.
    """
    origins = {new: old for old, new in partners.items()}
    start = 0
    while True:
        keeper = _Keeper(partners, start, room)
        before(keeper.keep)
        follower = _Follower(origins, keeper.kept, report)
        after(follower.compare)
        if keeper.end is None:
            return keeper.ran(), follower.ran()
        start = keeper.end


class _Visits:
    """Counts how often each device ran each instruction."""

    def __init__(self) -> None:
        self._visits: Counter[tuple[int, Instruction]] = Counter()

    def next_of(self, device: Device, instruction: Instruction) -> int:
        """The number of the run that just ended, from 0."""
        key = device.number, instruction
        self._visits[key] += 1
        return self._visits[key] - 1

    def ran(self) -> Counter[Instruction]:
        """Runs by instruction, over all devices."""
        found: Counter[Instruction] = Counter()
        for (_, instruction), count in self._visits.items():
            found[instruction] += count
        return found


class _Keeper(_Visits):
    """Keeps the values of a run, from the one with the number `start` on."""

    def __init__(self, partners: Mapping[Instruction, Instruction], start: int, room: int) -> None:
        super().__init__()
        self._partners = partners
        self._start = start
        self._room = room
        self._number = 0
        self.kept: dict[Key, Value] = {}
        self.end: int | None = None
        """The number of the first value behind those that are kept; None for the last."""

    def keep(self, device: Device, instruction: Instruction, value: Value) -> None:
        visit = self.next_of(device, instruction)
        if instruction not in self._partners or _is_handed_on(instruction, value):
            return
        number, self._number = self._number, self._number + 1
        if number < self._start or self.end is not None:
            return
        if self._room <= 0 and self.kept:
            self.end = number
            return
        self.kept[device.number, instruction, visit] = value
        self._room -= sum(array.nbytes for array in arrays_of(value))


class _Follower(_Visits):
    """Compares the values of a run with those that are kept of another one."""

    def __init__(
        self, origins: Mapping[Instruction, Instruction], kept: dict[Key, Value], report: Report
    ) -> None:
        super().__init__()
        self._origins = origins
        self._kept = kept
        self._report = report

    def compare(self, device: Device, instruction: Instruction, value: Value) -> None:
        visit = self.next_of(device, instruction)
        origin = self._origins.get(instruction)
        key = (device.number, origin, visit) if origin is not None else None
        if key is not None and key in self._kept:
            self._report(key, error_of(self._kept.pop(key), value))


def _is_handed_on(instruction: Instruction, value: Value) -> bool:
    return value is None or (isinstance(value, tuple) and instruction.opcode in HANDED_ON)
