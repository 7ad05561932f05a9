"""The findings of a tuning run: the Pareto front of step time against peak memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hloopt.diagnostics import counted
from hloopt.tuning.judgement import Choice, Judged
from hloopt.tuning.search import front_of

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Tuned:
    """All that was judged."""

    judged: Sequence[Judged]
    unknown: Sequence[str]
    """Flags that this XLA does not know, or whose values it does not take."""
    is_whole: bool
    """Whether the search ended by itself, not by its budget."""
    target: str
    version: str

    @property
    def default(self) -> Judged:
        return next(each for each in self.judged if not each.flags)

    @property
    def front(self) -> list[Judged]:
        """The Pareto front of step time against peak memory, the shortest step first."""
        return front_of(self.judged)

    def notes(self) -> list[str]:
        """The assumptions behind the figures."""
        refused = [each for each in self.judged if each.error and not each.is_unknown_flag]
        guessed = max((each.guessed or 0.0 for each in self.front), default=0.0)
        found = [
            f"{counted(len(self.judged), 'compile')} by {self.version}, without a device or "
            f"autotuning; times by the speed-of-light model of {self.target}, of which at most "
            f"{guessed:.1%} is guessed: kernels and times may differ from yours",
        ]
        if not self.is_whole:
            found.append("the budget ran out before the search ended: --budget gives it longer")
        if refused:
            found.append(f"XLA refused {counted(len(refused), 'choice')}: {refused[0].error}")
        if self.unknown:
            found.append(f"this XLA does not take {', '.join(self.unknown)}")
        return found


def tuned_to_json(tuned: Tuned) -> dict[str, Any]:
    """The front and all results: flags, seconds, bytes."""
    return {
        "default": _to_json(tuned.default),
        "front": [_to_json(each) for each in tuned.front],
        "judged": [_to_json(each) for each in tuned.judged],
        "complete": tuned.is_whole,
        "notes": tuned.notes(),
    }


def _to_json(judged: Judged) -> dict[str, Any]:
    return {
        "flags": dict(judged.flags),
        "seconds": judged.seconds,
        "exposed_seconds": judged.exposed,
        "peak_bytes": judged.peak,
        "guessed_share": judged.guessed,
        "error": judged.error,
    }


def render_tuned(tuned: Tuned, console: Console) -> None:
    """Print the front, and the flags of the shortest step."""
    from hloopt.reports.console.footnotes import print_footnote
    from hloopt.reports.console.table import ReportTable
    from hloopt.reports.console.units import human_bytes, human_change, human_seconds, page_width

    width = page_width(console)
    default = tuned.default
    table = ReportTable(gap=2)
    table.add_column("step", justify="right", style="bold")
    table.add_column("", justify="right")
    table.add_column("exposed", justify="right")
    table.add_column("peak", justify="right")
    table.add_column("", justify="right")
    table.add_column("flags", wraps=True)
    rows = [*tuned.front, *([] if default in tuned.front else [default])]
    for each in rows:
        if each.seconds is None or each.peak is None or each.exposed is None:
            continue
        is_default = not each.flags
        table.add_row(
            human_seconds(each.seconds),
            "" if is_default else human_change(default.seconds or 0.0, each.seconds),
            human_seconds(each.exposed),
            human_bytes(each.peak),
            "" if is_default else human_change(default.peak or 0, each.peak),
            "(default)" if is_default else _short(each.flags),
        )
    console.print(table, width=width)
    best = tuned.front[0] if tuned.front else default
    if best.flags:
        flags = " ".join(f"--{name}={value}" for name, value in best.flags)
        console.print()
        console.print(f"XLA_FLAGS='{flags}'", soft_wrap=True)
    console.print()
    for note in tuned.notes():
        print_footnote(console, note, width=width)


def _short(flags: Choice) -> str:
    """Flags without the beginning that all have."""
    return ", ".join(f"{name.removeprefix('xla_gpu_')}={value}" for name, value in flags)
