"""Rules about schedules: what is hidden, what waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.async_operations import async_form
from hloopt.analysis.inventory.collectives import Form
from hloopt.checks.doubts import schedule_doubt
from hloopt.checks.lint.costs import (
    collective_impact,
    collectives,
    exposed_seconds,
    runs_text,
)
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.needs import not_scheduled
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import with_article
from hloopt.ir.attributes.backend_config import is_sync
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.options import Share, option
from hloopt.reports.console.units import human_seconds, human_share

_FREE = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
        *(Opcode.BITCAST, Opcode.AFTER_ALL),
    )
)
"""Opcodes that take no time, so that they hide nothing."""


@rule("HLL001", "start-before-done", not_scheduled)
def start_before_done(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Asynchronous operations with no work between start and done. O(instructions)."""
    for computation in view.subject.module.computations.values():
        last_work, starts = -1, dict[Instruction, int]()
        for position, instruction in enumerate(computation.instructions):
            outer = async_form(instruction).outer
            if outer is Opcode.ASYNC_START and not is_sync(instruction):
                starts[instruction] = position
            elif outer is Opcode.ASYNC_DONE:
                start = instruction.operands[0]
                if start in starts and last_work < starts[start]:
                    yield _hides_nothing(view, start, instruction)
            elif instruction.opcode not in _FREE:
                last_work = position


def _hides_nothing(view: View, start: Instruction, done: Instruction) -> Finding:
    kind = async_form(start).inner.value
    return Finding(
        f"{with_article(kind)} is waited for at once: no work stands between %{start.name} and "
        f"%{done.name}{runs_text(view, start)}",
        start,
        Impact(exposed_seconds(view, start)),
        related=(done,),
    )


@rule("HLL002", "synchronous-collective", not_scheduled)
def synchronous_collective(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Collectives that the main stream waits for at once. O(instructions)."""
    for each in collectives(view):
        instruction = each.instruction
        is_synchronous = each.form is Form.SYNC or is_sync(instruction)
        if is_synchronous and each.wire and view.runs(instruction).times:
            yield Finding(
                f"{with_article(each.kind.value)} is synchronous: nothing runs beside "
                f"%{instruction.name}{runs_text(view, instruction)}",
                instruction,
                collective_impact(view, each),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedOptions(RuleOptions):
    """Options of `exposed-collective`."""

    share: Share = option(Share(0.01), "the least share of the makespan that is worth a finding")


@rule("HLL003", "exposed-collective", not_scheduled, schedule_doubt, options=ExposedOptions)
def exposed_collective(view: View, options: ExposedOptions) -> Iterator[Finding]:
    """Operations that work covers in part, and that the main stream waits for.

    Those that nothing covers are HLL001's and HLL002's.
    """
    schedule = view.schedule
    scale = schedule.unit.seconds or 0.0
    makespan = schedule.simulation.makespan * scale
    for run, hiding in schedule.hidings:
        operation = hiding.operation
        exposed = operation.exposed * run.runs * scale
        if operation.is_synchronous or not hiding.under:
            continue
        if not exposed or exposed < options.share * makespan:
            continue
        yield Finding(
            f"the program waits {human_seconds(exposed)} for {with_article(operation.kind.value)}, "
            f"{human_share(exposed / makespan)} of its time: {hiding.reason.value}"
            f"{runs_text(view, operation.start)}",
            operation.start,
            Impact(exposed),
        )
