"""The modules of the corpus in the order of a seed, with the verdicts on all runs of passes."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from pass_agreement_lib.answers import Answer, Answers
from pass_agreement_lib.chain import PassRun
from pass_agreement_lib.judge import Judged, Kind, judge
from pass_agreement_lib.places import TARGET, name_of, pass_at
from sweep_lib.compiled import CompiledPrograms
from sweep_lib.findings import Finding, Problem, Progress, TooSlow
from sweep_lib.limits import Limits

_SECONDS = 30.0
"""Processor time of one run of a pass and its comparison."""
_MEGABYTES = 4096
_LONGEST = 64_000_000
"""Characters of a program: XLA writes constants without elements as gigabytes of braces."""
FOUND = frozenset((Kind.DIFFERENT, Kind.FAILED))
"""Verdicts that are findings, each of which wants a reason."""
_PARTICULAR = re.compile(r"%[\w.-]+:? ?|'[^']*'|\{[\w, {}.]*\}|\d[\d.,e+-]*|\[[^\]]*\]")
"""The parts of a reason that are of one module alone."""


UNKNOWN = "unknown: "
"""Begins the outcomes that count reasons why a verdict cannot be told."""


class Case(NamedTuple):
    """The subject of a finding; its text is the kind of the finding, so each counts once."""

    kind: str
    pass_name: str
    module: str
    reason: str

    @property
    def text(self) -> str:
        return " | ".join(self)

    @classmethod
    def of(cls, text: str) -> Case | None:
        """The case that a kind of findings has; None for what the sweep found by itself."""
        parts = text.split(" | ", 3)
        return cls(*parts) if len(parts) == 4 else None


@dataclass
class Modules(CompiledPrograms[Answer]):
    """Passes of ours beside the compiler's on modules of the corpus."""

    block: ClassVar[int] = 20
    folder: Path = Path("build", "pass-agreement")
    _paths: list[Path] = field(default_factory=list, init=False)

    @property
    def paths(self) -> list[Path]:
        """The files of all modules, in the order of the seed."""
        if not self._paths:
            self._paths = sorted((self.shared / "corpus" / "modules").glob("*/*.hlo"))
            random.Random(self.seed).shuffle(self._paths)
        return self._paths

    def content(self, number: int) -> bytes:
        return self.paths[number].read_bytes()

    def name(self, number: int) -> str:
        """The id of a module in the corpus."""
        path = self.paths[number]
        return f"{path.parent.name}/{path.stem}"

    def ask_block(self, numbers: range) -> list[Answer]:
        answers = Answers(self.folder / "answers", self.shared, self.python, TARGET)
        rest = range(numbers.start, min(numbers.stop, len(self.paths)))
        texts = [self.content(number).decode(errors="replace") for number in rest]
        return [*answers.of(texts), *[Answer([], "")] * (len(numbers) - len(rest))]

    def examine(self, number: int, known: set[str]) -> Progress:
        progress = Progress(1)
        answer = self.answer(number)
        progress.outcomes["compiled" if not answer.error else "failed behind passes"] += bool(
            answer.runs
        )
        progress.outcomes["not read by XLA"] += not answer.runs
        for run, passes, judged in _judged(answer.runs):
            name = name_of(passes)
            progress.outcomes[f"{name}|{judged.kind}"] += 1
            if judged.only:
                progress.outcomes[f"{name}|only {judged.only}"] += 1
            if judged.kind is Kind.UNKNOWN:
                progress.outcomes[f"{UNKNOWN}{_common(judged.reason)}"] += 1
            if judged.kind in FOUND:
                case = Case(judged.kind, name, self.name(number), _one_line(judged.reason))
                if case.text not in {each.problem.kind for each in progress.findings}:
                    content = _record(run, passes, judged).encode()
                    problem = Problem(case.text, f"--passes '{passes}'\n{judged.reason}")
                    progress.findings.append(Finding(number, problem, content))
        progress.outcomes = +progress.outcomes
        return progress


def _judged(runs: list[PassRun]) -> Iterator[tuple[PassRun, str, Judged]]:
    """The verdicts on all runs that have a pass of ours; equal ones are judged once."""
    known: dict[tuple[str, str, str], Judged] = {}
    for run in runs:
        passes = pass_at(run.name, run.pipeline, run.before)
        if passes is None:
            continue
        key = passes, run.before, run.after
        if key not in known:
            known[key] = _within_limits(run, passes)
        yield run, passes, known[key]


def _within_limits(run: PassRun, passes: str) -> Judged:
    if max(len(run.before), len(run.after)) > _LONGEST:
        return Judged(
            Kind.UNKNOWN, f"beyond the limits: a text of more than {_LONGEST:,} characters"
        )
    try:
        with Limits(_SECONDS, _MEGABYTES):
            return judge(run, passes)
    except (TooSlow, MemoryError) as error:
        return Judged(Kind.UNKNOWN, f"beyond the limits: {type(error).__name__}")


def _common(reason: str) -> str:
    """A reason without what it says of one module alone."""
    text = _PARTICULAR.sub("…", _one_line(reason).partition(";")[0].partition(", from")[0])
    return re.sub(r"…[… ]*", "… ", text).strip()


def _one_line(reason: str) -> str:
    return (reason.splitlines() or [""])[0][:160]


def _record(run: PassRun, passes: str, judged: Judged) -> str:
    """All there is of a finding: the three texts one after the other."""
    parts = {f"before {passes}": run.before, "XLA's": run.after, "ours": judged.ours}
    return os.linesep.join(f"// ---- {name}\n{text}" for name, text in parts.items())
