"""The programs of a seed, asked of the compiler in blocks of one setting each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from schedule_fuzz_lib.compiler import Answer, Compiler
from schedule_fuzz_lib.generate import program
from schedule_fuzz_lib.judge import Verdict, judge
from schedule_fuzz_lib.reduction import reduced
from schedule_fuzz_lib.settings import SETTINGS, Setting
from sweep_lib.compiled import CompiledPrograms
from sweep_lib.findings import Finding, Problem, Progress
from sweep_lib.tables import share_table

_INSTRUCTION = re.compile(r"^  (?:ROOT )?([\w.-]+_\d+) = ", re.M)
_COMMON = ("computations", "equal", "chains", "equal chains")


@dataclass
class Programs(CompiledPrograms[Answer]):
    """Schedules of random programs, beside those of the compiler."""

    block: ClassVar[int] = 20
    shrinking_seconds: float = 60.0

    @property
    def patience(self) -> float:
        return 600 + 4 * self.shrinking_seconds

    def content(self, number: int, skipped: Collection[str] = ()) -> bytes:
        text = program(self.seed, number, skipped).text()
        return f"// setting: {setting_of(number).name}\n{text}".encode()

    def examine(self, number: int, known: set[str]) -> Progress:
        made = program(self.seed, number)
        verdict = self._judged(made.text(), number, self.answer(number))
        setting = setting_of(number)
        outcomes = +verdict.counts
        for scene in (f"setting {setting.name}", *made.features):
            for what in _COMMON:
                outcomes[f"{scene}: {what}"] += verdict.counts[what]
        progress = Progress(1, +outcomes)
        found = [Problem(f"{kind}, {setting.name}", d) for kind, d in verdict.other_problems]
        if verdict.problem is not None:
            kind, details = verdict.problem
            found.append(Problem(f"{kind}, {setting.name}, program {number}", details))
        for problem in found:
            progress.findings.append(self._finding(number, problem, known))
        return progress

    def _finding(self, number: int, problem: Problem, known: set[str]) -> Finding:
        """The finding, with a smaller program where it is the first of its kind."""
        if problem.kind in known or not self.shrinking_seconds:
            return Finding(number, problem, self.content(number))
        known.add(problem.kind)
        smaller: dict[frozenset[str], Problem] = {}
        what = problem.kind.partition(",")[0]

        def fails(candidates: Sequence[frozenset[str]]) -> list[bool]:
            texts = [program(self.seed, number, skipped).text() for skipped in candidates]
            for skipped, text, answer in zip(
                candidates, texts, self._ask(texts, number), strict=True
            ):
                verdict = self._judged(text, number, answer)
                for found in (verdict.problem, *verdict.other_problems):
                    if found is not None and found.kind == what:
                        smaller[skipped] = found
            return [skipped in smaller for skipped in candidates]

        skipped = reduced(
            lambda left_out: program(self.seed, number, left_out).steps,
            fails,
            self.shrinking_seconds,
        )
        details = smaller[skipped].details if skipped in smaller else problem.details
        return Finding(number, Problem(problem.kind, details), self.content(number, skipped))

    def ask_block(self, numbers: range) -> list[Answer]:
        texts = [program(self.seed, number).text() for number in numbers]
        return self._ask(texts, numbers.start)

    def _ask(self, texts: Sequence[str], number: int) -> list[Answer]:
        setting = setting_of(number)
        profile: dict[str, float] = {}
        for text in texts:
            profile.update(self._profile(text, setting))
        return Compiler(self.shared, self.python).schedule(texts, setting, profile)

    def _judged(self, text: str, number: int, answer: Answer) -> Verdict:
        setting = setting_of(number)
        return judge(text, setting, answer, self._profile(text, setting))

    def _profile(self, text: str, setting: Setting) -> dict[str, float]:
        """Microseconds for most instructions of a program, some of them equal.

        An instruction has the same in any program that has it.
        """
        found = {}
        if setting.times == "profile":
            for name in _INSTRUCTION.findall(text):
                dice = Random(f"{self.seed}:{name}")
                if dice.random() < 0.8:
                    any_time = round(500 * dice.random(), 3)
                    found[name] = dice.choice((0.5, 1, 10, 100, 100, 1000, any_time))
        return found


def setting_of(number: int) -> Setting:
    """The setting that all programs of a block have."""
    return SETTINGS[number // Programs.block % len(SETTINGS)]


def outcome_table(outcomes: Counter[str]) -> str:
    """The share of equal orders by setting and by what programs have."""
    more = {"after our own order for memory": "equal chains"}
    return share_table(outcomes, "computations", "equal", more)
