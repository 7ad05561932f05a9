"""Tables of steps, ours beside those of XLA:GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log

from hloopt.diagnostics import counted
from hloopt.ir import Module
from overlap_lib.steps import Step

_MOST_TRIED = 2_000_000
"""Instructions in all programs that are tried for a step."""
_LEAST_EXPOSED = 0.02
"""The share of a step that is waiting from which on the step counts in the means."""
_LEAST_RATIO = 0.1
_HEAD = (
    *("step", "ms", "ratio", "best flags", "ratio", "exposed ms", "second model ms"),
    *("MiB", "decisions", "tried", "s"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One training step."""

    name: str
    default: Step
    best: Step
    ours: Step
    decisions: int
    tried: int
    seconds: float
    is_undone: bool = False
    """Whether XLA found a result of ours worse than its own."""

    @property
    def waits(self) -> bool:
        """Whether enough of XLA's step is waiting for the step to count."""
        return self.default.exposed >= _LEAST_EXPOSED * self.default.total


def allowed_iterations(module: Module, iterations: int) -> int:
    """The number of trials for a program: so many, fewer for very large ones."""
    return min(iterations, _MOST_TRIED // sum(1 for _ in module.instructions()))


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of a table."""
    head = [_HEAD, ("---", *["---:"] * (len(_HEAD) - 1))]
    return [f"| {' | '.join(row)} |" for row in [*head, *map(cells, rows)]]


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row."""
    default, best, ours = row.default, row.best, row.ours
    return (
        row.name,
        f"{_ms(default.total)} → {_ms(ours.total)}",
        f"{ours.total / default.total:.3f}",
        _ms(best.total),
        f"{ours.total / best.total:.3f}",
        f"{_ms(default.exposed)} → {_ms(ours.exposed)}",
        f"{_ms(default.smooth)} → {_ms(ours.smooth)}",
        f"{default.allocated / 2**20:,.1f} → {ours.allocated / 2**20:,.1f}",
        f"{row.decisions}",
        f"{row.tried}",
        f"{row.seconds:.1f}",
    )


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1e3:,.2f}"


def summary(rows: Sequence[Row]) -> list[str]:
    """The sentences that sum a table up."""
    waiting = [row for row in rows if row.waits]
    out = [row.name for row in rows if not row.waits]
    undone = [row.name for row in rows if row.is_undone]
    lines = [f"Undone, as XLA finds them longer or larger: {', '.join(undone) or 'none'}."]
    if waiting:
        theirs = sum(row.default.exposed for row in waiting)
        ours = sum(row.ours.exposed for row in waiting)
        floored = [max(row.ours.exposed / row.default.exposed, _LEAST_RATIO) for row in waiting]
        lines[:0] = [
            f"Steps are {_shorter(waiting, 'shorter than with default flags', _default)}, "
            f"{_shorter(waiting, 'than with the best', _best)}, in the "
            f"geometric mean of {counted(len(waiting), 'step')}.",
            f"Exposed time is {1 - ours / theirs:.1%} lower in the sum and "
            f"{1 - _mean(floored):.1%} in the geometric mean of the ratios, each taken as "
            f"{_LEAST_RATIO:g} at least.",
        ]
    if out:
        lines.append(f"Left out, as less than {_LEAST_EXPOSED:.0%} is waiting: {', '.join(out)}.")
    return lines


def _default(row: Row) -> Step:
    return row.default


def _best(row: Row) -> Step:
    return row.best


def _shorter(rows: Sequence[Row], what: str, of: Callable[[Row], Step]) -> str:
    """By how much steps are shorter, and the range of that without any one of them."""
    ratios = [row.ours.total / of(row).total for row in rows]
    shorter = f"{1 - _mean(ratios):.1%} {what}"
    if len(ratios) == 1:
        return shorter
    without = [_mean([*ratios[:n], *ratios[n + 1 :]]) for n in range(len(ratios))]
    return f"{shorter} ({1 - max(without):.1%} to {1 - min(without):.1%} without one of them)"


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))
