"""Programs that somebody wrote, scheduled under every setting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from schedule_fuzz_lib.compiler import Compiler
from schedule_fuzz_lib.judge import judge
from schedule_fuzz_lib.settings import SETTINGS

_SCHEDULED = re.compile(r",\s*is_scheduled=true")


def compare_files(compiler: Compiler, paths: Sequence[Path]) -> tuple[list[str], Counter[str]]:
    """A line for each program and setting with a difference, and all counts.

    A schedule that a file has is dropped: the compiler would keep it. Raises HloError where the
    compiler is not installed.
    """
    texts = [_SCHEDULED.sub("", path.read_text(encoding="utf-8"), count=1) for path in paths]
    lines: list[str] = []
    counts: Counter[str] = Counter()
    for setting in SETTINGS:
        if setting.times == "profile":
            continue
        answers = compiler.schedule(texts, setting, {})
        for path, text, answer in zip(paths, texts, answers, strict=True):
            verdict = judge(text, setting, answer, {})
            counts += verdict.counts
            problems = [p for p in (verdict.problem, *verdict.other_problems) if p is not None]
            if answer.loss:
                lines.append(f"{path.name}, {setting.name}: no answer: {answer.loss}")
            lines += [f"{path.name}, {setting.name}: {p.kind}: {p.details}" for p in problems]
    return lines, counts
