"""Bounds on steps and memory, so that a program that never ends or fits is a message."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from hloopt.diagnostics import counted
from hloopt.interpreter.errors import cannot_run
from hloopt.ir.instruction import Instruction


class Limits:
    """Counts steps and bytes over all devices of a run; None is no bound.

    `on_steps` is called with the number of steps from time to time, for progress.
    """

    def __init__(
        self,
        steps: int | None = None,
        memory: int | None = None,
        on_steps: Callable[[int], None] | None = None,
    ) -> None:
        self.steps = inf if steps is None else steps
        self.memory = inf if memory is None else memory
        self.on_steps = on_steps
        self.done = 0
        self.held = 0
        """Bytes of all values that are still to be read; whoever drops one takes its size off."""
        self._pause = self._next_pause()

    def begin(self, instruction: Instruction, size: int) -> None:
        """Another step, whose value takes `size` bytes until they are taken off `held`.

        Raises RunError beyond a limit.
        """
        self.done += 1
        self.held += size
        if self.done >= self._pause or self.held > self.memory:
            self._look(instruction)

    def _next_pause(self) -> float:
        """The number of the next step that is to be looked at, whatever its size."""
        report = inf if self.on_steps is None else (self.done // _OFTEN + 1) * _OFTEN
        return min(self.steps + 1, report)

    def _look(self, instruction: Instruction) -> None:
        if self.done > self.steps:
            raise cannot_run(
                instruction,
                f"stopped after {counted(int(self.steps), 'step')}",
                "HLO503",
                _MORE_STEPS,
            )
        if self.on_steps is not None and self.done == self._pause:
            self.on_steps(self.done)
        self._pause = self._next_pause()
        if self.held > self.memory:
            raise cannot_run(
                instruction,
                f"values would take {counted(self.held, 'byte')} here, the limit is "
                f"{self.memory:,}",
                "HLO503",
                MORE_MEMORY,
            )


_OFTEN = 1000  # steps
_MORE_STEPS = "if it is no endless loop, give it more: --max-steps"
MORE_MEMORY = "--shrink makes dimensions smaller, --max-memory allows more"
