"""Rules about loops that are not loops any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.loops.unrolled import unrolled_loops
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.options import option

_MOST_RELATED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrolledOptions(RuleOptions):
    """Options of `unrolled-loop`."""

    repeats: int = option(8, "the least number of repetitions that are worth a loop")
    block: int = option(20, "the least number of instructions of a repetition")


@rule("HLL504", "unrolled-loop", options=UnrolledOptions)
def unrolled_loop(view: View, options: UnrolledOptions) -> Iterator[Finding]:
    """Blocks of instructions that are repeated as the trips of a loop would be.

    O(instructions), some times.
    """
    module = view.subject.module
    for found in unrolled_loops(module, repeats=options.repeats, block=options.block):
        first = found.anchors[0]
        yield Finding(
            f"a block of {counted(found.block, 'instruction')} is repeated "
            f"{counted(found.repeats, 'time')}, first around %{first.name}: "
            f"{counted(found.instructions, 'instruction')} where a loop has {found.block:,}",
            first,
            related=found.anchors[1 : 1 + _MOST_RELATED],
        )
