"""Tables of at most 80 columns, and the bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from figures import (
    FACTORS,
    Figures,
    InterpreterFigures,
    PassFigures,
    ProcessFigures,
    ScaleFigures,
    SchedulingFigures,
    TextFigures,
)
from inputs import MATMUL_SIZE, WHOLE_STEP
from measure import PASSES, STARTED

_NAME_WIDTH = 24
_ABSENT = "-"
_SLOWEST = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure and what it should be. `met` is None where the figure could not be measured."""

    what: str
    value: str
    bar: str
    met: bool | None

    def line(self) -> str:
        verdict = {True: "met", False: "NOT MET", None: "not measured"}[self.met]
        return f"{verdict:<13}{self.what:<41}{self.value:>10}  {self.bar}"


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns under headers, the first to the left, the others to the right."""
    lines = [headers, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [title]
    for line in lines:
        first, *rest = line
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        text.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(text)


def text_table(title: str, figures: list[TextFigures]) -> str:
    """Our times and XLA's for each file; x is how many times as fast as XLA."""
    headers = ["file", "instr", "XLA ms", "cold ms", "x", "warm ms", "x"]
    shown = ["cold", "warm"]
    if any(f.each for f in figures):
        headers.append("each x")
        shown.append("each")
    rows = []
    for f in figures:
        row = [shorten(f.file), str(f.instructions), milliseconds(f.xla)]
        for ours in (f.cold, f.warm):
            row += [milliseconds(ours), times(ratio(f.xla, ours))]
        rows.append(row + [times(ratio(f.xla, getattr(f, which))) for which in shown[2:]])
    cold, warm, *each = (times(speed(figures, which)) for which in shown)
    return table(title, headers, [*rows, ["geometric mean", "", "", "", cold, "", warm, *each]])


def forms_table(title: str, forms: dict[str, list[TextFigures]]) -> str:
    """A table of how many times as fast as XLA each form is read and printed."""
    rows = []
    for form, figures in forms.items():
        worst = min(figures, key=lambda f: ratio(f.xla, f.warm))
        least = times(ratio(worst.xla, worst.warm))
        rows.append([form, times(speed(figures, "warm")), least, shorten(worst.file)])
    return table(title, ["form", "x", "least", "of"], rows)


def pass_table(title: str, figures: list[PassFigures]) -> str:
    """Seconds for each pass on each file, also in parses, and that over the same of XLA."""
    rows = [
        [
            *(shorten(f.file), f.name, *(f"{n:,}" for n in f.instructions), f"{f.cold:.3f}"),
            *(times(f.to_parse), times(ratio(f.to_parse, f.xla_to_parse))),
        ]
        for f in figures
    ]
    return table(title, ["file", "pass", "before", "after", "CPU s", "parses", "/ XLA"], rows)


def scale_table(title: str, figures: list[ScaleFigures]) -> str:
    """Seconds at each factor, and how much dearer an instruction is at the largest."""
    headers = ["file", "pass", *(f"{n}x" for n in FACTORS), "per instr"]
    rows = [
        [shorten(f.file), f.name, *(f"{f.seconds[n]:.3f}" for n in FACTORS), times(f.growth)]
        for f in figures
    ]
    return table(title, headers, rows)


def memory_table(title: str, figures: Figures) -> str:
    """Peak memory of both processes for each file."""
    rows = [
        [shorten(f.file), megabytes(f.ours), megabytes(f.xla), times(ratio(f.ours, f.xla))]
        for f in figures.memory
    ]
    return table(title, ["file", "ours MB", "jaxlib MB", "ours/jaxlib"], rows)


def startup_table(title: str, figures: Figures) -> str:
    """Median times of whole processes, and their ratios to bare Python."""
    bare = figures.startup["python -c pass"]
    rows = [
        [
            name,
            *(milliseconds(found.wall), times(found.wall / bare.wall)),
            *(milliseconds(found.cpu), times(found.cpu / bare.cpu)),
        ]
        for name, found in figures.startup.items()
    ]
    return table(title, ["process", "ms", "x python", "CPU ms", "x python"], rows)


