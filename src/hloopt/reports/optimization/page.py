"""The result of a search as a page: figures, decisions, and both timelines."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.cost_models import CostModelChoice
from hloopt.ir.module import Module
from hloopt.reports.console.units import human_bytes
from hloopt.reports.html.page import Column, data_table, facts_list, html_page, notes_list
from hloopt.reports.optimization.findings import OptimizationFindings
from hloopt.reports.optimization.terminal import notes_on

_SIDES = ("before", "after")


def optimization_page(found: OptimizationFindings, choice: CostModelChoice) -> str:
    """A whole HTML document, for a module with a schedule."""
    modules = zip(_SIDES, (found.before, found.after), strict=True)
    blocks = {f"{side}Page": _timeline(module, choice) for side, module in modules}
    rows = [(str(number), decision) for number, decision in enumerate(found.decisions, 1)]
    rows += [("", reason) for reason in found.reasons]
    assumptions = [] if found.schedule is None else found.schedule.notes
    body = "".join(
        (
            facts_list(_facts(found)),
            data_table("decisions", (Column("", "number"), Column("decision", "text")), rows),
            *(f'<h2>{side}</h2>\n<div class="timeline" id="{side}"></div>\n' for side in _SIDES),
            notes_list([*assumptions, *notes_on(found)]),
        )
    )
    title = f"Optimization of {found.outcome.name}"
    scripts = ("unpack", "optimization")
    return html_page(title, scripts, body, list(_SIDES), blocks=blocks)


def _facts(found: OptimizationFindings) -> Iterator[tuple[str, str]]:
    change = found.schedule
    if change is None or change.before is None or change.after is None or found.allocated is None:
        return
    text = change.unit.text
    before, after = change.before, change.after
    yield "step", f"{text(before.makespan)} → {text(after.makespan)}"
    yield "exposed", f"{text(before.exposed)} → {text(after.exposed)}"
    yield "allocated", " → ".join(map(human_bytes, found.allocated))
    if found.limit is not None:
        yield "limit", f"{human_bytes(found.limit)}: {'fits' if found.fits else 'too much'}"


def _timeline(module: Module, choice: CostModelChoice) -> str:
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.page import schedule_page
    from hloopt.reports.schedule.run import ScheduleSettings
    from hloopt.reports.schedule.timeline import Timeline

    settings = ScheduleSettings(cost_model=choice, preset="xla-gpu")
    findings = ScheduleFindings.of(module, settings)
    return schedule_page(findings, Timeline.of(findings))
