"""Rules about work that loops repeat in every trip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.cost.model import Cost
from hloopt.checks.doubts import not_fused
from hloopt.checks.lint.costs import work_seconds
from hloopt.checks.lint.loops import invariance, repeated_loops
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.custom_targets import IDENTITIES, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import only_copies
from hloopt.ir.opcode import ASYNC, COLLECTIVES, Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.options import Bytes, Share, option
from hloopt.reports.console.units import human_bytes, human_share

_MIB = 1 << 20
_NEVER_HOISTED = frozenset((*COLLECTIVES, *ASYNC, Opcode.RESHAPE))
"""Opcodes that other rules look at, that are in two parts, or that may turn out to be bitcasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantOptions(RuleOptions):
    """Options of `invariant-computation-in-loop`."""

    share: Share = option(
        Share(0.01), "the least share of the module's flops or bytes that is worth a finding"
    )
    size: Bytes = option(
        _MIB, "the least bytes that it reads and writes too often, to be worth a finding"
    )


@rule("HLL506", "invariant-computation-in-loop", not_fused, options=InvariantOptions)
def invariant_computation_in_loop(view: View, options: InvariantOptions) -> Iterator[Finding]:
    """Work that computes the same in every trip of a loop. O(instructions)."""
    costs = view.subject.costs
    for loop, trips in repeated_loops(view).items():
        again = trips - view.runs(loop).times
        for instruction in loop.called[0].instructions:
            if not _may_be_hoisted(instruction):
                continue
            saved = costs.of(instruction).times(again)
            share, figure = _share(saved, costs.module())
            is_large = share >= options.share and saved.bytes_accessed >= max(1, options.size)
            if is_large and instruction in invariance(view).of(loop):
                yield _repeated(
                    *(view, instruction, loop, trips, again),
                    f"{human_share(share)} of the {figure} of the module",
                )


def _may_be_hoisted(instruction: Instruction) -> bool:
    return not (
        instruction.opcode in _NEVER_HOISTED
        or only_copies(instruction)
        or custom_call_target(instruction) in IDENTITIES
    )


def _share(saved: Cost, whole: Cost) -> tuple[float, str]:
    """The part of all flops or bytes that is saved, whichever is more, and which it is.

    What writes more than it reads saves no bytes: it would stay in memory instead.
    """
    moved = saved.bytes_accessed if saved.bytes_written <= saved.bytes_read else 0
    return max(
        (saved.flops / max(1, whole.flops), "flops"),
        (moved / max(1, whole.bytes_accessed), "bytes"),
    )


def _repeated(
    view: View, instruction: Instruction, loop: Instruction, trips: int, again: int, share: str
) -> Finding:
    """The finding for an instruction that runs `again` times too often, of `trips`."""
    kept = human_bytes(shape_bytes(instruction.shape))
    return Finding(
        f"%{instruction.name} computes the same in each of the "
        f"{counted(trips // (trips - again), 'trip')} of %{loop.name}, which is {share}",
        instruction,
        Impact(
            work_seconds(view, instruction) * again / trips,
            view.subject.costs.of(instruction).bytes_accessed * again,
        ),
        help=f"Compute it before the loop, which keeps {kept} in memory while the loop runs.",
        related=(loop,),
    )
