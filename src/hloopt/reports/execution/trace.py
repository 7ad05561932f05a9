"""Values shown while a program runs: those of some instructions, or statistics of all."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.values import Value, arrays_of, type_text
from hloopt.ir.instruction import Instruction
from hloopt.reports.execution.values import JsonRoom, number_text, statistics_of, value_to_json


class Trace:
    """An observer of a run. In loops, an instruction is shown each time it runs."""

    def __init__(
        self,
        names: Collection[str],
        *,
        everything: bool,
        device_count: int,
        show: Callable[[str], object] | None,
        room: JsonRoom,
    ) -> None:
        """`names`: instructions to show in full; `everything`: statistics of all others.

        `show` gets each text at once; without it, `records` are kept instead, as many as there is
        `room` for.
        """
        self._room = room
        self.records: list[dict[str, object]] = []
        self.seen: set[str] = set()
        """The one of `names` that came."""
        self._names = names
        self._everything = everything
        self._has_devices = device_count > 1
        self._show = show
        self._is_first = True

    def __call__(self, device: Device, instruction: Instruction, value: Value) -> None:
        in_full = instruction.name in self._names
        if not (in_full or self._everything):
            return
        if in_full:
            self.seen.add(instruction.name)
        if self._show is None:
            self._room.take(sum(a.size if in_full else 1 for a in arrays_of(value)))
            self.records.append(_record(device, instruction, value, in_full=in_full))
        elif in_full:
            where = f" on device {device.number}" if self._has_devices else ""
            for array in arrays_of(value):
                values = np.array2string(array, separator=", ")
                self._show(f"%{instruction.name}{where}: {type_text(array)}\n{values}")
        else:
            self._show_statistics(device, instruction, value)

    def _show_statistics(self, device: Device, instruction: Instruction, value: Value) -> None:
        assert self._show is not None
        where = f"{device.number:>6} " if self._has_devices else ""
        if self._is_first:
            self._is_first = False
            head = "device " if self._has_devices else ""
            self._show(f"{head}{'instruction':<20} {'type':<13} {_NUMBERS.format(*_HEADS)}")
        for array in arrays_of(value):
            found = statistics_of(array)
            numbers = _NUMBERS.format(*map(number_text, found[:3]), found.nans or "")
            line = f"{where}%{instruction.name:<19} {type_text(array):<13} {numbers}"
            self._show(line.rstrip())


_NUMBERS = "{:>10} {:>10} {:>10} {:>5}"
_HEADS = ("min", "max", "mean", "NaN")


def _record(
    device: Device, instruction: Instruction, value: Value, *, in_full: bool
) -> dict[str, object]:
    arrays = value_to_json(value, in_full=in_full)
    return {"device": device.number, "instruction": instruction.name, "arrays": arrays}
