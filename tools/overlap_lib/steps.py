"""A training step as XLA:GPU reports it: the time of its schedule, and what is allocated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloopt.files import load
from hloopt.ir import Module
from hloopt.ir.clone import clone_module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap.judging import Judge
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.times import model_of
from hloopt.text import print_module
from oracle_script import oracle_script

TARGET = "h100_sxm"
"""The device that the steps were recorded for."""
_TIMEOUT = 1500.0


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


class OrdersLost(Exception):
    """XLA did not keep an order."""


def recorded(variant: Path) -> Step:
    """The step that XLA:GPU made, as it was recorded."""
    report = json.loads((variant / "lhs.json").read_text(encoding="utf-8"))
    memory = json.loads((variant / "memory_summary.json").read_text(encoding="utf-8"))
    module = load(str(variant / "after_lhs.hlo.gz"))
    return _step(module, report["after"], memory["total_bytes"])


def forced(module: Module, shared: Path, python: str, devices: int) -> Step:
    """The step that XLA:GPU makes of a scheduled module, whose order it is made to keep.

    Raises OrdersLost where it does not, HloError where it fails.
    """
    compiler = oracle_script(shared / "oracle", "xla_gpu")
    orders = oracle_script(shared / "oracle", "forced_order")
    wanted = {
        computation.name: [instruction.name for instruction in computation.instructions]
        for computation in module.computations.values()
        if not computation.is_fusion
    }
    result = compiler.schedule(
        orders.force(_without_schedule(module), wanted),
        target=TARGET,
        devices=devices,
        until="memory",
        python=python,
        timeout=_TIMEOUT,
    )
    made = result.step("latency-hiding-scheduler")
    if not made:
        raise OrdersLost(str(result.error or result.log[-500:]))
    got = orders.orders(made[0].after)
    lost = [name for name, order in wanted.items() if name in got and got[name] != order]
    if lost:
        raise OrdersLost(f"the orders of {', '.join(lost)}")
    return _step(module, result.lhs["after"], result.memory["total_bytes"])


def _step(module: Module, report: Sequence[Mapping[str, Any]], allocated: int) -> Step:
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


def _without_schedule(module: Module) -> str:
    copy, _ = clone_module(module)
    create_pass("hlo-descheduler", {}).run(copy, PassContext(wants_remarks=False))
    return print_module(copy)
