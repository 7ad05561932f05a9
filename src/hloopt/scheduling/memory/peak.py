"""The buffers alive where a schedule needs most memory, reckoned as while it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hloopt.diagnostics import counted
from hloopt.ir import Computation, Instruction
from hloopt.scheduling.memory.pressure import BufferLife, Pressure

_SHOWN = 5


class LiveBuffer(NamedTuple):
    """Memory in use at the peak."""

    instruction: Instruction
    """The instruction at which it begins."""
    until: Instruction | None
    """The last to read it, up to where it lives."""
    size: int


@dataclass(frozen=True, slots=True)
class Peak:
    """The point of a module's schedule that needs most memory. Sizes are in bytes."""

    at: Instruction
    size: int
    buffers: tuple[LiveBuffer, ...]
    """The largest first."""

    @classmethod
    def of(cls, life: BufferLife) -> Peak:
        """The peak of the schedule that `life` has looked at. O(buffers of all instructions)."""
        at, callee = _highest(life, life.flow.module.entry, set())
        below = _alive_below(life, at, set())
        while callee is not None:
            at, callee = _highest(life, callee, below)
            below = _alive_below(life, at, below)
        alive = below | set(life.allocated(at))
        buffers = sorted(alive, key=lambda buffer: (-life.size[buffer], buffer))
        return cls(
            at,
            sum(life.size[buffer] for buffer in buffers),
            tuple(
                LiveBuffer(life.first_definition(b), life.last_user(b), life.size[b])
                for b in buffers
            ),
        )

    def largest(self) -> str:
        """The largest buffers in one line: what they are, how large, and who keeps them alive."""
        shown = ", ".join(
            f"%{buffer.instruction.name} ({counted(buffer.size, 'byte')}"
            + (f", until %{buffer.until.name})" if buffer.until is not None else ")")
            for buffer in self.buffers[:_SHOWN]
        )
        more = len(self.buffers) - _SHOWN
        return shown if more <= 0 else f"{shown} and {more:,} smaller"


def _highest(
    life: BufferLife, computation: Computation, kept: set[int]
) -> tuple[Instruction, Computation | None]:
    """The instruction at which a computation needs most, and the callee if it is inside of one.

    `kept`: the buffers that callers keep alive.
    """
    pressure = Pressure(life, kept)
    highest = -1
    found: tuple[Instruction, Computation | None] | None = None
    for instruction in reversed(list(computation.instructions)):
        inside = life.peak_inside(instruction)
        if inside and pressure.change + inside > highest:
            highest = pressure.change + inside
            callees = [c for c in instruction.called if c in life.states]
            found = instruction, max(callees, key=lambda c: life.states[c].peak)
        pressure.peak = 0
        pressure.move(life.allocated(instruction), life.released(instruction), 0)
        if pressure.peak > highest:
            highest = pressure.peak
            found = instruction, None
    assert found is not None
    return found


def _alive_below(life: BufferLife, at: Instruction, kept: set[int]) -> set[int]:
    """The buffers alive after an instruction, with those that callers keep."""
    pressure = Pressure(life, kept)
    for instruction in reversed(list(at.parent.instructions)):
        if instruction is at:
            break
        pressure.move(life.allocated(instruction), life.released(instruction), 0)
    return pressure.live