def run_table(title: str, figures: InterpreterFigures) -> str:
    """Our times over XLA's: the largest of them, and the geometric mean."""
    ranked = sorted(figures.modules, key=lambda f: ratio(f.ours, f.xla), reverse=True)
    rows = [
        [
            shorten(f.id.rpartition("/")[2]),
            *(str(f.devices), milliseconds(f.xla), milliseconds(f.ours)),
            times(ratio(f.ours, f.xla)),
        ]
        for f in ranked[:_SLOWEST]
    ]
    mean = f"geometric mean of {len(ranked)}"
    rows.append([mean, "", "", "", times(slowness(figures))])
    if figures.not_ours:
        rows.append([f"{figures.not_ours} ran on XLA only", "", "", "", ""])
    return table(title, ["module", "devices", "XLA ms", "ours ms", "ours/XLA"], rows)


def one_run_lines(figures: InterpreterFigures) -> str:
    """A matmul and a whole program."""
    shape = "x".join([str(MATMUL_SIZE)] * 3)
    return (
        f"f32 matmul {shape}: {milliseconds(figures.matmul)} ms, "
        f"numpy.matmul {milliseconds(figures.numpy_matmul)} ms\n"
        f"{shorten(WHOLE_STEP.name)} on {figures.step_devices} devices: {figures.step:.2f} s, "
        f"{figures.step_count / figures.step:,.0f} instructions per second"
    )


def scheduling_lines(title: str, figures: SchedulingFigures) -> str:
    """The largest module beside XLA, then one computation at several sizes."""
    rows = [
        [f"one computation, {count:,}", milliseconds(seconds), f"{seconds / count * 1e6:.0f}", ""]
        for count, seconds in figures.wide.items()
    ]
    if figures.module:
        each = f"{figures.ours / figures.instructions * 1e6:.0f}"
        xla = milliseconds(figures.xla)
        rows.insert(0, [shorten(figures.module), milliseconds(figures.ours), each, xla])
    return table(title, ["module", "ms", "us each", "XLA ms"], rows)


# -- bars -----------------------------------------------------------------------------------


_LONG_ENOUGH = 0.01
"""Seconds that a pass takes at least where its growth is judged: less is setting up."""


def bars(figures: Figures) -> list[Bar]:
    """The promises of the project beside the measured figures."""
    none = ProcessFigures(0.0, 0.0)
    bare, version, opt, jaxlib = (figures.startup.get(name, none) for name in STARTED)
    singles = [f for f in figures.passes if f.name in PASSES]
    longest = max(f.cold for f in singles)
    parses = max((ratio(f.to_parse, f.xla_to_parse) for f in singles), default=0.0)
    growth = max(
        f.growth for f in figures.scaling if f.name in PASSES and f.seconds[1] >= _LONG_ENOUGH
    )
    simplified = [f for f in figures.scaling if f.name == "algsimp"]
    of_most = max(simplified, key=lambda f: f.instructions[1])
    copies = max((f.to_parse for f in figures.copies), default=0.0)
    pipelining = max((ratio(f.to_parse, f.xla_to_parse) for f in figures.pipelining), default=0.0)
    memory = max((ratio(f.ours, f.xla) for f in figures.memory), default=0.0)
    largest = max(figures.printed, key=lambda f: f.instructions)
    form = min(figures.forms, key=lambda form: speed(figures.forms[form], "warm"))
    verified = next(f.cold for f in figures.verified if f.file == largest.file)
    return [
        _at_least("load+print / XLA, warm", speed(figures.printed, "warm"), 2.0),
        _at_least("load+print / XLA, cold, worst file", slowest(figures.printed, "cold"), 1.0),
        _at_least(f"the same, warm: {form}", speed(figures.forms[form], "warm"), 1.5),
        _at_least("load+verify+print / XLA, warm, worst", slowest(figures.verified, "warm"), 1.0),
        _at_least("load+verify+print / XLA, cold", speed(figures.verified, "cold"), 0.7),
        _at_most("verifying / loading the largest, cold", ratio(verified, largest.cold) - 1, 1.2),
        _at_most("peak memory / jaxlib, worst file", memory, 1.0),
        _at_most("hloopt --version / python -c pass", ratio(version.wall, bare.wall), 2.0),
        _at_most("hloopt opt, dce / jaxlib process", ratio(opt.wall, jaxlib.wall), 0.4),
        _at_most("the same, CPU time", ratio(opt.cpu, jaxlib.cpu), 0.4),
        Bar("slowest pass on the largest modules", f"{longest:.3f} s", "< 0.5 s", longest < 0.5),
        _at_most("passes in parses / the same of XLA, worst", parses, 3.0),
        _at_most("per instruction at 4x / 1x, worst pass", growth, 1.5),
        _at_most("algsimp in parses, warm, most instructions", of_most.in_parses, 2.0),
        _at_most("algsimp per instruction at 4x / 1x", max(f.growth for f in simplified), 1.2),
        _at_most("copy insertion in parses, worst", copies, 3.0),
        *_interpreter_bars(figures.interpreter),
        *_scheduling_bars(figures.scheduling),
        _at_most("pipelining in parses / the same of XLA, worst", pipelining, 3.0),
    ]


