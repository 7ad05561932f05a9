"""A training step as XLA:GPU reports it: the time of its schedule, and what is allocated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloopt.files import load
from hloopt.ir import Module
from hloopt.passes.overlap.judging import Judge
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.times import model_of

PAGE = 2 << 20
"""Bytes of a page of device memory."""
TARGET = "h100_sxm"
"""The device that the steps were recorded for."""


@dataclass(frozen=True, slots=True)
class Step:
    """The cost of a step; loops count with their trips. Times in microseconds."""

    total: float
    """By XLA's report on the schedule."""
    exposed: float
    smooth: float
    """The time by the second model, whose times never fall where sizes grow."""
    allocated: int
    """Bytes, by XLA."""

    def is_no_worse(self, other: Step) -> bool:
        """Whether no model finds it longer than another, and no page more is allocated."""
        rounding = 1 + 1e-5  # XLA prints six digits
        return (
            self.total <= other.total * rounding
            and self.smooth <= other.smooth * rounding
            and -(-self.allocated // PAGE) <= -(-other.allocated // PAGE)
        )


def recorded(variant: Path) -> Step:
    """The step that XLA:GPU made, as it was recorded."""
    report = json.loads((variant / "lhs.json").read_text(encoding="utf-8"))
    memory = json.loads((variant / "memory_summary.json").read_text(encoding="utf-8"))
    module = load(str(variant / "after_lhs.hlo.gz"))
    return step_of(module, report["after"], memory["total_bytes"])


def step_of(module: Module, report: Sequence[Mapping[str, Any]], allocated: int) -> Step:
    """Computations without asynchronous operations are not in XLA's report: they take the sum of
    their instructions' times. What a step takes beyond that sum is waiting, for collectives and
    for copies to and from the host."""
    judge = Judge(OverlapOptions(target=TARGET))
    config = SchedulerConfig(preset="xla-gpu", target=TARGET).resolved(module)
    model = model_of(config, module)
    cycles = {each["computation"]: each["total_cycles"] for each in report}
    total = work = 0.0
    for computation, run in judge.simulated(module).runs.items():
        busy = sum(model.node_time(instruction).cycles for instruction in computation.instructions)
        work += busy * run.runs
        total += cycles.get(computation.name, busy) * run.runs
    return Step(total, total - work, judge.smooth_seconds(module) * 1e6, allocated)
