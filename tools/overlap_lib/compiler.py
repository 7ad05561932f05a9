"""XLA:GPU's compiler, asked what it makes of programs from some place in its pipeline on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.ir.clone import clone_module
from hloopt.passes.overlap.decisions import run_passes
from hloopt.text import parse_module, print_module
from oracle_script import oracle_script
from overlap_lib.steps import TARGET, Step, step_of

_TIMEOUT = 1500.0
_SCHEDULER = "latency-hiding-scheduler"
_FIRST_COMBINER = "gpu-all-gather-combiner"
_COMBINERS = (_FIRST_COMBINER, "gpu-all-reduce-combiner", "gpu-reduce-scatter-combiner")
_BEHIND_COMBINERS = (
    *("collective-permute-combiner", "collective-backend-assigner"),
    *("collective-kernel-strategy-annotator", "all-reduce-contiguous"),
    *("async-collective-creator", "async-collective-annotator", "stream-attribute-annotator"),
    *("async-stream-attribute-wrapper", "explicit-stream-annotation-async-wrapper"),
    *("explicit-collectives-group-async-wrapper", "collectives-schedule-linearizer"),
    *("loop-schedule-linearizer", "copy-insertion", "copy_fusion", "fusion-wrapper"),
    *("sanitize-constant-names", "legalize-scheduling-annotations"),
)
"""XLA's passes from the combiners to the scheduler. Left out are three that it runs before the
combiners, too, where they would change the program: algsimp, computation-deduplicator, dce."""
_BEHIND_SCHEDULER = (
    *(_SCHEDULER, "scheduling-instruction-annotator", "async-to-sync-converter"),
    *("gpu-convert-async-collectives-to-sync", "remat-pipeline", "rematerialization"),
    "cse_barrier_expander",
)


class Failed(HloError):
    """XLA refused a program, or did not keep an order."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A program as XLA:GPU finished it."""

    step: Step
    before_scheduler: Module
    """With the order that XLA's scheduler began with."""
    after_scheduler: Module


@dataclass(frozen=True, slots=True)
class XlaGpu:
    """The compiler, for programs on a number of devices."""

    shared: Path
    """The folder of oracle/."""
    python: str
    """An interpreter that has it."""
    devices: int

    def before_combiners(self, text: str, flags: Sequence[str] = ()) -> str:
        """A program as it comes to XLA's combiners. Raises Failed."""
        result = oracle_script(self.shared / "oracle", "xla_gpu").compile(
            text, flags=flags, passes=f"{_FIRST_COMBINER}|{_SCHEDULER}", **self._how
        )
        steps = result.step(_FIRST_COMBINER)
        if not steps:
            raise Failed(f"XLA: {result.error or result.log[-500:]}")
        text = steps[0].before
        assert isinstance(text, str)
        return text

    def combined(self, text: str, flags: Sequence[str] = ()) -> Finished:
        """Let XLA go on with a program that has come to its combiners. Raises Failed."""
        return self._finished(text, (*_COMBINERS, *_BEHIND_COMBINERS), flags)

    def finished(self, text: str) -> Finished:
        """Let XLA finish a program behind its combiners. Raises Failed."""
        return self._finished(text, _BEHIND_COMBINERS, ())

    def _finished(self, text: str, passes: Sequence[str], flags: Sequence[str]) -> Finished:
        result = self._compile(text, (*passes, *_BEHIND_SCHEDULER), flags)
        made = self._scheduled(result)
        before, after = parse_module(made.before), parse_module(made.after)
        return Finished(self._step(after, result), before, after)

    def forced(self, module: Module, *, is_last: bool = False) -> Step:
        """The step that XLA makes of a scheduled module, whose order it is made to keep.

        With `is_last` nothing runs behind its scheduler. Collectives come to it as its own do, none
        marked synchronous: its report has no waiting for marked ones. Raises Failed.
        """
        module, _ = clone_module(module)
        run_passes(module, [("async-collective-annotator", {"disable_async_collectives": []})])
        orders = oracle_script(self.shared / "oracle", "forced_order")
        wanted = {
            computation.name: [instruction.name for instruction in computation.instructions]
            for computation in module.computations.values()
            if not computation.is_fusion
        }
        text = orders.force(_without_schedule(module), wanted)
        result = self._compile(text, (_SCHEDULER,) if is_last else _BEHIND_SCHEDULER)
        got = orders.orders(self._scheduled(result).after)
        lost = [name for name, order in wanted.items() if name in got and got[name] != order]
        if lost:
            raise Failed(f"XLA does not keep the orders of {', '.join(lost)}")
        return self._step(module, result)

    def _compile(self, text: str, passes: Sequence[str], flags: Sequence[str] = ()) -> Any:
        """Run passes of XLA and no others on a program without a schedule."""
        compiler = oracle_script(self.shared / "oracle", "xla_gpu")
        return compiler.compile(
            compiler.unscheduled(text), flags=flags, only=passes, passes=_SCHEDULER, **self._how
        )

    @property
    def _how(self) -> dict[str, Any]:
        return {
            "target": TARGET,
            "devices": self.devices,
            "python": self.python,
            "timeout": _TIMEOUT,
        }

    @staticmethod
    def _scheduled(result: Any) -> Any:
        """The run of XLA's scheduler."""
        made = result.step(_SCHEDULER)
        if not made or result.memory is None or result.lhs is None:
            raise Failed(f"XLA: {result.error or result.log[-500:]}")
        return made[0]

    @staticmethod
    def _step(module: Module, result: Any) -> Step:
        return step_of(module, result.lhs["after"], result.memory["total_bytes"])


def _without_schedule(module: Module) -> str:
    copy, _ = clone_module(module)
    run_passes(copy, ["hlo-descheduler"])
    return print_module(copy)
