"""Two memory reports side by side: each size, and what entered and left the peak."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from hloopt.analysis.stage import Stage
from hloopt.diagnostics import HloError, counted
from hloopt.ir.module import Module
from hloopt.memory.backends import backend_of, common_backend
from hloopt.memory.model import LiveBuffer, MemoryReport
from hloopt.reports.memory.groups import alike_key
from hloopt.reports.memory.model import memory_report
from hloopt.reports.stage_notices import why_not_compared

AUTOMATIC = 10_000
"""Instructions up to which memory is compared unasked: that takes about a second."""


@dataclass(frozen=True, slots=True)
class PeakChange:
    """Buffers that are alive at the peak of one module only."""

    entered: list[LiveBuffer]
    left: list[LiveBuffer]


Partners = Mapping[str, str | None]
"""Names of instructions before, each with the name of its partner after; None without one."""


def peak_change(
    before: MemoryReport, after: MemoryReport, partners: Partners | None = None
) -> PeakChange:
    """Compare the buffers alive at both peaks; those without a counterpart entered or left.

    Counterparts have equal sizes and instructions that are `partners`, or of one name if
    `partners` lacks it. Of the rest, buffers of one kind and shape are counterparts if their
    origins differ in numbers only, then if their op_names end alike. O(buffers).
    """
    left, entered = list(before.live_at_peak), list(after.live_at_peak)

    def old_key(buffer: LiveBuffer) -> Hashable:
        name, brace, index = buffer.name.partition("{")
        partner = name if partners is None else partners.get(name, name)
        return None if partner is None else (partner + brace + index, buffer.size)

    left, entered = _unmatched(left, entered, old_key, lambda new: (new.name, new.size))
    for key in (alike_key, _ending_key):
        left, entered = _unmatched(left, entered, key, key)
    return PeakChange(entered, left)


def _ending_key(buffer: LiveBuffer) -> Hashable:
    kind, shape, origin = alike_key(buffer)
    return kind, shape, origin.rpartition("/")[2]  # inlining puts more before it


def _unmatched(
    left: list[LiveBuffer],
    entered: list[LiveBuffer],
    left_key: Callable[[LiveBuffer], Hashable],
    entered_key: Callable[[LiveBuffer], Hashable],
) -> tuple[list[LiveBuffer], list[LiveBuffer]]:
    """Both lists without the pairs of buffers with equal keys."""
    waiting: dict[Hashable, list[int]] = {}
    for number, buffer in enumerate(left):
        waiting.setdefault(left_key(buffer), []).append(number)
    matched: set[int] = set()
    rest = []
    for buffer in entered:
        partners = waiting.get(entered_key(buffer))
        if partners:
            matched.add(partners.pop())
        else:
            rest.append(buffer)
    return [buffer for number, buffer in enumerate(left) if number not in matched], rest


def compare_memory(
    before: Module, after: Module, wanted: bool | None
) -> tuple[tuple[MemoryReport, MemoryReport] | None, str | None]:
    """The memory of two modules, or a sentence why there is none; neither where not `wanted`.

    None stands for modules of at most `AUTOMATIC` instructions. The memory of a program over all
    devices is not compared with that of one device. Near-linear in the modules.
    """
    if wanted is False:
        return None, None
    count = max(sum(1 for _ in module.instructions()) for module in (before, after))
    if wanted is None and count > AUTOMATIC:
        return None, (
            f"no memory report: {counted(count, 'instruction')}, more than {AUTOMATIC:,}; "
            "--memory makes it"
        )
    if reason := why_not_compared([Stage.of(module) for module in (before, after)]):
        return None, f"memory is not compared: {reason}; `hloopt memory` shows each"
    backend = common_backend((before, after))
    try:
        first = memory_report(before, backend=backend)
        second = first if after is before else memory_report(after, backend=backend)
    except HloError as error:
        return None, f"no memory report: {error.message}"
    for name, module, report in (("first", before, first), ("second", after, second)):
        if backend_of(module).name != backend.name:
            rules = f"XLA:{backend.name.upper()}"
            report.doubts.append(f"nothing in the {name} tells of {rules}, whose rules both are by")
    return (first, second), None


def doubts_of(before: MemoryReport, after: MemoryReport) -> list[str]:
    """The reasons why a change of memory is no gain or loss, as clauses; empty where it is."""
    return list(dict.fromkeys((*before.doubts, *after.doubts)))
