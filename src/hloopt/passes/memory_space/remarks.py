"""Remarks on values that read default memory: why, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.order import first_value
from hloopt.memory_space.allocation.planning import Plan
from hloopt.memory_space.allocation.requests import Reason
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.pass_framework.base import PassContext
from hloopt.passes.memory_space.times import RunTimes

if TYPE_CHECKING:
    from hloopt.passes.memory_space.search.search import Outcome

_LEAST_SHARE = 1 / 1024
"""Values that take less of alternate memory are not worth a remark."""
_MOST_REASONS = 3
"""Reasons of their own in the remark on the whole module."""
_TEXTS = {
    Reason.NO_ROOM: "there is no room then",
    Reason.TOO_FAR: "a use is too far to stay for without a copy",
    Reason.TOO_SHORT: "there is no time to prefetch it before a use",
    Reason.OUTSTANDING: "too many copies are outstanding then",
    Reason.BANDWIDTH: "other copies need the bandwidth then",
    Reason.FIFO: "its copy would overtake another",
    Reason.REQUIRED: "a use or a position of it has to be in default memory",
    Reason.TOO_LARGE: "it is larger than alternate memory",
}


def report_plan(plan: Plan, options: MemorySpaceOptions, context: PassContext) -> None:
    """Count what is placed, and say of each large value that stays outside why it does."""
    copies = [c for value in plan.values for c in value.copies]
    context.count("prefetches", sum(c.chunk is not None for c in copies))
    context.count("evictions", sum(c.chunk is None for c in copies))
    for buffer, reason in _outside(plan):
        if buffer.size >= _LEAST_SHARE * options.max_size_in_bytes:
            value = first_value(plan.program, buffer)
            definer = plan.program.flow.definer[value]
            read = f"{counted(buffer.size, 'byte')} read from default memory"
            context.missed(definer, f"{read}{_cost(plan, buffer)}: {_why(reason)}")


def _outside(plan: Plan) -> Iterator[tuple[Buffer, Reason]]:
    """The buffers of which a use reads default memory, and why."""
    for buffer, reason in plan.outside.items():
        if reason:
            yield buffer, reason
    for buffer, reason in plan.unfit.items():
        if any(plan.program.flow.uses(value) for value in buffer.values):
            yield buffer, reason


def _why(reason: Reason) -> str:
    return "; ".join(text for kind, text in _TEXTS.items() if kind & reason)


def _cost(plan: Plan, buffer: Buffer) -> str:
    """The time that alternate memory would save at all uses of a buffer; empty without a model."""
    if plan.costs is None:
        return ""
    seconds = _gain(plan, buffer)
    return f", at most {seconds * 1e6:,.3g} us to be gained" if seconds else ", nothing to gain"


def _gain(plan: Plan, buffer: Buffer) -> float:
    """The seconds that each use would be shorter for, alone, over all runs."""
    assert plan.costs is not None
    uses = (use for value in buffer.values for use in plan.program.flow.uses(value))
    gains = (plan.costs.use_benefit(plan.program.place_of(use)) for use in uses)
    return sum(gain for gain in gains if gain > 0)


def lost_by_reason(plan: Plan) -> list[str]:
    """The seconds that values which stay outside could gain, by reasons, the greatest first.

    Texts, with the rarer reasons as one. O(uses).
    """
    lost: dict[Reason, list[float]] = {}
    for buffer, reason in _outside(plan):
        gain = _gain(plan, buffer)
        if gain > 0:
            lost.setdefault(reason, []).append(gain)
    found = sorted(lost.items(), key=lambda item: -sum(item[1]))
    texts = [_lost(gains, _why(reason)) for reason, gains in found[:_MOST_REASONS]]
    if others := [gain for _, gains in found[_MOST_REASONS:] for gain in gains]:
        texts.append(_lost(others, "other reasons"))
    return texts


def _lost(gains: Sequence[float], why: str) -> str:
    return f"{_time(sum(gains))} by {counted(len(gains), 'value')} ({why})"


def times_text(plain: float, after: RunTimes, lost: Sequence[str]) -> str:
    """The times of a module before and after, and what stood in the way of better ones."""
    text = (
        f"{_time(after.seconds)} by the cost model, {_time(after.waits)} of it waits for copies; "
        f"{_time(plain)} with all in default memory"
    )
    return f"{text}; what stays outside could gain at most {', '.join(lost)}" if lost else text


def outcome_text(found: Outcome) -> str:
    """The times of a search by the cost model."""
    return (
        f"{_time(found.seconds)} by the cost model, {_time(found.heuristic)} by the rules alone, "
        f"{_time(found.plain)} with all in default memory, {_time(found.least)} at the very least; "
        f"{counted(found.tried, 'assignment')} tried"
    )


def _time(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:,.3f} {name}"
    return f"{seconds * 1e6:.3f} us"
