"""The programs of a seed, compiled in blocks, and what buffer assignment makes of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hloopt.memory.allocations import AllocationKind
from hloopt.memory.backends import gpu_backend
from memory_fuzz_lib.programs import program
from memory_fuzz_lib.settings import SETTINGS, Setting
from memory_lib.final_texts import Compiler
from memory_lib.gpu import FINAL, GpuResult, compare_gpu
from sweep_lib.compiled import CompiledPrograms
from sweep_lib.findings import Finding, Problem, Progress
from sweep_lib.tables import share_table

_SEVERAL = re.compile(r" = \([^\n]*?\) fusion\(")
_COMMON = ("programs", "equal", "offsets", "equal offsets")


@dataclass
class Programs(CompiledPrograms[Any]):
    """Buffers of random programs, beside those of the compiler."""

    block: ClassVar[int] = 40

    def content(self, number: int) -> bytes:
        flags = "".join(f"// {flag}\n" for flag in setting_of(number).texts())
        return (flags + program(self.seed, number).text).encode()

    def examine(self, number: int, known: Collection[str]) -> Progress:
        return self.judged(number, self.answer(number))

    def ask_block(self, numbers: range) -> list[Any]:
        texts = [program(self.seed, number).text for number in numbers]
        flags = setting_of(numbers.start).texts()
        return Compiler(self.shared, self.python).compile_all(texts, flags)

    def judged(self, number: int, answer: Any) -> Progress:
        """The comparison of one program: `answer` has the text after the last pass, and what the
        compiler says of the buffers."""
        progress = Progress(1)
        if not answer.final or answer.memory is None:
            progress.outcomes["lost"] += 1
            return progress
        setting = setting_of(number)
        backend = gpu_backend(setting.memory())
        found = compare_gpu(str(number), Path(FINAL), answer.memory, answer.final, backend)
        is_equal = not found.wrong_kinds and not found.overlaps
        counts = Counter(
            {
                "programs": 1,
                "equal": int(is_equal),
                "offsets": found.offsets,
                "equal offsets": found.right_offsets,
            }
        )
        scenes = {f"setting {setting.name}", *program(self.seed, number).features}
        if _SEVERAL.search(answer.final):
            scenes.add("fusions of several results")
        progress.outcomes = +counts
        for scene in scenes:
            progress.outcomes += Counter({f"{scene}: {what}": counts[what] for what in _COMMON})
        progress.outcomes += Counter({f"other {kind}": 1 for kind in found.wrong_kinds})
        if not is_equal or found.right_offsets < found.offsets:
            progress.findings.append(_finding(number, found, answer.final, is_equal=is_equal))
        return progress


def setting_of(number: int) -> Setting:
    """The setting that all programs of a block have."""
    return SETTINGS[number // Programs.block % len(SETTINGS)]


def _finding(number: int, found: GpuResult, text: str, *, is_equal: bool) -> Finding:
    details = (
        f"{found.ours:,} bytes, XLA {found.theirs:,}; other sizes of "
        f"{', '.join(found.wrong_kinds) or 'no kind'}; "
        f"{found.right_offsets} of {found.offsets} offsets equal; {found.overlaps} overlaps"
    )
    what = "other offsets" if is_equal else "other sizes"
    problem = Problem(f"{what}, program {number}", details)
    return Finding(number, problem, f"// {details}\n{text}".encode())


def outcome_table(outcomes: Counter[str]) -> str:
    """The share of programs with equal sizes by what programs have, and the kinds that differ."""
    more = {"offsets": "offsets", "equal offsets": "equal offsets"}
    kinds = [
        f"{outcomes[f'other {kind.value}']:,} of {kind.value} memory" for kind in AllocationKind
    ]
    table = share_table(outcomes, "programs", "equal", more)
    return f"{table}\n\nprograms with other sizes: {', '.join(kinds)}"
