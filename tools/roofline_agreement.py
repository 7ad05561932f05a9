#!/usr/bin/env python3
"""Compare the cost model roofline with the speed-of-light model, and before with after fusion.

    tools/roofline_agreement.py --shared DIR [--ask PYTHON] [--write]

Two bars. Of kernels whose times the speed-of-light model knows, in modules that XLA:GPU optimized,
the median relative error of roofline is at most 15 %. Before fusion the time of a step is within 30
% of that of XLA's own optimized text under the same model, for ten of twelve programs or as large a
share: steps recorded below `oracle/gpu`, and with `--ask` those of
`tools/roofline_lib/programs.py`, which a Python that has XLA:GPU's compiler compiles. Times are on
an H100, all instructions and collectives one after another: what runs at the same time is not the
matter of a cost model.

With `--write` the tables in docs/cost_models.md are renewed. Exits 1 if a bar is missed, 2 for
wrong usage. Nothing is random: there is no seed.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from document_tables import DOCUMENTS, renew_tables
from hloopt.analysis.latency import Origin
from hloopt.analysis.latency.roofline import RooflineModel
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.ir import Module, Opcode
from hloopt.reports.schedule.latency import analyze_latency
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.targets import Target, load_target
from hloopt.text import parse_module
from oracle_script import oracle_script

TARGET = "h100_sxm"
DOCUMENT = DOCUMENTS / "cost_models.md"
KERNEL_BAR = 0.15
"""The largest median relative error of a kernel."""
STEP_BAR = 0.3
"""The largest relative error of a step before fusion."""
STEP_SHARE = 10 / 12
"""The least share of steps within it."""
_KNOWN = {Origin.ROOFLINE: "loop or reduction", Origin.MATMUL_TABLE: "matrix product"}
_RESOLUTION = 2.5e-4
"""Microseconds that XLA tells apart."""


class Kernel(NamedTuple):
    """The time of a kernel in microseconds."""

    kind: str
    ours: float
    sol: float

    @property
    def error(self) -> float:
        """Relative to the speed of light."""
        return abs(self.ours - self.sol) / max(self.sol, _RESOLUTION)


def kernels(module: Module, target: Target) -> Iterator[Kernel]:
    """Yield the fusions and products that run by themselves, and that the speed of light knows."""
    sol, roofline = SpeedOfLightModel(target), RooflineModel(target, module)
    fused = {fusion.called[0] for fusion in module.instructions(Opcode.FUSION)}
    for instruction in module.instructions():
        if instruction.parent not in fused:
            time = sol.node_time(instruction)
            if time.origin in _KNOWN:
                ours = roofline.node_time(instruction).cycles
                yield Kernel(_KNOWN[time.origin], ours, time.cycles)


class Step(NamedTuple):
    """The time of a program, in microseconds."""

    name: str
    before: float
    after: float
    """The time of XLA's optimized text."""
    work_before: float
    """Without collectives."""
    work_after: float

    @property
    def error(self) -> float:
        return self.before / self.after - 1


def step(name: str, before: str, after: str) -> Step:
    """Both texts under the model."""
    (whole, work), (whole_after, work_after) = map(_times, (before, after))
    return Step(name, whole, whole_after, work, work_after)


def _times(text: str) -> tuple[float, float]:
    """All instructions and operations one after another, and without what links do."""
    choice = CostModelChoice(name="roofline", target=TARGET)
    settings = ScheduleSettings(cost_model=choice, preset="xla-gpu")
    report = analyze_latency(parse_module(text), settings)
    rows = [*report.instructions, *report.operations]
    work = sum(row.total for row in rows if row.time.origin is not Origin.LINK)
    return sum(row.total for row in rows), work


def recorded_steps(folder: Path) -> Iterator[Step]:
    """Yield the recorded steps whose texts before optimizations are there."""
    for text in sorted(folder.glob("*/input.hlo.gz")):
        optimized = text.with_name("default") / "after_optimizations.hlo.gz"
        yield step(text.parent.name, _read(text), _read(optimized))


def own_steps(shared: Path, python: str) -> Iterator[Step]:
    """Yield our programs, compiled by XLA:GPU. Raises HloError."""
    from roofline_lib.programs import programs

    oracle = shared / "oracle"
    xla_gpu = oracle_script(oracle, "xla_gpu")
    texts = programs()
    description = str(oracle / "targets" / f"{TARGET}.txtpb")
    try:
        compiled: Any = xla_gpu.compile_many(
            list(texts.items()), target=description, python=python, until="memory"
        )
    except xla_gpu.PackagesMissing as error:
        raise HloError(f"{python} has no XLA:GPU: {error}") from None
    for (name, text), result in zip(texts.items(), compiled, strict=True):
        if not result.final:
            raise HloError(f"XLA:GPU does not compile {name}: {result.error}")
        yield step(name, text, result.final)


def _read(path: Path) -> str:
    with gzip.open(path, "rt") as file:
        return file.read()


def kernel_table(found: Sequence[Kernel]) -> str:
    """The errors by kind, of kernels that take a microsecond or more, and of all."""
    groups = {kind: [k for k in found if k.kind == kind] for kind in _KNOWN.values()}
    groups["a microsecond or more"] = [kernel for kernel in found if kernel.sol >= 1]
    groups["all"] = list(found)
    lines = ["| kernels | number | median error | 75th percentile | 90th percentile |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for kind, group in groups.items():
        if group:
            figures = " | ".join(f"{_at(group, share):.1%}" for share in (0.5, 0.75, 0.9))
            lines.append(f"| {kind} | {len(group):,} | {figures} |")
    return "\n".join(lines)


def _at(group: Iterable[Kernel], share: float) -> float:
    errors = sorted(kernel.error for kernel in group)
    return errors[min(int(len(errors) * share), len(errors) - 1)]


def step_table(steps: Iterable[Step]) -> str:
    """The times of programs before and after XLA's optimizations."""
    lines = ["| program | before fusion | optimized | ratio | without collectives |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for found in steps:
        times = f"{found.before:,.1f} µs | {found.after:,.1f} µs | {1 + found.error:.2f}"
        lines.append(f"| {found.name} | {times} | {found.work_before / found.work_after:.2f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--ask", metavar="PYTHON", help="ask the compiler that this Python has")
    parser.add_argument("--write", action="store_true", help="renew the tables of the document")
    options = parser.parse_args(arguments)
    recorded = options.shared / "oracle" / "gpu"
    optimized = sorted(recorded.glob("*/default/after_optimizations.hlo.gz"))
    if not optimized:
        parser.error(f"no optimized module in {recorded}")
    target = load_target(TARGET)
    found = [k for path in optimized for k in kernels(parse_module(_read(path)), target)]
    try:
        steps = list(recorded_steps(recorded))
        if options.ask:
            steps += own_steps(options.shared, options.ask)
    except HloError as error:
        parser.error(error.message)
    tables = {"roofline kernels": kernel_table(found), "roofline steps": step_table(steps)}
    print("\n\n".join(tables.values()))
    near = sum(abs(each.error) <= STEP_BAR for each in steps)
    print(f"\n{near} of {len(steps)} steps within {STEP_BAR:.0%}")
    if options.write:
        renew_tables(DOCUMENT, tables)
    return int(_at(found, 0.5) > KERNEL_BAR or near < STEP_SHARE * len(steps))


if __name__ == "__main__":
    sys.exit(main())
