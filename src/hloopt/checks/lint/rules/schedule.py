"""Rules about schedules: what is hidden, what waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.async_operations import async_form
from hloopt.analysis.inventory.collectives import Form
from hloopt.checks.doubts import schedule_doubt
from hloopt.checks.lint.costs import (
    collectives,
    exposed_seconds,
    has_times,
    key_of,
    runners,
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
    for start, done in _without_work(view).items():
        yield _hides_nothing(view, start, done)


def _without_work(view: View) -> dict[Instruction, Instruction]:
    """The starts with no work before their done, each with that; found once."""
    return view.once("starts without work", lambda: dict(_find_without_work(view)))


def _find_without_work(view: View) -> Iterator[tuple[Instruction, Instruction]]:
    for computation in view.subject.module.computations.values():
        last_work, starts = -1, dict[Instruction, int]()
        for position, instruction in enumerate(computation.instructions):
            outer = async_form(instruction).outer
            if outer is Opcode.ASYNC_START and not is_sync(instruction):
                starts[instruction] = position
            elif outer is Opcode.ASYNC_DONE:
                start = instruction.operands[0]
                if start in starts and last_work < starts[start]:
                    yield start, instruction
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
    """Collectives that the main stream waits for at once. O(instructions).

    What they send is sent as well where other work runs beside: it is no cost where there is a
    verdict on times.
    """
    for each in collectives(view):
        if not each.wire:
            continue
        for runner in runners(each):
            runs = view.runs(runner).times
            if runs and (each.form is Form.SYNC or is_sync(runner)):
                yield Finding(
                    f"{with_article(each.kind.value)} is synchronous: nothing runs beside "
                    f"%{runner.name}{runs_text(view, runner)}",
                    runner,
                    Impact(exposed_seconds(view, runner))
                    if has_times(view)
                    else Impact(moved=each.wire * runs),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedOptions(RuleOptions):
    """Options of `exposed-collective`."""

    share: Share = option(Share(0.01), "the least share of the makespan that is worth a finding")


@rule("HLL003", "exposed-collective", not_scheduled, schedule_doubt, options=ExposedOptions)
def exposed_collective(view: View, options: ExposedOptions) -> Iterator[Finding]:
    """Operations that the main stream waits for, although something stands beside them.

    Those that nothing does are HLL001's and HLL002's.
    """
    schedule = view.schedule
    others = set(map(key_of, _without_work(view)))
    scale = schedule.unit.seconds or 0.0
    makespan = schedule.simulation.makespan * scale
    for run, hiding in schedule.hidings:
        operation = hiding.operation
        exposed = operation.exposed * run.runs * scale
        start = operation.start
        if operation.is_synchronous or key_of(start) in others:
            continue
        if not exposed or exposed < options.share * makespan:
            continue
        yield Finding(
            f"the program waits {human_seconds(exposed)} for {with_article(operation.kind.value)}, "
            f"{human_share(exposed / makespan)} of its time: {hiding.reason.value}"
            f"{runs_text(view, start)}",
            start,
            Impact(exposed),
        )
