"""Positions and uses whose memory space is fixed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Position, Use, slots_of
from hloopt.memory_space.allocation.named_steps import NamedSteps
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import TRIVIAL, Program


@dataclass(slots=True)
class Colorings:
    """Colors by position and use: whether alternate memory is demanded, or default memory."""

    positions: dict[Position, bool] = field(default_factory=dict)
    uses: dict[Use, bool] = field(default_factory=dict)
    precolored: set[int] = field(default_factory=set)
    """Values that the text puts into alternate memory."""

    @classmethod
    def of(cls, program: Program, options: MemorySpaceOptions) -> Colorings:
        """Read the options, and the layouts of the text. Raises PassRefused for an unknown name."""
        result = cls()
        named = NamedSteps(program, "buffer_colorings")
        for one in options.buffer_colorings:
            is_alternate = one.memory_space == options.alternate_memory_space
            if one.use is not None:
                user = named[one.use]
                slot = slots_of(user.operands[one.operand].shape).at(one.index) or 0
                result.uses[Use(user, one.operand, slot)] = is_alternate
            if one.position is not None:
                definer = named[one.position]
                slot = slots_of(definer.shape).at(one.index) or 0
                result.positions[Position(definer, slot)] = is_alternate
        for value in program.flow.values():
            space = program.flow.shape(value).layout.memory_space
            if space and space == options.alternate_memory_space:
                result.precolored.add(value)
        return result

    def times(self, program: Program, values: Iterable[int]) -> list[tuple[int, int]]:
        """The ranges of times at which values are demanded in alternate memory.

        Times with nothing but other times in between at which the values are of no interest are
        joined.
        """
        if not self.positions and not self.uses:
            return []
        colored: dict[int, bool] = {}
        for value in values:
            for position in program.flow.positions(value):
                if position.instruction.opcode not in TRIVIAL:
                    time = program.time(position.instruction)
                    colored[time] = colored.get(time, False) or bool(self.positions.get(position))
            for use in program.flow.uses(value):
                time = program.time_of_use(use.user)
                colored[time] = colored.get(time, False) or bool(self.uses.get(use))
        ranges: list[tuple[int, int]] = []
        is_open = False
        for time, is_colored in sorted(colored.items()):
            if is_colored:
                ranges.append((ranges.pop()[0] if is_open else time, time))
            is_open = is_colored
        return ranges
