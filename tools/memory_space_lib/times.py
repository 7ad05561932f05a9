"""Times of memory space assignment by the cost model, with and without a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

from hloopt.ir import Module, Opcode
from hloopt.options import Seconds
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment
from hloopt.passes.memory_space.search.search import Outcome, search_assignment
from hloopt.text import parse_module
from memory_space_lib.benchmarks import options_of
from memory_space_lib.examine import NAME
from memory_space_lib.programs import prepare

HEAD = (
    *("module", "MiB", "default memory", "heuristic", "searched", "bound"),
    *("gap", "closed", "tried"),
)
LEAST_GAP = 0.02
"""Smaller gaps between heuristic and bound, as a part of the heuristic's time, count apart."""
LEAST_SAVED = 0.01
"""The part of the time with all in default memory that is worth saving."""
_LEAST_CLOSED = 0.001
"""The floor of closed parts in the geometric mean: one 0 would make it 0."""


@dataclass(frozen=True, slots=True)
class Times:
    """One module at one size of alternate memory."""

    module: str
    mebibytes: int
    outcome: Outcome
    remark: str
    """The remark of the pass, without a search, on the whole module."""

    @property
    def is_short_of_bound(self) -> bool:
        """Whether the bound allows to save a part worth having, of which the rules save less."""
        found = self.outcome
        worth = found.plain * (1 - LEAST_SAVED)
        return found.least <= worth < found.heuristic

    @property
    def gap(self) -> float:
        """The part of the heuristic's time that the bound leaves."""
        return (self.outcome.heuristic - self.outcome.least) / self.outcome.heuristic

    @property
    def closed(self) -> float:
        """The part of the gap that the search closed."""
        found = self.outcome
        gap = found.heuristic - found.least
        return (found.heuristic - found.seconds) / gap if gap > 0 else 0.0

    def cells(self) -> tuple[str, ...]:
        found = self.outcome
        times = (found.plain, found.heuristic, found.seconds, found.least)
        return (
            self.module,
            str(self.mebibytes),
            *(f"{seconds * 1e3:,.3f}" for seconds in times),
            f"{self.gap:.1%}",
            f"{self.closed:.1%}",
            f"{found.tried:,}",
        )


def prepared(path: Path) -> Module:
    """A module as XLA:TPU has it before the pass: no calls, parameters first in the schedule."""
    module = parse_module(path.read_text())
    if not module.is_scheduled:
        for name in ("call-inliner", "dce"):
            create_pass(name).run(module, PassContext())
    prepare(module)
    order = sorted(module.entry.instructions, key=lambda i: i.opcode is not Opcode.PARAMETER)
    module.entry.reorder(order)
    return module


def searched(path: Path, mebibytes: int, target: str, seconds: float, seed: int) -> Times:
    """Search for the assignment of a module."""
    search: Mapping[str, Any] = {"budget": Seconds(seconds), "seed": seed}
    made = create_pass(NAME, {**options_of(target, mebibytes), "search": search})
    assert isinstance(made, MemorySpaceAssignment)
    outcome = search_assignment(prepared(path), made.options)
    return Times(path.stem, mebibytes, outcome, _remark(path, mebibytes, target))


def _remark(path: Path, mebibytes: int, target: str) -> str:
    context = PassContext()
    create_pass(NAME, options_of(target, mebibytes)).run(prepared(path), context)
    (found,) = (remark.reason for remark in context.remarks if remark.kind == "analysis")
    return found


def summary(found: Sequence[Times]) -> list[str]:
    """The sums of the table, as lines."""
    counted = [one for one in found if one.gap >= LEAST_GAP]
    lines = [
        f"{len(counted)} of {len(found)} rows have a gap of {LEAST_GAP:.0%} or more between "
        "heuristic and bound."
    ]
    if counted:
        closed = [max(one.closed, _LEAST_CLOSED) for one in counted]
        mean = exp(sum(map(log, closed)) / len(closed))
        lines.append(
            f"There the search closes {mean:.1%} of it in the geometric mean, "
            f"{sum(one.closed for one in counted) / len(counted):.1%} in the arithmetic one."
        )
    worse = [one for one in found if one.outcome.seconds > one.outcome.heuristic]
    slower = [one for one in found if one.outcome.heuristic > one.outcome.plain]
    lines.append(
        f"Searched times above the heuristic's: {len(worse)}; times of the heuristic above those "
        f"with everything in default memory: {len(slower)}."
    )
    short = [one for one in found if one.is_short_of_bound]
    lines.append(
        f"Rows where the heuristic saves less than {LEAST_SAVED:.0%}, though the bound allows it: "
        f"{len(short)}{'. What the pass remarks there:' if short else '.'}"
    )
    if short:
        lines += ["", *(f"- {one.module}, {one.mebibytes} MiB: {one.remark}." for one in short), ""]
    return lines
