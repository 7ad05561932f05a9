"""All findings on a module's memory as a terminal page: report, verdict and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.reports.console.units import human_seconds
from hloopt.reports.memory.terminal import render_largest, render_memory

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.memory.model import MemoryFindings
    from hloopt.reports.memory.move_times import MoveTimes


def render_findings(
    found: MemoryFindings,
    console: Console,
    *,
    by: str = "buffer",
    depth: int = 3,
    top: int = 10,
    allocations: int = 0,
    buffers: int = 0,
) -> None:
    """Print the report as `render_memory`, the largest `buffers`, whether it fits, and advice."""
    limit = None if found.fit is None else found.fit.limit.size
    render_memory(
        found.report,
        console,
        by=by,
        depth=depth,
        top=top,
        allocations=allocations,
        limit=limit,
    )
    if buffers:
        render_largest(found.report, found.placed(), console, buffers)
    if found.move_times is not None:
        console.print()
        console.print(_moves(found.report.space, found.move_times))
    if found.no_verdict is not None:
        from rich.text import Text

        console.print()
        console.print(Text(found.no_verdict, style="yellow"))
    if found.fits or found.advice is not None:
        from hloopt.reports.memory.advice import render_advice, render_fit

        if found.fits:
            console.print()
        for fit in found.fits:
            render_fit(fit, console)
        if found.advice is not None:
            console.print()
            render_advice(found.advice, console, top)


def _moves(space: str, times: MoveTimes) -> str:
    moves = counted(times.moves, "asynchronous move")
    return (
        f"{moves} to and from {space}: {human_seconds(times.seconds)}, of which the schedule hides "
        f"{times.hidden_share:.1%}, exposed {human_seconds(times.exposed_seconds)}"
    )
