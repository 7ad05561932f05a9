"""A calibration of a target as plain data and on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hloopt.analysis.calibration import Calibration, Figure
from hloopt.analysis.calibration.samples import Kind
from hloopt.diagnostics import counted
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_change, human_rate, human_seconds, human_share

if TYPE_CHECKING:
    from rich.console import Console


def calibration_to_json(calibration: Calibration) -> dict[str, Any]:
    """Figures per second, of a launch in microseconds; errors as shares of the measured time."""
    return {
        "target": calibration.target.name,
        "costs": calibration.costs,
        "named": calibration.named,
        "samples": calibration.samples,
        "figures": [
            {
                "figure": str(figure.name),
                "before": figure.before,
                "after": figure.after,
                "samples": figure.samples,
            }
            for figure in calibration.figures
        ],
        "errors": [
            {
                "figure": None if error.name is None else str(error.name),
                "samples": error.samples,
                "seconds": error.seconds,
                "before": error.before,
                "after": error.after,
                "held_out": error.held_out,
            }
            for error in calibration.errors
        ],
        "notes": list(_notes(calibration)),
    }


def render_calibration(calibration: Calibration, console: Console) -> None:
    """Print the figures before and after, the error of the times, and what is not covered."""
    from hloopt.reports.console.table import ReportTable

    table = ReportTable()
    table.add_column("figure", style="bold")
    for head in ("before", "after", "change", "fitted to"):
        table.add_column(head, justify="right")
    for figure in calibration.figures:
        before, after = (_amount(figure, value) for value in (figure.before, figure.after))
        change = human_change(figure.before, figure.after) if figure.before else ""
        table.add_row(str(figure.name), before, after, change, f"{figure.samples:,}")
    console.print(table)
    console.print()
    table = ReportTable()
    table.add_column("bound by", style="bold")
    for head in ("instructions", "measured", "error before", "after", "held out"):
        table.add_column(head, justify="right")
    for error in calibration.errors:
        table.add_row(
            "all" if error.name is None else str(error.name),
            f"{error.samples:,}",
            human_seconds(error.seconds),
            human_share(error.before),
            human_share(error.after),
            "-" if error.held_out is None else human_share(error.held_out),
        )
    console.print(table)
    for note in _notes(calibration):
        print_footnote(console, note)


def _amount(figure: Figure, value: float) -> str:
    if figure.name.kind is Kind.LAUNCH:
        return f"{value:.3g} us"
    unit = "flop/s" if figure.name.kind in (Kind.MATRIX, Kind.VECTOR) else "B/s"
    return human_rate(value, unit)


def _notes(calibration: Calibration) -> Iterator[str]:
    costs = counted(calibration.costs, "cost of the profile is", "costs of the profile are")
    named = counted(calibration.named, "instruction")
    yield (
        f"{costs} above 0; the module has {named} of these names, and "
        f"{counted(calibration.samples, 'instruction')} whose bytes or flops are known"
    )
    yield (
        "errors are medians of how far times by roofline are off, as a share of the measured time; "
        "held out: of each fifth of the instructions by a fit to the others"
    )
    fitted = {figure.name.kind for figure in calibration.figures}
    if Kind.MATRIX in fitted:
        yield "matrix rates are such that large products reach 80% of them"
    if calibration.target.gpu is not None and calibration.target.gpu.tables is not None:
        yield (
            "use it with --cost-model roofline: sol takes products, and collectives within a node, "
            "from tables of measurements"
        )