def _interpreter_bars(figures: InterpreterFigures | None) -> list[Bar]:
    if figures is None:
        return []
    matmul = ratio(figures.matmul, figures.numpy_matmul)
    return [
        _at_most("interpreter / XLA compiling and running", slowness(figures), 10.0),
        _at_most("matmul in the interpreter / numpy.matmul", matmul, 1.5),
    ]


def _scheduling_bars(figures: SchedulingFigures | None) -> list[Bar]:
    if figures is None:
        return []
    return [
        _at_most("scheduling the largest module / XLA", ratio(figures.ours, figures.xla), 2.0),
        _at_most("scheduling, per instruction, 100,000 / 12,500", figures.growth, 1.5),
    ]


def _at_least(what: str, value: float, bar: float) -> Bar:
    return Bar(what, times(value), f"≥ {times(bar)}", value >= bar if value else None)


def _at_most(what: str, value: float, bar: float) -> Bar:
    return Bar(what, times(value), f"≤ {times(bar)}", value <= bar if value else None)


def speed(figures: list[TextFigures], which: str) -> float:
    """XLA's time over ours, geometric mean over the files; 0 where there is none."""
    ratios = [ratio(f.xla, getattr(f, which)) for f in figures]
    return _geometric_mean(ratios)


def slowest(figures: list[TextFigures], which: str) -> float:
    """XLA's time over ours where that is least; 0 where there is none."""
    return min((ratio(f.xla, getattr(f, which)) for f in figures), default=0.0)


def slowness(figures: InterpreterFigures) -> float:
    """Our time over XLA's, geometric mean over the modules; 0 where there is none."""
    return _geometric_mean([ratio(f.ours, f.xla) for f in figures.modules])


def _geometric_mean(ratios: list[float]) -> float:
    if not ratios or not all(ratios):
        return 0.0
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


# -- cells ----------------------------------------------------------------------------------


def ratio(numerator: float, denominator: float) -> float:
    """The quotient; 0, which stands for unknown, where a side was not measured."""
    return numerator / denominator if denominator else 0.0


def times(value: float) -> str:
    return f"{value:.2f}x" if value else _ABSENT


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}" if seconds else _ABSENT


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f}" if size else _ABSENT


def shorten(name: str) -> str:
    """A file name without its endings, its middle cut out where it is long."""
    name = name.removesuffix(".gz").removesuffix(".hlo")
    if len(name) <= _NAME_WIDTH:
        return name
    half = (_NAME_WIDTH - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
