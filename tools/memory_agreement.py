#!/usr/bin/env python3
"""Compare our buffer assignment and memory schedulers with those of XLA, as they are recorded.

    tools/memory_agreement.py --shared DIR [--skip-gpu] [--gpu-python PYTHON]

XLA:CPU: statistics, allocations, live ranges, heap traces and offsets of its own programs and of
scheduled modules of XLA's unit tests. XLA:GPU: totals, kinds and colors of large modules; of some
only the text before the last passes (rematerialization, removal of copies) is recorded, which shows
in values that it does not have, and their totals have no bar; with --gpu-python, the interpreter of
an environment with XLA:GPU's compiler, the last text is asked of that. Orders of the memory
schedulers.
Nowhere may two values that are needed at once share a byte. Prints a table; exits 1 if a bar is not
met, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory_lib.cpu import compare_cpu, cpu_records
from memory_lib.final_texts import Compiler
from memory_lib.gpu import GpuResult, compare_gpu, gpu_records
from memory_lib.schedules import compare_schedules

_MOST_SECONDS = 5.0
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: how many of how many, and how many it takes."""

    what: str
    count: float
    total: float | None = None
    least: float | None = None
    """The least share of `total`."""
    most: float | None = None
    """The most that `count` may be."""
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the bar is met; a line without a bar is for information."""
        if self.most is not None:
            return self.count <= self.most
        if self.least is None:
            return True
        return bool(self.total) and self.count >= self.least * (self.total or 0)

    def __str__(self) -> str:
        count = f"{self.count:,.6g}" + (f" of {self.total:,.6g}" if self.total is not None else "")
        bar = f"at least {self.least * 100:.3g}%" if self.least is not None else ""
        bar = f"at most {self.most:,.6g}" if self.most is not None else bar
        verdict = ("ok" if self.is_met else "MISSED") if bar else ""
        return f"{self.what:<46}{count:>20}  {bar:<24}{verdict:<7}{self.note}".rstrip()


def cpu_rows(oracle: Path) -> Iterator[Row]:
    """XLA:CPU, module by module."""
    results = [compare_cpu(*record) for record in cpu_records(oracle)]
    count = len(results)
    for what in ("allocations", "statistics", "live ranges", "heap traces"):
        recorded = [
            r for r in results if r.has_statistics or what in ("allocations", "live ranges")
        ]
        wrong = [result.id for result in recorded if what in result.wrong]
        right, name = len(recorded) - len(wrong), f"cpu: modules with equal {what}"
        yield Row(name, right, len(recorded), least=1.0, note=_some(wrong))
    right = sum(result.right_offsets for result in results)
    yield Row("cpu: offsets of values", right, sum(r.offsets for r in results), least=0.98)
    bad = [result.id for result in results if result.overlaps]
    yield Row("cpu: modules with overlaps", len(bad), count, most=0, note=_some(bad))


def gpu_rows(oracle: Path, compiler: Compiler | None = None) -> Iterator[Row]:
    """XLA:GPU, and how long the largest module takes."""
    results = [compare_gpu(*record) for record in gpu_records(oracle)]
    if compiler is not None:
        results = [
            result
            if result.is_final
            else compare_gpu(*record, final_text=compiler.final_text(result.id))
            for record, result in zip(gpu_records(oracle), results, strict=True)
        ]
    for result in results:
        print(_line(result))
    final = [r for r in results if r.is_final]
    earlier = [r for r in results if not r.is_final]
    near = [r for r in final if abs(r.ours - r.theirs) <= 0.01 * r.theirs]
    yield Row("gpu: equal totals", _equal(final), len(final), least=0.9)
    yield Row("gpu: totals within 1 %", len(near), len(final), least=1.0)
    yield Row("gpu: equal totals, from an earlier text", _equal(earlier), len(earlier))
    same_kinds = sum(r.same_kinds for r in results)
    yield Row("gpu: equal kinds and colors", same_kinds, len(results), least=1.0)
    right, offsets = sum(r.right_offsets for r in final), sum(r.offsets for r in final)
    yield Row("gpu: offsets of values", right, offsets, least=0.998)
    bad = [r.id for r in results if r.overlaps]
    yield Row("gpu: modules with overlaps", len(bad), len(results), most=0, note=_some(bad))
    largest = max(results, key=lambda result: result.instructions)
    note = f"{largest.instructions:,} instructions"
    yield Row("seconds for the largest module", largest.seconds, most=_MOST_SECONDS, note=note)
    yield Row("bytes this program needed", _most_resident(), most=_MOST_BYTES)


def _most_resident() -> int:
    """The most bytes of memory that this process had, on Linux."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")  # ru_maxrss has the parent's
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _equal(results: list[GpuResult]) -> int:
    return sum(result.ours == result.theirs for result in results)


def _line(result: GpuResult) -> str:
    change = result.ours / result.theirs - 1
    state = "equal" if result.ours == result.theirs else f"{change:+.3%}"
    text = "" if result.is_final else "  (only an earlier text is recorded)"
    line = f"  {result.id:<56} {result.seconds:6.2f} s  {state}{text}"
    return line if result.ours == result.theirs else f"{line}\n      {result.changes}"


def schedule_rows(oracle: Path) -> Iterator[Row]:
    """The memory schedulers."""
    right, total = compare_schedules(oracle)
    for algorithm, count in right.items():
        yield Row(f"schedulers: computations in {algorithm} order", count, total, least=0.98)


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--skip-gpu", action="store_true", help="leave out the large modules")
    parser.add_argument("--gpu-python", metavar="PYTHON", help="Python with XLA:GPU's compiler")
    options = parser.parse_args(arguments)
    oracle = options.shared / "oracle"
    if not oracle.is_dir():
        parser.error(f"no folder {oracle}")
    rows = [*cpu_rows(oracle), *schedule_rows(oracle)]
    if not options.skip_gpu:
        compiler = Compiler(options.shared, options.gpu_python) if options.gpu_python else None
        rows += gpu_rows(oracle, compiler)
    for row in rows:
        print(row)
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
