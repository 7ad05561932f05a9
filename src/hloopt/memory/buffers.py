"""Values that lie in one place: buffers, from must-share rules checked against live ranges."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum

from hloopt.analysis.liveness import LiveRanges
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attribute_format import braces
from hloopt.ir.attribute_values import parse_aliasing
from hloopt.memory.sharing import FusionSharing, Index, Pair, in_place_pairs, may_overwrite
from hloopt.memory.sizes import slot_at, slots_of
from hloopt.memory.values import LoopState, Values

Interval = tuple[int, int]


class BufferKind(StrEnum):
    """What a buffer is for. An argument that is also an output is an argument."""

    ARGUMENT = "argument"
    OUTPUT = "output"
    CONSTANT = "constant"
    TEMPORARY = "temporary"


@dataclass(slots=True, eq=False)
class Buffer:
    """Memory for one or more values, never more than one of them needed at a time."""

    values: list[int]
    live: list[Interval]
    """Positions at which it is needed, in order, both ends included."""
    kind: BufferKind = BufferKind.TEMPORARY
    is_donated: bool = False  # an argument that an output may reuse
    is_output: bool = False

    @property
    def is_read_only(self) -> bool:
        """Whether no other value may be written here."""
        return self.kind is BufferKind.CONSTANT or (
            self.kind is BufferKind.ARGUMENT and not self.is_donated
        )


@dataclass(slots=True)
class Buffers:
    """The buffers of a module.

    Two values share a buffer where HLO demands it (a while's state, updates in place, donated
    arguments) and where an elementwise result can overwrite an operand that nobody needs any
    more. Where a demanded sharing would destroy a value still needed, the values are kept apart:
    the compiler has to copy there. O(values · log values).
    """

    values: Values
    ranges: LiveRanges
    of_value: list[Buffer]
    kept_apart: int = 0
    """Number of demanded sharings that would have destroyed a value."""
    _fusions: FusionSharing = field(default_factory=FusionSharing)

    @classmethod
    def of(cls, module: Module, values: Values, ranges: LiveRanges) -> Buffers:
        """Assign every value to a buffer. Raises HloVerifyError for aliases of nothing."""
        result = cls(values, ranges, [])
        result.of_value = [
            Buffer([value], [(start, end)])
            for value, (start, end) in enumerate(zip(ranges.start, ranges.end, strict=True))
        ]
        result._mark_ends(module)
        result._share_unchanged_loop_state()
        result._share_in_place()
        for conditional in values.conditionals:
            result._share_branches(conditional)
        for loop in values.loops.values():
            result._share_loop_state(loop)
        result._reuse_operands()
        return result

    def all(self) -> list[Buffer]:
        """The buffers, in order of their first values. O(values)."""
        return list(dict.fromkeys(self.of_value))

    def size(self, buffer: Buffer) -> int:
        """Bytes: those of the largest value. O(values of the buffer)."""
        return max(map(self.values.size, buffer.values))

    # -- arguments, outputs, constants --------------------------------------------------------

    def _mark_ends(self, module: Module) -> None:
        end = len(self.values.schedule.steps)
        for instruction in self.values.schedule.steps:
            if instruction.opcode is Opcode.CONSTANT:
                for value in self.values.held[instruction]:
                    self.of_value[value].kind = BufferKind.CONSTANT
        parameters = {p.parameter_number: p for p in self.values.entry_parameters}
        for parameter in parameters.values():
            for value in self.values.held[parameter]:
                self.of_value[value].kind = BufferKind.ARGUMENT
        for alias in parse_aliasing(module.attributes.get("input_output_alias", "{}")):
            donated = parameters.get(alias.parameter)
            source = self._value_at(donated, alias.parameter_index)
            result = self._value_at(module.entry.root, alias.output_index)
            if source is None or result is None:
                raise HloVerifyError(
                    f"input_output_alias names parameter {alias.parameter} at "
                    f"{braces(map(str, alias.parameter_index))} and output "
                    f"{braces(map(str, alias.output_index))}, which do not both exist"
                )
            self.of_value[source].is_donated = True
            self._unite(source, result)
        for value in self.values.held[module.entry.root]:
            buffer = self.of_value[value]
            buffer.is_output = True
            if buffer.kind is BufferKind.TEMPORARY:
                buffer.kind = BufferKind.OUTPUT
        for buffer in self.all():
            if buffer.kind is BufferKind.ARGUMENT and not buffer.is_donated:
                buffer.live = [(0, end)]

    def _value_at(self, instruction: Instruction | None, index: Index) -> int | None:
        if instruction is None:
            return None
        slot = slot_at(slots_of(instruction.shape), index)
        return None if slot is None else self.values.held[instruction][slot]

    # -- sharing that HLO demands -------------------------------------------------------------

    def _share_unchanged_loop_state(self) -> None:
        for loop in self.values.loops.values():
            for initial, inside, following in zip(
                loop.initial, loop.inside, loop.next, strict=True
            ):
                if inside == following:
                    self._unite(initial, inside)

    def _share_loop_state(self, loop: LoopState) -> None:
        for initial, inside, following, after in zip(
            loop.initial, loop.inside, loop.next, loop.after, strict=True
        ):
            if inside == following:
                continue
            self._unite_if_apart(initial, inside)
            if self._can_follow(inside, following):
                self._unite_if_apart(inside, following)
            self._unite_if_apart(following, after)

    def _can_follow(self, before: int, after: int) -> bool:
        """Whether `after` is written when `before` was read, or element by element."""
        if self.ranges.end[before] < self.ranges.start[after]:
            return True
        instruction = self.values.definer[after]
        return self.of_value[before] is self.of_value[after] or any(
            self.values.held[operand][0] == before
            and may_overwrite(instruction, number, self._fusions)
            for number, operand in enumerate(instruction.operands)
        )

    def _share_branches(self, conditional: Instruction) -> None:
        held = self.values.held
        for branch in conditional.called:
            if self.values.schedule.is_entered_by(branch, conditional):
                for result, after in zip(held[branch.root], held[conditional], strict=True):
                    self._unite_if_apart(result, after)

    def _share_in_place(self) -> None:
        for instruction in self.values.schedule.steps:
            pairs = in_place_pairs(instruction)
            if instruction.opcode is Opcode.FUSION:
                pairs = pairs + self._fusions.pairs(instruction)
            for pair in pairs:
                self._share_pair(instruction, pair)

    def _share_pair(self, instruction: Instruction, pair: Pair) -> None:
        output, number, index = pair
        if number >= len(instruction.operands):
            return
        operand = instruction.operands[number]
        sources = slots_of(operand.shape)
        results = slots_of(instruction.shape)
        first_source, first_result = slot_at(sources, index), slot_at(results, output)
        if first_source is None or first_result is None:
            return
        width = sum(part[: len(index)] == index for part in sources.indices)
        held_source = self.values.held[operand][first_source : first_source + width]
        held_result = self.values.held[instruction][first_result : first_result + width]
        for source, result in zip(held_source, held_result, strict=False):
            if not self.values.is_tuple(result):
                self._unite_if_apart(source, result)

    # -- sharing that saves memory ------------------------------------------------------------

    def _reuse_operands(self) -> None:
        """Let outputs, and temporaries alone in their buffers, take over operands that end there.

        Later values first, so that a chain of operations can end in an output.
        """
        alone = {
            value
            for value, buffer in enumerate(self.of_value)
            if buffer.kind is BufferKind.TEMPORARY and len(buffer.values) == 1
        }
        writable = [
            value
            for value, buffer in enumerate(self.of_value)
            if (value in alone or (buffer.is_output and self.values.definer[value].parent.is_entry))
            and not buffer.is_read_only
            and not self.values.is_tuple(value)
        ]
        for value in sorted(writable, key=lambda value: (-self.ranges.start[value], value)):
            self._reuse_operand(value, alone)

    def _reuse_operand(self, value: int, alone: set[int]) -> None:
        instruction = self.values.definer[value]
        for number, operand in enumerate(instruction.operands):
            source = self.values.held[operand][0]
            if (
                source in alone
                and self.ranges.end[source] == self.ranges.start[value]
                and self.values.definer[source] in instruction.operands
                and self.values.size(source) == self.values.size(value)
                and may_overwrite(instruction, number, self._fusions)
            ):
                self._try_unite(source, value)
                return

    # -- uniting ------------------------------------------------------------------------------

    def _unite(self, first: int, second: int) -> None:
        """Put two values into one buffer whatever their live ranges."""
        into, other = self.of_value[first], self.of_value[second]
        if into is other:
            return
        self._absorb(into, other, _covering(sorted([*into.live, *other.live])))

    def _unite_if_apart(self, first: int, second: int) -> None:
        """Put two values that should share into one buffer, unless that would destroy one."""
        if not self._try_unite(first, second):
            self.kept_apart += 1

    def _try_unite(self, first: int, second: int) -> bool:
        """Put two values into one buffer where none that is still needed would be lost."""
        into, other = self.of_value[first], self.of_value[second]
        if into is other:
            return True
        if len(into.live) < len(other.live):
            into, other = other, into
        if (
            into.is_read_only
            or other.is_read_only
            or self.values.memory_space(first) != self.values.memory_space(second)
            or not all(_is_free(into.live, interval) for interval in other.live)
        ):
            return False
        live = into.live
        for interval in other.live:
            _insert(live, interval)
        self._absorb(into, other, live)
        return True

    def _absorb(self, into: Buffer, other: Buffer, live: list[Interval]) -> None:
        if len(into.values) < len(other.values):
            into, other = other, into
        into.live = live
        into.values += other.values
        for value in other.values:
            self.of_value[value] = into
        if other.kind is BufferKind.ARGUMENT or into.kind is BufferKind.TEMPORARY:
            into.kind = other.kind
        into.is_donated |= other.is_donated
        into.is_output |= other.is_output


def _is_free(live: list[Interval], wanted: Interval) -> bool:
    """Whether `wanted` at most touches its neighbours in `live`, which is sorted."""
    position = bisect_right(live, wanted)
    if position and (live[position - 1][1] > wanted[0] or live[position - 1][0] == wanted[0]):
        return False
    return position == len(live) or wanted[1] <= live[position][0] != wanted[0]


def _insert(live: list[Interval], interval: Interval) -> None:
    """Add a free interval to the sorted `live`, making one of those that touch.

    A chain of instructions in one buffer is then one interval, not a long list of them.
    """
    start, end = interval
    position = bisect_right(live, interval)
    if position < len(live) and live[position][0] == end < live[position][1]:
        end = live.pop(position)[1]
    if position and live[position - 1][1] == start < end:
        live[position - 1] = (live[position - 1][0], end)
    else:
        live.insert(position, (start, end))


def _covering(intervals: list[Interval]) -> list[Interval]:
    """Sorted intervals with overlapping ones made one."""
    result = [intervals[0]]
    for start, end in intervals[1:]:
        if start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result
