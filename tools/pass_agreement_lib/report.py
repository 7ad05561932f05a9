"""The page of the sweep: a table of verdicts by pass, and what stands behind those that differ."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from hloopt.diagnostics import HloError, counted
from pass_agreement_lib.judge import Kind
from pass_agreement_lib.places import LEFT_OUT
from pass_agreement_lib.subject import FOUND, UNKNOWN, Case
from sweep_lib.state import State

CAUSES = Path(__file__).with_name("causes.yaml")
_SHOWN = 3
"""Modules that are named for each cause."""
_COLUMNS = (*(kind for kind in Kind if kind is not Kind.FAILED), "only XLA", "only ours")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a pass and XLA's differ in some modules."""

    text: str
    kind: str
    passes: tuple[str, ...]
    """Patterns of the shell, as `modules`."""
    modules: tuple[str, ...]
    reason: re.Pattern[str]
    """Found in the reason of the verdict."""

    def explains(self, case: Case) -> bool:
        """Whether a case is one of those."""
        return (
            case.kind == self.kind
            and any(fnmatchcase(case.pass_name, each) for each in self.passes)
            and any(fnmatchcase(case.module, each) for each in self.modules)
            and self.reason.search(case.reason) is not None
        )


def read_causes(path: Path = CAUSES) -> list[Cause]:
    """The causes that are kept by hand. Raises HloError for an entry that is none."""
    import yaml

    found = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
        unknown = set(entry) - {"cause", "kind", "passes", "modules", "reason"}
        if unknown or "cause" not in entry or entry.get("kind") not in FOUND:
            raise HloError(f"{path}: an entry needs `cause` and `kind`, one of {sorted(FOUND)}")
        passes, modules = (tuple(entry.get(key, "*").split()) for key in ("passes", "modules"))
        reason = re.compile(entry.get("reason", ""))
        found.append(Cause(entry["cause"], entry["kind"], passes, modules, reason))
    return found


def page(state: State, causes: Sequence[Cause], about: Mapping[str, str]) -> dict[str, str]:
    """The parts of docs/xla_passes.md, by the names of their marks."""
    cases = [case for kind in state.kinds if (case := Case.of(kind))]
    return {
        "about": "\n".join(f"- {name}: {value}" for name, value in about.items()),
        "totals": _totals(state.total.outcomes),
        "passes": _table(state.total.outcomes),
        "differences": _explained(cases, causes),
        "unknown": _unknown(state.total.outcomes),
        "left out": "\n".join(f"- {name}: {why}." for name, why in LEFT_OUT.items()),
    }


def unexplained(state: State, causes: Sequence[Cause]) -> list[Case]:
    """The cases that have no cause."""
    cases = [case for kind in state.kinds if (case := Case.of(kind))]
    return [case for case in cases if not any(cause.explains(case) for cause in causes)]


def _totals(outcomes: Counter[str]) -> str:
    counts = _by_pass(outcomes)
    total: Counter[str] = sum(counts.values(), Counter())
    runs = sum(total[kind] for kind in Kind)
    parts = ", ".join(f"{total[kind]:,} {kind}" for kind in Kind if total[kind])
    return f"{counted(runs, 'run')} of {counted(len(counts), 'pass', 'passes')}: {parts}."


def _table(outcomes: Counter[str]) -> str:
    lines = ["| pass | runs | " + " | ".join(_COLUMNS) + " |"]
    lines.append("| --- " + "| ---: " * (len(_COLUMNS) + 1) + "|")
    for name, counts in sorted(_by_pass(outcomes).items()):
        runs = sum(counts[kind] for kind in Kind)
        cells = " | ".join(f"{counts[column]:,}" if counts[column] else "" for column in _COLUMNS)
        lines.append(f"| {name} | {runs:,} | {cells} |")
    return "\n".join(lines)


def _by_pass(outcomes: Counter[str]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for key, count in outcomes.items():
        name, mark, kind = key.partition("|")
        if mark and not key.startswith(UNKNOWN):
            found[name][kind] += count
    return found


def _explained(cases: Sequence[Case], causes: Sequence[Cause]) -> str:
    """A line for each cause with the cases that it explains, then those that nothing explains."""
    left = list(cases)
    lines = []
    for kind in (Kind.DIFFERENT, Kind.FAILED):
        for cause in (cause for cause in causes if cause.kind == kind):
            explained = [case for case in left if cause.explains(case)]
            left = [case for case in left if case not in explained]
            if explained:
                passes = ", ".join(sorted({case.pass_name for case in explained}))
                what = f"{kind}, {counted(len(explained), 'case')}, {passes}"
                lines.append(f"- {cause.text} ({what}: {_modules(explained)})")
        rest = [case for case in left if case.kind == kind]
        left = [case for case in left if case.kind != kind]
        lines += [
            f"- **Not explained**, {kind}, {case.pass_name}, {case.module}: {case.reason}"
            for case in rest
        ]
    return "\n".join(lines) or "None."


def _unknown(outcomes: Counter[str]) -> str:
    """The reasons why verdicts cannot be told, the most frequent ones first."""
    counts = {
        key.removeprefix(UNKNOWN): count
        for key, count in outcomes.items()
        if key.startswith(UNKNOWN)
    }
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"- {count:,}: {reason}" for reason, count in ordered) or "None."


def _modules(cases: Iterable[Case]) -> str:
    names = list(dict.fromkeys(case.module for case in cases))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
