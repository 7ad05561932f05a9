"""Memory over a schedule, reckoned as while it is made."""

from __future__ import annotations

from hloopt.ir import Computation
from hloopt.scheduling.memory.pressure import BufferLife, Pressure


def usage_over_time(life: BufferLife, computation: Computation) -> list[int]:
    """Bytes in use at each position of a computation's schedule, those of its callers included.

    The most is what XLA prints as its memory pressure peak. O(buffers of all instructions).
    """
    pressure = Pressure(life, life.states[computation].live_below)
    usage = []
    for instruction in reversed(list(computation.instructions)):
        pressure.peak = pressure.change
        pressure.move(
            life.allocated(instruction), life.released(instruction), life.peak_inside(instruction)
        )
        usage.append(pressure.initial + pressure.peak)
    usage.reverse()
    return usage
