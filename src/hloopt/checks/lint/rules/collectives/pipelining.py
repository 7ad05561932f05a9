"""Rules about collectives in loops that the collective pipeliner would move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hloopt.analysis.calls import loops_with_body
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import (
    collectives,
    exposed_seconds,
    has_times,
    runners,
    runs_text,
)
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.synchronous import synchronous_copy
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import with_article
from hloopt.ir.attributes.backend_config import is_pipelined
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_DIRECTIONS: dict[Opcode, Literal["forward", "backward"]] = {
    Opcode.ALL_REDUCE: "forward",
    Opcode.ALL_GATHER: "backward",
    Opcode.REDUCE_SCATTER: "forward",
}
"""Directions by kind, in the order in which XLA:GPU pipelines them."""


@rule("HLL103", "pipelinable-collective", not_partitioned)
def pipelinable_collective(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Collectives of loops that the collective pipeliner moves to the next or previous trip.

    The pass decides, on a copy of a module that has such collectives in loops. Near-linear.
    """
    found = {
        runner: each
        for each in collectives(view)
        if each.kind in _DIRECTIONS and each.wire
        for runner in runners(each)
        if loops_with_body(runner.parent) and view.runs(runner).times
        if not (is_pipelined(each.instruction) or is_pipelined(runner))
    }
    if not found:
        return
    reasons = _moved(view, {each.kind for each in found.values()})
    for runner, each in found.items():
        exposed = exposed_seconds(view, runner)
        if runner in reasons and (exposed or not has_times(view)):
            (loop, *_) = loops_with_body(runner.parent)
            yield Finding(
                f"{with_article(each.kind.value)} can run beside another trip of %{loop.name}: "
                f"%{runner.name}{runs_text(view, runner)}",
                runner,
                Impact(exposed),
                help=f"collective-pipeliner says: {reasons[runner]}.",
                related=(loop,),
            )


def _moved(view: View, kinds: set[Opcode]) -> dict[Instruction, str]:
    """The collectives that the pass moves, with its remark."""
    from hloopt.pass_framework.base import PassContext
    from hloopt.passes.collectives.collective_pipeliner import CollectivePipeliner

    copy = synchronous_copy(view)
    by_name = {collective.name: original for collective, original in copy.originals.items()}
    found: dict[Instruction, str] = {}
    for kind in filter(kinds.__contains__, _DIRECTIONS):
        options = CollectivePipeliner.Options(
            pipelining_direction=_DIRECTIONS[kind], should_process=(kind,)
        )
        context = PassContext()
        CollectivePipeliner(options).run(copy.module, context)
        for remark in context.remarks:
            if remark.kind == "applied" and remark.instruction in by_name:
                found[by_name[remark.instruction]] = remark.reason
    return found
