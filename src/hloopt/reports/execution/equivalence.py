"""The result of comparing two modules, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.equivalence.measures import shown
from hloopt.reports.console.units import human_share
from hloopt.reports.execution.values import json_number

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.equivalence import Comparison
    from hloopt.equivalence.measures import Largest, OutputErrors

_STYLES = {
    "equal": "bold green",
    "different": "bold red",
    "not decided": "bold yellow",
}


def verdict_of(comparison: Comparison) -> str:
    """`equal`, `different` or `not decided`."""
    mismatch = comparison.mismatch
    if mismatch is None:
        return "equal"
    return "different" if mismatch.is_decided else "not decided"


def print_verdict(comparison: Comparison, console: Console) -> None:
    """The verdict, with the reason or the extent of the comparison, in a line."""
    from rich.text import Text

    verdict = verdict_of(comparison)
    mismatch = comparison.mismatch
    text = _extent(comparison) if mismatch is None else mismatch.reason
    console.print(Text.assemble((f"{verdict}: ", _STYLES[verdict]), text), soft_wrap=True)


def render_comparison(comparison: Comparison, console: Console, *, top: int) -> None:
    """The verdict, how far outputs are off, and what was not compared."""
    from rich.text import Text

    print_verdict(comparison, console)
    if comparison.specials:
        console.print(f"also on inputs with {', '.join(comparison.specials)}")
    off = [errors for errors in comparison.outputs if errors.unequal]
    if off and top:
        _render_errors(sorted(off, key=_badness, reverse=True), console, top)
    if comparison.nearest is not None:
        console.print(in_ulps(comparison.nearest), soft_wrap=True)
    for difference in comparison.on_specials:
        console.print(Text.assemble(("on special values alone: ", "yellow"), difference))
    for note in comparison.notes:
        console.print(Text.assemble(("not compared: ", "yellow"), note))


def in_ulps(errors: OutputErrors) -> str:
    """The error and the tolerance of an output whose precision a narrow type limits."""
    off, most = errors.error_in_units or 0.0, errors.tolerance_in_units or 0.0
    return f"{errors.name} is off by {shown(off, 2)} of {shown(most, 2)} ulps of {errors.narrowest}"


def _extent(comparison: Comparison) -> str:
    """The extent of the comparison, in a line."""
    left, right = comparison.devices
    outputs = [errors for errors in comparison.outputs if errors.leaf[:1] != (-1,)]
    devices = counted(left, "device") if left == right else f"{left} and {right} devices"
    parts = [counted(len(outputs), "output"), devices, counted(comparison.seeds, "seed")]
    same = sum(not errors.unequal for errors in comparison.outputs)
    if same == len(comparison.outputs):
        return ", ".join([*parts, "bit for bit"])
    return ", ".join(parts) + (f"; {same} bit for bit" if same else "")


def _badness(errors: OutputErrors) -> tuple[float, float]:
    """Sorts outputs: those first whose elements are off most beside what rounding does."""
    absolute = errors.absolute.value if errors.absolute else 0.0
    relative = errors.relative.value if errors.relative else float("inf")
    return (absolute / errors.rounding if errors.rounding else 0.0, relative)


def _render_errors(rows: Sequence[OutputErrors], console: Console, top: int) -> None:
    from hloopt.reports.console.table import ReportTable
    from hloopt.reports.console.units import middle, more_text, page_width

    table = ReportTable(gap=2)
    shows_rounding = any(errors.rounding is not None for errors in rows)
    table.add_column("output", cut=middle)
    table.add_column("type")
    heads = ["unequal", "absolute", "at", "relative", "ulps", *["rounding"] * shows_rounding]
    for name in heads:
        is_kept = True if name in ("absolute", "rounding") else None
        table.add_column(name, justify="left" if name == "at" else "right", stays=is_kept)
    for errors in rows[:top]:
        cells = [
            _share(errors),
            _value(errors.absolute),
            _index(errors.absolute),
            _value(errors.relative),
            _value(errors.ulps, whole=True),
        ]
        if shows_rounding:
            cells.append("" if errors.rounding is None else shown(errors.rounding, 2))
        table.add_row(_name(errors), errors.type, *cells)
    console.print(table, width=page_width(console))
    if len(rows) > top:
        console.print(more_text(len(rows) - top, console.width), style="dim")


def _name(errors: OutputErrors) -> str:
    return errors.name.removeprefix("output") or "result"


def _share(errors: OutputErrors) -> str:
    """The part of the elements that is not equal."""
    return human_share(errors.unequal / errors.elements) if errors.elements else ""


def _value(largest: Largest | None, *, whole: bool = False) -> str:
    if largest is None:
        return ""
    return f"{largest.value:,.0f}" if whole and largest.value < 1e6 else shown(largest.value, 2)


def _index(largest: Largest | None) -> str:
    return f"[{','.join(map(str, largest.index))}]" if largest and largest.index else ""


# -- JSON -----------------------------------------------------------------------------------------


def comparison_to_json(comparison: Comparison) -> dict[str, object]:
    """All there is to report."""
    mismatch = comparison.mismatch
    found: dict[str, object] = {
        "verdict": verdict_of(comparison).replace(" ", "-"),
        "equal": mismatch is None,
        "devices_before": comparison.devices[0],
        "devices_after": comparison.devices[1],
        "seeds": comparison.seeds,
        "special_values": comparison.specials,
        "on_special_values_alone": comparison.on_specials,
        "outputs": [errors_to_json(errors) for errors in comparison.outputs],
        "not_compared": comparison.notes,
    }
    if mismatch is not None:
        difference = mismatch.difference
        found["difference"] = {
            "reason": mismatch.reason,
            "seed": mismatch.seed,
            "special_values": mismatch.special,
            "device": mismatch.device,
            "output": difference and list(difference.leaf),
            "index": difference and difference.index and list(difference.index),
            "before": difference and difference.left,
            "after": difference and difference.right,
            "different_elements": difference and difference.count,
            "elements": difference and difference.total,
        }
    return found


def errors_to_json(errors: OutputErrors) -> dict[str, object]:
    """How far an output is off."""
    return {
        "name": errors.name,
        "output": list(errors.leaf) if errors.leaf[:1] != (-1,) else None,
        "type": errors.type,
        "elements": errors.elements,
        "unequal": errors.unequal,
        "not_finite": errors.not_finite,
        "absolute": _largest_to_json(errors.absolute),
        "relative": _largest_to_json(errors.relative),
        "ulps": _largest_to_json(errors.ulps),
        "rounding": None if errors.rounding is None else json_number(errors.rounding),
        "narrowest": errors.narrowest,
        "narrowest_ulps": _number_to_json(errors.error_in_units),
        "narrowest_ulps_allowed": _number_to_json(errors.tolerance_in_units),
    }


def _number_to_json(number: float | None) -> object:
    return None if number is None else json_number(number)


def _largest_to_json(largest: Largest | None) -> dict[str, object] | None:
    if largest is None:
        return None
    return {
        "value": json_number(largest.value),
        "index": list(largest.index),
        "device": largest.device,
        "seed": largest.seed,
        "before": largest.left,
        "after": largest.right,
    }
