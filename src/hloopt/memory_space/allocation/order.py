"""The order in which buffers are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hloopt.diagnostics import PassRefused
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.hints import ValueName
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.options.filters import (
    SortOrderOverride,
    override_priority,
    sort_order_overrides,
)
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import Program

Key = Callable[[Buffer], Any]


def sorted_buffers(
    program: Program,
    buffers: Iterable[Buffer],
    options: MemorySpaceOptions,
    costs: MemorySpaceCosts | None,
) -> list[Buffer]:
    """Buffers in the order in which they are to be placed. O(n log n)."""
    return sorted(buffers, key=_key(program, options, costs))


def _key(program: Program, options: MemorySpaceOptions, costs: MemorySpaceCosts | None) -> Key:
    sort = options.sort
    flow, ranges = program.flow, program.ranges

    def by_size(buffer: Buffer) -> tuple[int, int, int]:
        first = min(buffer.values, key=lambda value: (ranges.start[value], value))
        return -buffer.size, ranges.start[first] - ranges.end[first], first

    match sort.kind:
        case "size":
            return by_size
        case "memory-boundedness":
            if costs is None:
                raise PassRefused(
                    "the order memory-boundedness needs a cost model",
                    help="give the option cost_model",
                )
            overrides = sort_order_overrides(sort.overrides)
            overrides += sort_order_overrides(options.msa_sort_order_overrides)
            return _by_boundedness(program, costs, overrides)
        case "names":
            ranks = _ranks(sort.first)

            def by_name(buffer: Buffer) -> tuple[int, str]:
                name = flow.definer[first_value(program, buffer)].name
                return ranks.get(name, len(ranks)), name

            return by_name
        case "opcodes":
            ranks = _ranks(sort.first)

            def by_opcode(buffer: Buffer) -> tuple[int, int]:
                value = first_value(program, buffer)
                return ranks.get(flow.definer[value].opcode.value, len(ranks)), value

            return by_opcode


def ascending_size(program: Program, buffer: Buffer) -> tuple[int, int, int]:
    """The key of the order that follows block prefetches: size, definition, last use."""
    ranges = program.ranges
    start = min(ranges.start[value] for value in buffer.values)
    return buffer.size, start, max(ranges.end[value] for value in buffer.values)


def _by_boundedness(
    program: Program, costs: MemorySpaceCosts, overrides: Sequence[SortOrderOverride]
) -> Key:
    """The order by gain in alternate memory, most first, behind the overrides that come first."""
    flow, ranges = program.flow, program.ranges

    def key(buffer: Buffer) -> tuple[float, ...]:
        value = first_value(program, buffer)
        uses = [program.place_of(use) for other in buffer.values for use in flow.uses(other)]
        definition = flow.definer[value], flow.index(value)
        priority = override_priority(overrides, buffer.size, definition, uses)
        bound = costs.boundedness(buffer.size, definition, uses)
        latest = max((program.schedule.times.get(use.instruction, -1) for use in uses), default=-1)
        start, end = ranges.start[value], ranges.end[value]
        return priority, -bound, -buffer.size, start - end, latest, start, value

    return key


def prefetch_candidates(
    program: Program, buffers: Iterable[Buffer], options: MemorySpaceOptions
) -> list[Buffer]:
    """Buffers of parameters in the order of cross-program prefetches. O(n log n + uses)."""
    flow = program.flow
    overrides = sort_order_overrides(options.msa_sort_order_overrides)

    def key(buffer: Buffer) -> tuple[int, int, int, int, int]:
        value = first_value(program, buffer)
        uses = [program.place_of(use) for use in flow.uses(value)]
        users = [use.instruction for use in uses]
        priority = override_priority(
            overrides,
            buffer.size,
            (flow.definer[value], flow.index(value)),
            uses,
            is_cross_program_prefetch=True,
        )
        elements = sum(leaf.element_count() for user in users for leaf in user.shape.leaves())
        latest = max((program.schedule.times.get(user, -1) for user in users), default=-1)
        return priority, -buffer.size, -elements, latest, value

    return sorted(buffers, key=key)


def first_value(program: Program, buffer: Buffer) -> int:
    """The value of a buffer that is defined first."""
    starts = program.ranges.start
    return min(buffer.values, key=lambda value: (starts[value], value))


def name_of(program: Program, buffer: Buffer) -> ValueName:
    """The name of a buffer's first value."""
    first = first_value(program, buffer)
    return program.flow.definer[first].name, program.flow.slot[first]


def _ranks(names: Sequence[str | Sequence[str]]) -> dict[str, int]:
    ranks: dict[str, int] = {}
    for rank, entry in enumerate(names):
        for name in [entry] if isinstance(entry, str) else entry:
            ranks[name] = rank
    return ranks
