"""Remarks on values that read default memory: why, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.order import first_value
from hloopt.memory_space.allocation.planning import Plan
from hloopt.memory_space.allocation.requests import Reason
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.pass_framework.base import PassContext

if TYPE_CHECKING:
    from hloopt.passes.memory_space.search.search import Outcome

_LEAST_SHARE = 1 / 1024
"""Values that take less of alternate memory are not worth a remark."""
_TEXTS = {
    Reason.NO_ROOM: "there is no room then",
    Reason.TOO_FAR: "a use is too far to stay for without a copy",
    Reason.TOO_SHORT: "there is no time to prefetch it before a use",
    Reason.OUTSTANDING: "too many copies are outstanding then",
    Reason.BANDWIDTH: "other copies need the bandwidth then",
    Reason.FIFO: "its copy would overtake another",
    Reason.REQUIRED: "a use or a position of it has to be in default memory",
}


def report_plan(plan: Plan, options: MemorySpaceOptions, context: PassContext) -> None:
    """Count what is placed, and say of each large value that stays outside why it does."""
    copies = [c for value in plan.values for c in value.copies]
    context.count("prefetches", sum(c.chunk is not None for c in copies))
    context.count("evictions", sum(c.chunk is None for c in copies))
    for buffer, reason in plan.outside.items():
        if reason and buffer.size >= _LEAST_SHARE * options.max_size_in_bytes:
            value = first_value(plan.program, buffer)
            why = "; ".join(text for kind, text in _TEXTS.items() if kind & reason)
            definer = plan.program.flow.definer[value]
            cost = _cost(plan, buffer)
            context.missed(
                definer, f"{counted(buffer.size, 'byte')} read from default memory{cost}: {why}"
            )


def _cost(plan: Plan, buffer: Buffer) -> str:
    """The time that alternate memory would save at all uses of a buffer; empty without a model."""
    if plan.costs is None:
        return ""
    uses = (use for value in buffer.values for use in plan.program.flow.uses(value))
    gains = (plan.costs.use_benefit(plan.program.place_of(use)) for use in uses)
    seconds = sum(gain for gain in gains if gain > 0)
    return f", at most {seconds * 1e6:,.3g} us to be gained" if seconds else ", nothing to gain"


def outcome_text(found: Outcome) -> str:
    """The times of a search by the cost model."""
    return (
        f"{_time(found.seconds)} by the cost model, {_time(found.heuristic)} by the rules alone, "
        f"{_time(found.plain)} with all in default memory, {_time(found.least)} at the very least; "
        f"{counted(found.tried, 'assignment')} tried"
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.3f} us"
