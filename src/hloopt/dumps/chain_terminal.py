"""The chain of passes of one module as a terminal page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.dumps.chain import Chain, Effect, Step
from hloopt.dumps.facts import Facts
from hloopt.dumps.logs import Times
from hloopt.dumps.names import PIPELINE_START
from hloopt.dumps.terminal import compilation_title
from hloopt.dumps.tracking import Event
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import (
    human_bytes,
    human_change,
    human_count,
    human_seconds,
    middle,
    page_width,
    some,
)

if TYPE_CHECKING:
    from rich.console import Console


def render_chain(
    chain: Chain, console: Console, *, shows_all: bool, times: Times | None = None
) -> None:
    """Print the steps that changed the program, or all of them; with `times` how long passes took,
    all runs of one pipeline together."""
    from rich.text import Text

    width = page_width(console)
    title = compilation_title(chain.compilation)
    dumps, changed = counted(len(chain.steps), "dump"), len(chain.changes)
    console.print(
        Text.assemble((title, "bold"), f": {dumps}, {changed:,} changed the program"), width=width
    )
    shown = {step.number for step in chain.steps if shows_all or _is_news(step)}
    console.print()
    table = ReportTable(gap=2)
    table.add_column("dump", justify="right", stays=True)
    table.add_column("pass", style="bold", cut=middle)
    table.add_column("pipeline", style="dim", cut=middle, stays=False)
    table.add_column("changed", shown=shows_all)
    table.add_column("instructions", justify="right", stays=True)
    table.add_column("collectives", justify="right", stays=True)
    table.add_column("time", justify="right", stays=True, shown=times is not None)
    table.add_column("peak", justify="right")
    table.add_column("flops", justify="right")
    before: Facts | None = None
    for step in chain.steps:
        if step.number in shown:
            table.add_row(*_cells(chain, step, before, times or {}))
        before = step.facts or before
    console.print(table, width=width)
    same = len(chain.steps) - len(shown)
    if same:
        leave = "leaves" if same == 1 else "leave"
        print_footnote(
            console, f"{counted(same, 'dump')} {leave} the program as it was: --all shows them"
        )


def _is_news(step: Step) -> bool:
    return step.effect in (Effect.FIRST, Effect.PROGRAM, Effect.UNKNOWN)


def _cells(chain: Chain, step: Step, before: Facts | None, times: Times) -> tuple[str, ...]:
    stage, facts = step.stage, step.facts
    number = f"{stage.number:04}" if stage.pipeline else ""
    name = pass_text(step)
    if facts is None:
        return number, name, stage.pipeline, step.effect.value, "?", "?"
    time = times.get((chain.compilation.name, stage.pipeline, stage.after))
    return (
        number,
        name,
        stage.pipeline,
        step.effect.value,
        _count(facts.instructions, None if before is None else before.instructions),
        _collectives(facts, before),
        "-" if time is None else human_seconds(time.seconds),
        _amount(facts.peak, None if before is None else before.peak, human_bytes),
        _amount(facts.flops, None if before is None else before.flops, human_count),
    )


def pass_text(step: Step) -> str:
    """The pass that has run; at the beginning of a pipeline the one that is to run."""
    stage = step.stage
    return f"before {stage.before}" if stage.after == PIPELINE_START else stage.after


def _count(new: int, old: int | None) -> str:
    return f"{new:,}" if old is None or old == new else f"{new:,} ({new - old:+,})"


def _collectives(facts: Facts, before: Facts | None) -> str:
    new = _collective_count(facts)
    return (
        "-" if new is None else _count(new, None if before is None else _collective_count(before))
    )


def _collective_count(facts: Facts) -> int | None:
    if facts.collectives is None:
        return None
    return sum(number for number, _ in facts.collectives.values())


def _amount(new: int | None, old: int | None, text: Callable[[int], str]) -> str:
    if new is None:
        return "-"
    return f"{text(new)} ({human_change(old, new)})" if old and old != new else text(new)


# -- one operation --------------------------------------------------------------------------------


def render_track(events: Sequence[Event], console: Console) -> None:
    """Print what became of an operation, a step of the chain in a row."""
    width = page_width(console)
    table = ReportTable(gap=2)
    table.add_column("dump", justify="right", stays=True)
    table.add_column("pass", style="bold", cut=middle)
    table.add_column("is", wraps=True)
    table.add_column("as", wraps=True)
    for event in events:
        stage = event.step.stage
        number = f"{stage.number:04}" if stage.pipeline else ""
        table.add_row(number, pass_text(event.step), ", ".join(event.verbs), _sights_text(event))
    console.print(table, width=width)


_MOST_SIGHTS = 4


def _sights_text(event: Event) -> str:
    if not event.sights:
        return f"its users read {some(event.replaced_by)}" if event.replaced_by else ""
    parts = [
        f"%{sight.name} {sight.text}" + (f" in %{sight.inside}" if sight.inside else "")
        for sight in event.sights[:_MOST_SIGHTS]
    ]
    more = len(event.sights) - _MOST_SIGHTS
    return "; ".join(parts) + (f"; and {more:,} more" if more > 0 else "")
