"""A sweep from the first input to the last: progress, files of findings, total and rate."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

from sweep_lib.findings import Finding
from sweep_lib.state import State
from sweep_lib.workers import Subject, run

_BAR = 30  # characters


class Sweep:
    """Examines inputs that `state` has no answers for; what came of all of them is in `state`."""

    def __init__(self, subject: Subject, state: State, *, folder: Path, seed: int, unit: str):
        self.subject = subject
        self.state = state
        self.folder = folder
        """For the first finding of each kind."""
        self.seed = seed
        self.unit = unit
        """The name of the inputs, in the plural."""
        self._rate = ""
        self._saved: set[str] = set()

    def run(self, count: int, jobs: int, longest: int) -> None:
        """Examine inputs 0 … `count` - 1 in slices of at most `longest`."""
        started, done, before = time.monotonic(), 0, self.state.total.done
        if before:
            print(f"{self.state.path}: {before:,} {self.unit} are done", flush=True)
        for numbers, progress in run(self.subject, self.state.missing(count, longest), jobs):
            for finding in progress.findings:
                self._save(finding)
            self.state.add(numbers, progress)
            done += progress.done
            seconds = time.monotonic() - started
            show_progress(self.state.total.done, count, done / seconds)
        seconds = time.monotonic() - started
        rate = done / seconds if done else 0.0
        self._rate = f"{done:,} of them now in {seconds:.0f} s, {rate:.1f} a second"

    def _save(self, finding: Finding) -> None:
        kind = finding.problem.kind
        if self.state.kinds[kind] or kind in self._saved:
            return
        self._saved.add(kind)
        self.folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.\-]+", "-", kind)[:80].strip("-")
        path = self.folder / f"{name}.{self.seed}.{finding.number}{finding.suffix}"
        path.write_bytes(finding.content)
        about = f"seed {self.seed}, number {finding.number}\n{kind}\n\n{finding.problem.details}\n"
        path.with_suffix(".txt").write_text(about, encoding="utf-8", errors="backslashreplace")
        print(f"finding: {kind}\n  {path}", flush=True)

    def summary(self, outcomes: str) -> str:
        """The report: findings, the total with `outcomes`, and the rate of this run."""
        kinds: Counter[str] = self.state.kinds
        lines = [f"{count:,} times {kind}" for kind, count in kinds.most_common()]
        lines.append(
            f"{self.state.total.done:,} {self.unit} ({outcomes}); {self._rate}: "
            f"{kinds.total():,} findings of {len(kinds)} kinds"
        )
        return "\n".join(lines)


def show_progress(done: int, total: int, rate: float | None = None) -> None:
    """A bar on stderr, where that is a terminal; with a `rate` also how long it takes."""
    if not sys.stderr.isatty():
        return
    filled = _BAR * done // max(total, 1)
    bar = "#" * filled + "-" * (_BAR - filled)
    text = f"[{bar}] {done:,}/{total:,}"
    if rate is not None:
        left = max(total - done, 0) / max(rate, 1e-9)
        text += f", {rate:.1f} a second, {left / 60:.0f} min left"
    end = "\n" if done >= total else ""
    print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)
