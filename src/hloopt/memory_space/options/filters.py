"""Overrides by filter: when a prefetch should start, which buffers are allocated first.

They are given as data, a list of overrides, or as XLA's protocol buffers in text form,
`overrides { hlo_operand_filter { size_lte: 24 } override_options { prefetch_eagerness: 0.5 } }`.
Of several that match the first one counts. Regular expressions match whole names or texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hloopt.analysis.dataflow.slots import Index
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction
from hloopt.memory_space.options.override_messages import (
    PREFETCH_OVERRIDE,
    SORT_ORDER_OVERRIDE,
    read_overrides,
)
from hloopt.memory_space.use_site import UseSite
from hloopt.text import PrintOptions, format_instruction

FIRST, LAST = -(2**63), 2**63 - 1
"""The priorities of buffers that are allocated before, and after, all others."""

Given = str | Sequence[Mapping[str, object]]
"""Overrides in text form, or as data."""


@dataclass(frozen=True, slots=True)
class InstructionFilter:
    """Instructions by name, and by their text as XLA prints it."""

    name: re.Pattern[str] | None
    text: re.Pattern[str] | None

    def matches(self, instruction: Instruction) -> bool:
        """Whether an instruction is meant: all are where nothing is asked for."""
        if self.name is not None and not self.name.fullmatch(instruction.name):
            return False
        if self.text is None:
            return True
        text = format_instruction(instruction, PrintOptions.default())
        return self.text.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class PartFilter:
    """Parts of operands or results: their instruction, their shape index, their bytes."""

    instruction: InstructionFilter
    index: Index | None
    size_gte: int | None
    size_lte: int | None

    def matches(self, instruction: Instruction, index: Index, size: int) -> bool:
        """Whether a part of so many bytes is meant."""
        return (
            self.index in (None, index)
            and (self.size_gte is None or size >= self.size_gte)
            and (self.size_lte is None or size <= self.size_lte)
            and self.instruction.matches(instruction)
        )


@dataclass(frozen=True, slots=True)
class UseFilter:
    """Uses by their user, the part of its operand, and the bytes of what they read."""

    part: PartFilter
    operand: int | None

    def matches(self, use: UseSite, size: int) -> bool:
        """Whether a use of so many bytes is meant."""
        is_operand = self.operand in (None, use.operand)
        return is_operand and self.part.matches(use.instruction, use.index, size)


# -- when a prefetch should start -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrefetchOverride:
    """The time at which prefetches for some uses should start: one of the three is given."""

    uses: UseFilter
    eagerness: float | None
    """The part of the time from the earliest start to the use that passes before."""
    before: InstructionFilter | None
    after: InstructionFilter | None


def prefetch_overrides(given: Given) -> list[PrefetchOverride]:
    """Read the option `preferred_prefetch_overrides`. Raises PassRefused."""
    found = []
    for data in read_overrides("preferred_prefetch_overrides", given, PREFETCH_OVERRIDE):
        options = data["override_options"]
        found.append(
            PrefetchOverride(
                _use_filter(data.get("hlo_operand_filter", {})),
                options.get("prefetch_eagerness"),
                *(
                    None if name not in options else _instruction_filter(options[name])
                    for name in ("before_instruction", "after_instruction")
                ),
            )
        )
    return found


class PreferredTimes:
    """The times, over a schedule, after which prefetches should start."""

    def __init__(self, overrides: Sequence[PrefetchOverride], schedule: FlatSchedule) -> None:
        self._overrides = overrides
        self._steps = schedule.steps
        self._times: dict[InstructionFilter, int | None] = {}

    def of(self, use: UseSite, size: int, earliest: int, end: int) -> int | None:
        """The time after which a prefetch for a use at `end` should start; None if any is good.

        It may be before `earliest`, the first one possible, and at or after `end`, which makes a
        prefetch impossible. O(overrides), and once per override O(instructions).
        """
        for override in self._overrides:
            if override.uses.matches(use, size):
                if override.eagerness is not None:
                    return int(earliest + override.eagerness * (end - earliest))
                if override.after is not None:
                    return self._first(override.after)
                time = None if override.before is None else self._first(override.before)
                return None if time is None else time - 1
        return None

    def _first(self, instructions: InstructionFilter) -> int | None:
        """The time of the first instruction that is meant."""
        if instructions not in self._times:
            steps = enumerate(self._steps)
            self._times[instructions] = next(
                (time for time, step in steps if instructions.matches(step)), None
            )
        return self._times[instructions]


# -- which buffers are allocated first -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SortOrderOverride:
    """The priority of some buffers: the smallest is allocated first, 0 is that of all others."""

    definition: PartFilter
    uses: UseFilter | None
    """Where given, some use of the buffer has to match."""
    priority: int
    is_for_cross_program_prefetches: bool
    """Whether it counts for the order of cross-program prefetches, too."""


def sort_order_overrides(given: Given) -> list[SortOrderOverride]:
    """Read the option `msa_sort_order_overrides`. Raises PassRefused."""
    found = []
    overrides = read_overrides("msa_sort_order_overrides", given, SORT_ORDER_OVERRIDE)
    for data in overrides:
        position = data.get("hlo_position_matcher", {})
        uses = position.get("hlo_use_filter")
        options = data["override_options"]
        priority = options.get("assign_priority", 0)
        if options.get("assign_first"):
            priority = FIRST
        elif options.get("assign_last"):
            priority = LAST
        found.append(
            SortOrderOverride(
                _part_filter(position),
                None if uses is None else _use_filter(uses),
                priority,
                data.get("apply_to_cross_program_prefetches", False),
            )
        )
    return found


def override_priority(
    overrides: Sequence[SortOrderOverride],
    size: int,
    definition: tuple[Instruction, Index],
    uses: Iterable[UseSite],
    *,
    is_cross_program_prefetch: bool = False,
) -> int:
    """The priority of a buffer of so many bytes; 0 where no override matches.

    O(overrides · uses).
    """
    for override in overrides:
        if is_cross_program_prefetch and not override.is_for_cross_program_prefetches:
            continue
        wanted = override.uses
        if override.definition.matches(*definition, size) and (
            wanted is None or any(wanted.matches(use, size) for use in uses)
        ):
            return override.priority
    return 0


# -- reading --------------------------------------------------------------------------------------


def _instruction_filter(data: Mapping[str, Any]) -> InstructionFilter:
    return InstructionFilter(data.get("instruction_name_regex"), data.get("instruction_regex"))


def _part_filter(data: Mapping[str, Any]) -> PartFilter:
    bounds = data.get("size_gte"), data.get("size_lte")
    return PartFilter(_instruction_filter(data), data.get("tuple_index"), *bounds)


def _use_filter(data: Mapping[str, Any]) -> UseFilter:
    return UseFilter(_part_filter(data), data.get("operand_number"))
