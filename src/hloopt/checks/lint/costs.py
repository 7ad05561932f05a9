"""The costs of findings in one run of a module, by the reports that the view has.

Without a verdict on times (no target, guessed times) there are none in seconds, and findings are
ranked by bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.inventory.collectives import Collective, Form, collectives_of
from hloopt.checks.doubts import schedule_doubt
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.reports.console.units import human_bytes, human_seconds


def collectives(view: View) -> list[Collective]:
    """The collectives of the module, found once."""
    return view.once("collectives", lambda: collectives_of(view.subject.module))


def exposed_seconds(view: View, instruction: Instruction) -> float:
    """Time that the main stream waits for an operation, by its start, in all its runs.

    0 where times have no verdict, or nothing waits.
    """
    return view.once("exposed seconds", lambda: _exposed(view)).get(key_of(instruction), 0.0)


def has_times(view: View) -> bool:
    """Whether there is a verdict on times: a target is named, and little is guessed."""
    return view.cost_model.is_choice and view.once("times", lambda: schedule_doubt(view)) is None


def _exposed(view: View) -> dict[tuple[str, str], float]:
    if not has_times(view):
        return {}
    scale = view.schedule.unit.seconds or 0.0
    return {
        key_of(hiding.operation.start): hiding.operation.exposed * run.runs * scale
        for run, hiding in view.schedule.hidings
    }


def key_of(instruction: Instruction) -> tuple[str, str]:
    """The names of an instruction, which it has in copies of the module, too."""
    return instruction.parent.name, instruction.name


def work_bytes(view: View, instruction: Instruction) -> int:
    """Bytes between memory and processor of an instruction, in all its runs."""
    cost = view.subject.costs.of(instruction)
    return cost.bytes_accessed * view.runs(instruction).times


def work_seconds(view: View, instruction: Instruction) -> float:
    """Time that an instruction keeps the main stream busy, in all its runs.

    0 where times have no verdict, or are of another module than the given one.
    """
    if not has_times(view) or view.schedule.module is not instruction.parent.module:
        return 0.0
    cycles = view.schedule.simulation.model.node_time(instruction).cycles
    return cycles * view.runs(instruction).times * (view.schedule.unit.seconds or 0.0)


def collective_impact(view: View, collective: Collective) -> Impact:
    """The cost of a collective: its exposed time, and the bytes that it sends."""
    runs = view.runs(collective.instruction).times
    exposed = sum(exposed_seconds(view, each) for each in runners(collective))
    return Impact(exposed, collective.wire * runs)


def runners(collective: Collective) -> list[Instruction]:
    """The instructions of schedules that run a collective: itself, or the starts and fusions around
    it, for one that is within both the start."""
    if collective.form in (Form.SYNC, Form.PAIR):
        return [collective.instruction]
    callers = list(collective.instruction.parent.callers)
    if collective.form is Form.WRAPPED and all(c.opcode is Opcode.FUSION for c in callers):
        return [outer for caller in callers for outer in caller.parent.callers]
    return callers


def total(impacts: Iterable[Impact]) -> Impact:
    """The sum of impacts."""
    seconds, moved, memory = 0.0, 0, 0
    for each in impacts:
        seconds, moved, memory = (
            *(seconds + each.seconds, moved + each.moved),
            memory + each.memory,
        )
    return Impact(seconds, moved, memory)


def impact_text(impact: Impact) -> str:
    """An impact in words: `1.2 ms, 34 MiB moved, 2 MiB at the peak`; empty for none."""
    parts = []
    if impact.seconds:
        parts.append(human_seconds(impact.seconds))
    if impact.moved:
        parts.append(f"{human_bytes(impact.moved)} moved")
    if impact.memory:
        parts.append(f"{human_bytes(impact.memory)} at the peak")
    return ", ".join(parts)


def runs_text(view: View, instruction: Instruction) -> str:
    """How often an instruction runs, where that is more than once: `, 32 runs`; else empty."""
    runs = view.runs(instruction)
    return f", {counted(runs.times, 'run')}" if runs.times > 1 else ""
