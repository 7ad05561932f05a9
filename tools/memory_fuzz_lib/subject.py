"""The programs of a seed, compiled in blocks, and what buffer assignment makes of each."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from memory_fuzz_lib.programs import program
from memory_lib.final_texts import Compiler
from memory_lib.gpu import FINAL, compare_gpu
from sweep_lib.compiled import CompiledPrograms
from sweep_lib.findings import Finding, Problem, Progress

_SEVERAL = re.compile(r" = \([^\n]*?\) fusion\(")


@dataclass
class Programs(CompiledPrograms[Any]):
    """Buffers of random programs, beside those of the compiler."""

    block: ClassVar[int] = 40

    def content(self, number: int) -> bytes:
        return program(self.seed, number).encode()

    def examine(self, number: int, known: Collection[str]) -> Progress:
        return self.judged(number, self.answer(number))

    def ask_block(self, numbers: range) -> list[Any]:
        texts = [program(self.seed, number) for number in numbers]
        return Compiler(self.shared, self.python).compile_all(texts)

    def judged(self, number: int, answer: Any) -> Progress:
        """The comparison of one program: `answer` has the text after the last pass, and what the
        compiler says of the buffers."""
        progress = Progress(1)
        if not answer.final or answer.memory is None:
            progress.outcomes["lost"] += 1
            return progress
        found = compare_gpu(str(number), Path(FINAL), answer.memory, answer.final)
        is_equal = found.ours == found.theirs and found.same_kinds and not found.overlaps
        progress.outcomes.update(
            {
                "programs": 1,
                "equal": int(is_equal and found.right_offsets == found.offsets),
                "offsets": found.offsets,
                "equal offsets": found.right_offsets,
                "fusions of several results": len(_SEVERAL.findall(answer.final)),
            }
        )
        progress.outcomes = +progress.outcomes
        if not is_equal or found.right_offsets < found.offsets:
            details = (
                f"{found.ours:,} bytes, XLA {found.theirs:,}; kinds equal: {found.same_kinds}; "
                f"{found.right_offsets} of {found.offsets} offsets equal; {found.overlaps} overlaps"
            )
            what = "other sizes" if not is_equal else "other offsets"
            content = f"// {details}\n{answer.final}".encode()
            progress.findings.append(
                Finding(number, Problem(f"{what}, program {number}", details), content)
            )
        return progress
