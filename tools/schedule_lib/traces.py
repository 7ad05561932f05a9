"""The steps of XLA's scheduler, as it logged them, beside the decisions that ours explains."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.engine.explain import Decision, Explainer
from schedule_lib.comparison import prepare

_CHOICE = re.compile(r"Choosing from ready \((\S+)\) vs \((\S+)\) Reason: (\w+)")
_READY = re.compile(r"\s+(\S+) Ready time: ")
_SCHEDULED = "Scheduled: "


class Step(NamedTuple):
    """One choice: what was ready, the comparisons (better, worse, rule), and what was chosen."""

    chosen: str
    ready: tuple[str, ...]
    comparisons: tuple[tuple[str, str, str], ...]


@dataclass(slots=True)
class TraceComparison:
    """All the steps of one trace."""

    steps: int = 0
    same: int = 0
    comparisons: int = 0
    first_difference: str = ""


def traced_settings(sweep: Path) -> Iterator[str]:
    """The settings of which XLA's steps were recorded."""
    for path in sorted(sweep.glob("*.trace.txt.gz")):
        yield path.name.removesuffix(".trace.txt.gz")


def compare_trace(sweep: Path, setting: str) -> TraceComparison:
    """Schedule as the setting says, explain every step, and compare with XLA's.

    Steps are found by what was chosen: computations of which none calls the other may come in any
    order.
    """
    scheduling = prepare(sweep, setting)
    explainer = scheduling.scheduler.explainer = Explainer(lambda instruction: True)
    schedule_and_report(scheduling, PassContext())
    ours = {i.name: _step(decision) for i, decision in explainer.decisions.items()}
    result = TraceComparison()
    for step in _recorded_steps(sweep / f"{setting}.trace.txt.gz"):
        our = ours.get(step.chosen)
        result.steps += 1
        result.same += our == step
        result.comparisons += len(step.comparisons)
        if our != step and not result.first_difference:
            result.first_difference = f"XLA {step}, ours {our}"
    return result


def _step(decision: Decision) -> Step:
    return Step(
        decision.instruction.name,
        tuple(node.instruction.name for node in decision.ready),
        tuple((c.better.name, c.worse.name, c.rule) for c in decision.comparisons),
    )


def _recorded_steps(path: Path) -> Iterator[Step]:
    ready: list[str] = []
    comparisons: list[tuple[str, str, str]] = []
    with gzip.open(path, "rt") as file:
        for line in file:
            if line.startswith(_SCHEDULED):
                chosen = line.removeprefix(_SCHEDULED).strip()
                yield Step(chosen, tuple(ready), tuple(comparisons))
                ready, comparisons = [], []
            elif choice := _CHOICE.match(line):
                better, worse, rule = choice.groups()
                comparisons.append((better, worse, rule))
            elif node := _READY.match(line):
                ready.append(node[1])
