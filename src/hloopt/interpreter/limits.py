"""Bounds on steps, memory and time, so that a program that never ends or fits is a message."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TypeAlias

from hloopt.diagnostics import counted
from hloopt.interpreter.errors import RunError, cannot_run
from hloopt.ir.instruction import Instruction

Tick: TypeAlias = "Callable[[], None] | None"
"""Called every part of a second by operations that take long; it may raise."""


class Deadline:
    """A deadline by the clock on the wall: `seconds` from its making or last restart on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self._end = monotonic() + self.seconds

    def is_over(self, needed: float = 0.0) -> bool:
        """Whether less than `needed` seconds are left."""
        return monotonic() + needed >= self._end


class Limits:
    """Counts steps and bytes over all devices of a run; None is no bound.

    A step is an instruction, or about as much work as takes as long (see `costs`): one operation on
    much data is many steps. `on_steps` is called with the number of steps from time to time, for
    progress.
    """

    def __init__(
        self,
        steps: int | None = None,
        memory: int | None = None,
        on_steps: Callable[[int], None] | None = None,
        deadline: Deadline | None = None,
        held: int = 0,
    ) -> None:
        self.steps = inf if steps is None else steps
        self.memory = inf if memory is None else memory
        self.on_steps = on_steps
        self.deadline = deadline
        self.done = 0
        self.held = held
        """Bytes of all values that are still to be read, `held` at the beginning; whoever drops one
        takes its size off."""
        self._pause = self._next_pause()

    def begin(self, instruction: Instruction, size: int, steps: int = 1, scratch: int = 0) -> None:
        """An operation that takes `steps`, before it runs.

        Its value takes `size` bytes until they are taken off `held`, and while it runs it takes
        `scratch` bytes more. Raises RunError beyond a limit.
        """
        self.done += steps
        self.held += size
        if self.done >= self._pause or self.held + scratch > self.memory:
            try:
                self._look(steps, scratch)
            except RunError as error:
                raise cannot_run(instruction, error.message, error.code, error.help) from None

    def spend(self, steps: int) -> None:
        """More steps within an operation. Raises RunError, without a place, beyond a limit."""
        self.done += steps
        if self.done >= self._pause:
            self._look(steps)

    def tick(self) -> Tick:
        """A function that raises RunError behind the deadline; None where there is no deadline."""
        return None if self.deadline is None else self._check_time

    def _check_time(self) -> None:
        if self.deadline is not None and self.deadline.is_over():
            raise self._too_late(self.deadline)

    def _next_pause(self) -> float:
        """The number of the next step that is to be looked at, whatever its size."""
        watched = self.on_steps is not None or self.deadline is not None
        report = (self.done // _OFTEN + 1) * _OFTEN if watched else inf
        return min(self.steps + 1, report)

    def _look(self, steps: int, scratch: int = 0) -> None:
        if self.held + scratch > self.memory:
            raise RunError(
                f"values would take {counted(self.held + scratch, 'byte')} here, the limit is "
                f"{self.memory:,}",
                code="HLO503",
                help=MORE_MEMORY,
            )
        if self.done > self.steps:
            raise RunError(
                f"stopped after {counted(int(self.steps), 'step')}",
                code="HLO503",
                help=_MORE_STEPS,
            )
        if self.done >= self._pause:
            if self.on_steps is not None:
                self.on_steps(self.done)
            if self.deadline is not None and self.deadline.is_over(steps * _FASTEST_STEP):
                raise self._too_late(self.deadline)
        self._pause = self._next_pause()

    @staticmethod
    def _too_late(deadline: Deadline) -> RunError:
        return RunError(
            f"stopped here: the time limit is {deadline.seconds:g} s",
            code="HLO503",
            help=_MORE_TIME,
        )


_OFTEN = 1000  # steps
_FASTEST_STEP = 1e-7
"""Seconds: no machine does the work of a step in less."""
_MORE_STEPS = "if it is no endless loop, give it more: --max-steps"
_MORE_TIME = "--time-limit allows more, --shrink makes dimensions smaller"
MORE_MEMORY = "--shrink makes dimensions smaller, --max-memory allows more"
