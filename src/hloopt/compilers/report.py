"""A compile as tables and as JSON: XLA's memory statistics, and the time of its passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hloopt.compilers.compiling import REPORTS, Compiled
from hloopt.compilers.pjrt_api import MEMORY_STATS
from hloopt.diagnostics import HloError
from hloopt.dumps.logs import Times, read_pass_times
from hloopt.patterns import pattern

if TYPE_CHECKING:
    from rich.console import Console

_DEVICE_BYTES = pattern(r"Memory Space: default \(color=0\)\s+Total bytes: (\d+)")
"""The device's own memory, in XLA's report: it has other spaces, such as the host's, too."""


def note(compiled: Compiled) -> str:
    """The compiler, and what a compile without a device is not."""
    unknown = ""
    if compiled.left_out:
        fields = ", ".join(compiled.left_out)
        unknown = f"; it does not know {fields} of the description of the device"
    return (
        f"{conditions(compiled.version, compiled.target)}: kernels and times may differ from "
        f"yours{unknown}"
    )


def conditions(version: str, target: str) -> str:
    """A compiler, and what it compiles for, with and without."""
    where = "for this machine" if target == "cpu" else "without a device or autotuning"
    return f"{version}, {where}, with the flags given only"


def needed_bytes(compiled: Compiled) -> int:
    """The memory of a device that XLA's buffers need; 0 where no report of XLA tells."""
    reports = (path.read_text(encoding="utf-8") for path in compiled.dumps.glob(REPORTS))
    found = filter(None, map(_DEVICE_BYTES.search, reports))
    return max((int(match[1]) for match in found), default=0)


def shortfall(compiled: Compiled) -> str | None:
    """The sentence that a program does not fit into its device; None where it may, as far as XLA's
    buffers tell. XLA compiles what does not fit without a word."""
    from hloopt.reports.console.units import human_bytes

    needed, capacity = needed_bytes(compiled), compiled.memory_size
    if not 0 < capacity < needed:
        return None
    where = "this machine" if compiled.target == "cpu" else compiled.target
    return (
        f"it does not fit: XLA's buffers need {human_bytes(needed)} on each device, and {where} "
        f"has {human_bytes(capacity)} of memory"
    )


def notes(compiled: Compiled) -> list[str]:
    """Sentences for below a report, `shortfall` first."""
    return [each for each in (shortfall(compiled), note(compiled)) if each]


def times_of(compiled: Compiled) -> Times:
    """Times of passes and pipelines; empty where none ran."""
    try:
        return read_pass_times(str(compiled.log))
    except HloError:
        return {}


def pass_times(compiled: Compiled) -> Times:
    """Times of passes, the slowest first; a pipeline that is a pass counts by its parts only."""
    times = times_of(compiled)
    pipelines = {pipeline for _, pipeline, _ in times}
    ranked = sorted(times.items(), key=lambda item: -item[1].seconds)
    return {key: time for key, time in ranked if key[2] not in pipelines}


def compile_to_json(compiled: Compiled, more_notes: Sequence[str] = ()) -> dict[str, Any]:
    """Bytes, seconds, the compiler and its passes."""
    return {
        "memory": None if compiled.memory is None else dict(compiled.memory),
        "needed": needed_bytes(compiled),
        "capacity": compiled.memory_size,
        "seconds": compiled.seconds,
        "compiler": compiled.version,
        "passes": [
            {"module": module, "pipeline": pipeline, "pass": name, **time._asdict()}
            for (module, pipeline, name), time in pass_times(compiled).items()
        ],
        "notes": [*notes(compiled), *more_notes],
    }


def render_compile(compiled: Compiled, console: Console, *, top: int) -> None:
    """Print the tables, with the `top` slowest passes."""
    from hloopt.diagnostics import counted
    from hloopt.reports.console.footnotes import print_footnote
    from hloopt.reports.console.table import ReportTable
    from hloopt.reports.console.units import human_bytes, human_seconds, page_width

    width = page_width(console)
    memory = ReportTable(gap=2)
    memory.add_column("memory of a device", style="bold")
    memory.add_column("", justify="right")
    for name in MEMORY_STATS:
        figure = (compiled.memory or {}).get(name, 0)
        if figure:  # most devices have no figures for the host
            memory.add_row(name.replace("_", " "), human_bytes(figure))
    console.print(memory, width=width)
    console.print()
    times = pass_times(compiled)
    total = sum(time.seconds for time in times.values())
    passes = ReportTable(gap=2)
    passes.add_column("pass", style="bold")
    passes.add_column("pipeline", style="dim")
    passes.add_column("runs", justify="right")
    passes.add_column("time", justify="right")
    for (_, pipeline, name), time in list(times.items())[:top]:
        passes.add_row(name, pipeline, f"{time.runs:,}", human_seconds(time.seconds))
    console.print(passes, width=width)
    print_footnote(
        console,
        f"{counted(len(times), 'pass', 'passes')}, {human_seconds(total)} of "
        f"{human_seconds(compiled.seconds or 0.0)}, with logging and dumps",
        width=width,
    )
    for each in notes(compiled):
        print_footnote(console, each, width=width)
