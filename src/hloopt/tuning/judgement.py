"""One compile under flags, judged: the time of a step by our model, and its peak memory."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hloopt.compilers.compiling import Compiler, Settings, compile_program
from hloopt.compilers.failures import CompilerFailure
from hloopt.compilers.flags import UNKNOWN_FLAG
from hloopt.compilers.programs import Program
from hloopt.compilers.stages import files_of
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.ir.module import Module

Choice = tuple[tuple[str, str], ...]
"""Flags that are given, with their values, sorted."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The step that XLA makes of a program under flags."""

    flags: Choice
    seconds: float | None = None
    """Of a step; None where XLA refuses the program."""
    exposed: float | None = None
    """Seconds of waiting for collectives and other asynchronous operations."""
    peak: int | None = None
    """Bytes."""
    guessed: float | None = None
    """The share of the time that is guessed."""
    error: str = ""
    is_unknown_flag: bool = False
    """Whether this XLA does not know one of the flags."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Compiles a program for a target and judges it. Other processes are sent this."""

    program: Program
    compiler: Compiler
    target: str
    """Whose times the model has."""
    flags: tuple[str, ...]
    """Flags of XLA that every compile is given."""
    timeout: float | None

    def __call__(self, choice: Choice) -> Judged:
        """Two to ten seconds for a training step."""
        flags = (*self.flags, *(f"{name}={value}" for name, value in choice))
        settings = Settings(flags=flags, seconds=self.timeout, until_buffers=True)
        try:
            with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
                compiled = compile_program(self.program, self.compiler, Path(folder), settings)
                module = _module_of(compiled.dumps)
            return self._judged(choice, module)
        except CompilerFailure as failure:
            return Judged(choice, error=failure.message)
        except HloError as error:
            return Judged(choice, error=error.message, is_unknown_flag=error.code == UNKNOWN_FLAG)

    def _judged(self, choice: Choice, module: Module) -> Judged:
        from hloopt.memory import analyze_memory
        from hloopt.memory.backends import GPU
        from hloopt.reports.schedule.run import ScheduleSettings, guessed_share, run_module
        from hloopt.scheduling.times import model_of

        settings = ScheduleSettings(cost_model=CostModelChoice(target=self.target))
        config = settings.config_for(module)
        model = model_of(config, module)
        run = run_module(module, settings, config)
        second = model.cycles_per_microsecond * 1e6
        peak = analyze_memory(module, backend=GPU).statistics.peak_memory
        return Judged(choice, run.makespan / second, run.exposed / second, peak, guessed_share(run))


def _module_of(dumps: Path) -> Module:
    from hloopt.files import load

    return load(str(files_of("hlo", dumps)[0]))
