"""Rules about reductions of which each device keeps a part."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.checks.doubts import not_fused
from hloopt.checks.lint.costs import collectives, runners, runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.synchronous import synchronous_copy
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


@rule("HLL107", "all-reduce-then-slice", not_fused)
def all_reduce_then_slice(view: View, options: RuleOptions) -> Iterator[Finding]:
    """All-reduces of which each device reads its own shard alone: reduce-scatters.

    The pass reduce-scatter-creator decides, on a copy of a module that has something for it.
    O(instructions), and O(devices) for each index of a slice.
    """
    parts = _parts(view.subject.module)
    if not parts:
        return
    scattered = _scattered(view)
    for each in collectives(view):
        for runner in runners(each):
            part = parts.get(runner)
            if part is None or runner not in scattered:
                continue
            sent = leaf_bytes(part.shape) * (each.group_size - 1)
            runs = view.runs(runner).times
            yield Finding(
                f"of %{runner.name} each device reads its own part alone, %{part.name}: a "
                f"reduce-scatter would do{runs_text(view, runner)}",
                runner,
                Impact(moved=(each.wire - sent) * runs),
                related=(part,),
            )


def _parts(module: Module) -> dict[Instruction, Instruction]:
    """The dynamic-slices of results of all-reduces, by all-reduce or its start."""
    found: dict[Instruction, Instruction] = {}
    for part in module.instructions(Opcode.DYNAMIC_SLICE):
        value = part.operands[0]
        if value.opcode is Opcode.RESHAPE:
            value = value.operands[0]
        if value.opcode in (Opcode.ALL_REDUCE_DONE, Opcode.ASYNC_DONE):
            value = value.operands[0]
        if value.opcode in (Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ASYNC_START):
            found[value] = part
    return found


def _scattered(view: View) -> set[Instruction]:
    """The all-reduces that the pass makes reduce-scatters of."""
    from hloopt.pass_framework.base import PassContext
    from hloopt.passes.collectives.reduce_scatter_creator import ReduceScatterCreator

    copy = synchronous_copy(view)
    by_name = {reduced.name: original for reduced, original in copy.originals.items()}
    context = PassContext()
    ReduceScatterCreator().run(copy.module, context)
    return {by_name[r.instruction] for r in context.remarks if r.kind == "applied"}
