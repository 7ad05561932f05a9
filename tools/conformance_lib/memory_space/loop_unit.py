"""Records about the memory-bound loop optimizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare, compare_number, declare, within
from conformance_lib.forms import BOUND, TEXT, either, keys, list_of, mapping
from conformance_lib.memory_space.setting import Answer, Setting, check
from conformance_lib.selector_syntax import NAME
from hloopt.analysis.dataflow import Use
from hloopt.memory_space.loop_optimizer.finding import UnrolledLoop
from hloopt.memory_space.loop_optimizer.optimizer import LoopOptimization, optimize_loop
from hloopt.memory_space.loop_optimizer.prefetches import LoopPrefetch
from hloopt.memory_space.options.parts import LoopOptimizerOptions
from hloopt.memory_space.program import Program

_PREFETCH = keys({}, {"value": NAME, "first_use": NAME, "done_before": BOUND, "start_after": BOUND})
_PREFETCHES = keys({}, {"count": BOUND, "some": list_of(_PREFETCH), "same_start": list_of(NAME)})
declare(
    __name__,
    {
        "loop_seconds": BOUND,
        "loop_memory_used": BOUND,
        "loop_memory_used_at": either(list_of(BOUND), mapping(TEXT, BOUND)),
        "loop_allocations_in_alternate_memory": BOUND,
        "loop_uses_allocated_once": list_of(NAME),
        "loop_prefetches": _PREFETCHES,
    },
)
_PRECISION = 1e-3
"""Of seconds."""


def memory_bound_loop_optimizer(fields: Mapping[str, Any]) -> Iterator[str]:
    """Mismatches with what is expected of the plan for the second iteration of a loop."""
    setting = Setting(fields)
    program = Program.of(setting.module)
    first, end = setting.options["loop"]
    size = setting.options["max_size_in_bytes"]
    found = optimize_loop(
        program,
        setting.costs,
        UnrolledLoop(2 * first - end, end - first, 3),
        LoopOptimizerOptions(**setting.options.get("memory_bound_loop_optimizer_options", {})),
        max_size=size,
        alignment=setting.options.get("alignment_in_bytes", 1),
    )

    def seconds(value: float | str, _: Mapping[str, Any]) -> Iterator[str]:
        if isinstance(value, str):
            is_met = within(found.seconds, value)
        else:
            is_met = isclose(found.seconds, value, abs_tol=_PRECISION)
        if not is_met:
            yield f"loop_seconds: expected {value}, found {found.seconds}"

    def used(value: float | str, _: Mapping[str, Any]) -> Iterator[str]:
        yield from compare_number("loop_memory_used", found.heap.last_offset, value)

    def used_at(value: Sequence[Any] | Mapping[str, Any], _: Mapping[str, Any]) -> Iterator[str]:
        occupied = [size - free for free in found.heap.remaining()]
        if isinstance(value, Mapping):
            for index, bound in value.items():
                yield from compare_number(f"bytes used at {index}", occupied[int(index)], bound)
        else:
            yield from compare("loop_memory_used_at", occupied, value)

    def allocations(value: float | str, _: Mapping[str, Any]) -> Iterator[str]:
        count = sum(placement.allocation is not None for placement in found.placements)
        yield from compare_number("loop_allocations_in_alternate_memory", count, value)

    def once(value: list[str], _: Mapping[str, Any]) -> Iterator[str]:
        yield from _allocated_once(setting, program, found, value, first)

    def prefetches(value: Mapping[str, Any], _: Mapping[str, Any]) -> Iterator[str]:
        yield from _prefetches(setting, found.prefetches, value, end - first)

    answers: dict[str, Answer] = {
        "loop_seconds": seconds,
        "loop_memory_used": used,
        "loop_memory_used_at": used_at,
        "loop_allocations_in_alternate_memory": allocations,
        "loop_uses_allocated_once": once,
        "loop_prefetches": prefetches,
    }
    yield from check(setting, answers)


def _allocated_once(
    setting: Setting, program: Program, found: LoopOptimization, names: list[str], start: int
) -> Iterator[str]:
    """Mismatches of operands that belong to no allocation, or to several."""
    counts: dict[Use, int] = {}
    for placement in found.placements:
        for index, use in placement.uses:
            user = program.schedule.steps[start + index]
            own = Use(user, use.operand, use.slot)
            counts[own] = counts.get(own, 0) + 1
    for name in names:
        user = setting.find(name)
        for number in range(len(user.operands)):
            count = counts.get(Use(user, number, 0), 0)
            yield from compare(f"allocations of operand {number} of %{name}", count, 1)


def _prefetches(
    setting: Setting, found: list[LoopPrefetch], expected: Mapping[str, Any], size: int
) -> Iterator[str]:
    if "count" in expected:
        yield from compare_number("loop_prefetches", len(found), expected["count"])
    left = list(found)
    for wanted in expected.get("some", ()):
        met = next((each for each in left if _meets(setting, each, wanted, size)), None)
        if met is None:
            yield f"no prefetch is {wanted}: found {[_shown(each, size) for each in left]}"
        else:
            left.remove(met)
    if "same_start" in expected:
        starts = {
            name: {p.start_after % size for p in found if p.value.uses[0][1].user.name == name}
            for name in expected["same_start"]
        }
        if not all(starts.values()):
            raise RecordError(f"there are not prefetches for all of {', '.join(starts)}")
        if len(set().union(*starts.values())) != 1:
            yield f"prefetches start after {starts}"


def _meets(setting: Setting, found: LoopPrefetch, wanted: Mapping[str, Any], size: int) -> bool:
    """Whether a prefetch is as described."""
    first, use = found.value.uses[0]
    operand = use.user.operands[use.operand]
    return (
        ("value" not in wanted or operand is setting.find(wanted["value"]))
        and ("first_use" not in wanted or use.user is setting.find(wanted["first_use"]))
        and ("done_before" not in wanted or within(first, wanted["done_before"]))
        and ("start_after" not in wanted or within(found.start_after % size, wanted["start_after"]))
    )


def _shown(found: LoopPrefetch, size: int) -> str:
    index, use = found.value.uses[0]
    return f"for %{use.user.name}, after {found.start_after % size}, before {index}"
