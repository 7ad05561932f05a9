"""The report of a pipeline on a module: passes, difference, memory, schedule; remarks, times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.text import Text

from hloopt.diagnostics import Source, counted
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import middle, page_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from hloopt.pass_framework.applications import Applications
    from hloopt.pass_framework.base import Remark
    from hloopt.pass_framework.runner import PassRun
    from hloopt.pass_framework.validation import Validation
    from hloopt.reports.outcome import Outcome

RemarkFilters: TypeAlias = Sequence[tuple[str, str | None]]
"""The kinds of remarks asked for, each with the one pass it is asked of, or None."""


def render_outcome(outcome: Outcome, console: Console, *, side_by_side: bool = False) -> None:
    """Passes, then what changed, then memory and schedule before and after."""
    from hloopt.reports.diff.terminal import render_diff
    from hloopt.reports.memory.comparison_terminal import render_memory_change
    from hloopt.reports.memory.terminal import render_memory

    console.print(_runs_table(outcome.result.runs), width=page_width(console))
    if outcome.result.validation is not None:
        console.print(f"validated: {_extent(outcome.result.validation)}")
    console.print()
    if outcome.diff is not None:
        render_diff(outcome.diff, console, side_by_side=side_by_side, text=side_by_side, top=12)
        console.print()
    if outcome.memory is not None:
        before, after = outcome.memory
        render_memory(after, console, top=8)
        if before is not after:
            console.print()
            partners = None if outcome.diff is None else outcome.diff.partners
            render_memory_change(before, after, console, partners)
        console.print()
    if outcome.schedule is not None:
        from hloopt.reports.schedule.comparison_terminal import render_schedule_change

        render_schedule_change(outcome.schedule, console)
        console.print()


def _extent(validation: Validation) -> str:
    """The extent of the comparison, in a line."""
    if not validation.comparisons:
        return "nothing changed"
    count = validation.comparisons
    times = "once" if count == 1 else f"{count} times"
    special = (
        f"; also on inputs with {', '.join(validation.specials)}" if validation.specials else ""
    )
    near = ""
    if validation.nearest is not None:
        from hloopt.reports.execution.equivalence import in_ulps

        near = f"; {in_ulps(validation.nearest)}"
    return f"the module computes what it did (compared {times}{special}{near})"


def _validation_to_json(validation: Validation) -> dict[str, object]:
    """The keys are those of `hloopt equivalent`."""
    outputs = []
    if validation.nearest is not None:
        from hloopt.reports.execution.equivalence import errors_to_json

        outputs.append(errors_to_json(validation.nearest))
    return {
        "seeds": validation.seeds,
        "outputs": outputs,
        "special_values": validation.specials,
        "on_special_values_alone": validation.on_specials,
        "not_compared": validation.notes,
    }


def render_not_validated(outcome: Outcome, console: Console) -> None:
    """Notes on what a validation did not compare, or saw on special values alone."""
    validation = outcome.result.validation
    if validation is None:
        return
    lines = [("on special values alone: ", text) for text in validation.on_specials]
    lines += [("not compared: ", text) for text in validation.notes]
    for head, text in lines:
        console.print(Text.assemble((head, "yellow"), text), soft_wrap=True)


def _runs_table(runs: Sequence[PassRun]) -> ReportTable:
    table = ReportTable(rule=False, gap=2)
    table.add_column("pass", cut=middle)
    table.add_column("changed")
    table.add_column("instructions", justify="right")
    table.add_column("ms", justify="right")
    for run, name in zip(runs, _titles(runs), strict=True):
        before, after = run.instructions
        count = f"{before:,}" if before == after else f"{before:,} → {after:,}"
        table.add_row(name, _changed(run), count, f"{run.seconds * 1e3:.1f}")
    return table


_WORD = re.compile(r"(?!(true|false|null)$)[a-z][a-z-]*")
"""A value that tells what it is a value of: `backward`, `all-gather`."""


def _titles(runs: Sequence[PassRun]) -> list[str]:
    """Names of passes with their rounds; of one that runs with several options also these, as far
    as runs differ in them. O(options)."""
    ways: dict[str, list[dict[str, str]]] = {}
    texts = [{name: _option_text(name, v) for name, v in run.options.items()} for run in runs]
    for run, text in zip(runs, texts, strict=True):
        known = ways.setdefault(run.name, [])
        if text not in known:
            known.append(text)
    titles = []
    for run, text in zip(runs, texts, strict=True):
        first, *others = ways[run.name]
        told = [
            value
            for name, value in text.items()
            if any(way.get(name) != first.get(name) for way in others)
        ]
        if run.iteration is not None:
            told.append(f"round {run.iteration}")
        titles.append(f"{run.name} ({', '.join(told)})" if told else run.name)
    return titles


def _option_text(name: str, value: object) -> str:
    """The value, with its name unless it is words, which say enough."""
    from hloopt.pass_framework.pipeline_text import format_value

    given = value if isinstance(value, list | tuple) else [value]
    words = [word for word in given if isinstance(word, str) and _WORD.fullmatch(word)]
    if words and len(words) == len(given):
        return "+".join(words)
    return f"{name}={format_value(value)}"


def _changed(run: PassRun) -> Text:
    if run.failed:
        return Text("failed", style="red")
    if run.skipped:
        return Text("skipped", style="yellow")
    return Text("yes", style="green") if run.changed else Text("no", style="dim")


def render_warnings(outcome: Outcome, console: Console) -> None:
    """Notes on what did not go as wanted."""
    for warning in [*outcome.result.warnings, *outcome.notes]:
        console.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)


def render_notes(outcome: Outcome, console: Console) -> None:
    """Notes of passes on what their results are."""
    for note in outcome.result.notes:
        console.print(Text.assemble(("note: ", "dim"), note), soft_wrap=True)


def render_applications(outcome: Outcome, console: Console) -> None:
    """The number of applications and the last one, where there is a limit, in a line."""
    applications = outcome.result.applications
    if applications.limit is None:
        return
    made = counted(applications.made, "application")
    limit = f"the limit of {applications.limit:,} is"
    reached = "reached" if applications.is_at_limit else "not reached"
    last = applications.last
    said = f"; the last: {last.pass_name}: %{last.instruction}: {last.what}" if last else ""
    console.print(Text(f"{made} made, {limit} {reached}{said}"), soft_wrap=True)


def _run_to_json(run: PassRun) -> dict[str, object]:
    from hloopt.pass_framework.pipeline_text import format_value

    return {
        "name": run.name,
        "iteration": run.iteration,
        "options": {name: format_value(value) for name, value in run.options.items()},
        "changed": run.changed,
        "failed": run.failed,
        "skipped": run.skipped,
        "instructions_before": run.instructions[0],
        "instructions_after": run.instructions[1],
        "seconds": run.seconds,
        "statistics": run.statistics,
    }


def _applications_to_json(applications: Applications) -> dict[str, object]:
    """The key that there is with a limit."""
    if applications.limit is None:
        return {}
    last = applications.last
    told = last and dict(zip(("pass", "instruction", "what"), last, strict=True))
    return {"applications": {"limit": applications.limit, "made": applications.made, "last": told}}


def render_remarks(outcome: Outcome, filters: RemarkFilters, console: Console) -> None:
    """Remarks of the kinds and passes asked for, one a line, with the line in the source."""
    name = outcome.source.name if outcome.source else outcome.name
    styles = {"applied": "green", "missed": "yellow", "analysis": "cyan"}
    for remark, line in _remarks_asked_for(outcome, filters):
        place = f"{name}:{line}: " if line else f"{name}: "
        console.print(
            Text.assemble(
                place,
                (remark.kind, styles[remark.kind]),
                f": {remark.pass_name}: %{remark.instruction}: {remark.reason}",
                f" [{remark.source}]" if remark.source else "",
            ),
            soft_wrap=True,
        )


def _remarks_asked_for(
    outcome: Outcome, filters: RemarkFilters
) -> Iterator[tuple[Remark, int | None]]:
    """Remarks with the line of the source that defines their instruction, if one does."""
    lines = _lines_by_name(outcome.source or Source(outcome.name, "")) if filters else {}
    for remark in outcome.result.remarks:
        if any(k == remark.kind and p in (None, remark.pass_name) for k, p in filters):
            yield remark, lines.get(remark.instruction)


def _lines_by_name(source: Source) -> dict[str, int]:
    """The line on which each instruction is defined. O(length of the text)."""
    definition = re.compile(r"^\s*(?:ROOT\s+)?%?([A-Za-z_][\w.\-]*)\s+=")
    found: dict[str, int] = {}
    for number, line in enumerate(source.text.splitlines(), source.first_line):
        match = definition.match(line)
        if match:
            found.setdefault(match[1], number)
    return found


def render_timing(outcome: Outcome, console: Console) -> None:
    """Time by pass, over all its runs, and by phase."""
    by_pass: dict[str, tuple[int, float]] = {}
    for run in outcome.result.runs:
        runs, seconds = by_pass.get(run.name, (0, 0.0))
        by_pass[run.name] = (runs + 1, seconds + run.seconds)
    table = ReportTable(rule=False, gap=2)
    table.add_column("time", cut=middle)
    table.add_column("runs", justify="right")
    table.add_column("ms", justify="right")
    for name, (runs, seconds) in sorted(by_pass.items(), key=lambda item: -item[1][1]):
        table.add_row(name, str(runs), f"{seconds * 1e3:.1f}")
    for phase, seconds in outcome.seconds.items():
        table.add_row(Text(phase, style="dim"), "", f"{seconds * 1e3:.1f}")
    console.print(table, width=page_width(console))


def render_statistics(outcome: Outcome, console: Console) -> None:
    """The statistics of the passes, over all runs."""
    totals: dict[tuple[str, str], int] = {}
    for run in outcome.result.runs:
        for what, number in run.statistics.items():
            if number:
                totals[run.name, what] = totals.get((run.name, what), 0) + number
    table = ReportTable(rule=False, gap=2)
    table.add_column("pass")
    table.add_column("statistic")
    table.add_column("count", justify="right")
    for (name, what), number in totals.items():
        table.add_row(name, what, f"{number:,}")
    console.print(table, width=page_width(console))


def outcome_to_json(outcome: Outcome, filters: RemarkFilters = ()) -> dict[str, object]:
    """The whole outcome but for the module's text, as JSON values; seconds and bytes.

    Of remarks those asked for.
    """
    from hloopt.reports.diff.record import diff_to_json
    from hloopt.reports.memory.comparison_record import peak_change_to_json
    from hloopt.reports.memory.record import memory_to_json
    from hloopt.reports.schedule.comparison_record import schedule_change_to_json

    validation = outcome.result.validation
    return {
        "module": outcome.name,
        "changed": outcome.changed,
        "comparisons": validation and validation.comparisons,
        "validation": validation and _validation_to_json(validation),
        "passes": [_run_to_json(run) for run in outcome.result.runs],
        "warnings": outcome.result.warnings + outcome.notes,
        "notes": outcome.result.notes,
        "remarks": [
            _remark_to_json(remark, line) for remark, line in _remarks_asked_for(outcome, filters)
        ],
        **_applications_to_json(outcome.result.applications),
        "seconds": outcome.seconds,
        "diff": diff_to_json(outcome.diff) if outcome.diff is not None else None,
        "memory": (
            {
                "before": memory_to_json(outcome.memory[0]),
                "after": memory_to_json(outcome.memory[1]),
                **peak_change_to_json(
                    *outcome.memory, None if outcome.diff is None else outcome.diff.partners
                ),
            }
            if outcome.memory is not None
            else None
        ),
        "schedule": (
            None if outcome.schedule is None else schedule_change_to_json(outcome.schedule)
        ),
    }


def _remark_to_json(remark: Remark, line: int | None) -> dict[str, object]:
    return {
        "kind": remark.kind,
        "pass": remark.pass_name,
        "instruction": remark.instruction,
        "line": line,
        "source": remark.source,
        "reason": remark.reason,
    }
