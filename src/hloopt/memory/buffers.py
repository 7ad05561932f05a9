"""Buffers: the values that must lie in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from hloopt.analysis.dataflow import Dataflow, slots_of
from hloopt.analysis.in_place import IN_PLACE, InPlace
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.formats import braces
from hloopt.ir.attributes.values import Alias, parse_aliasing
from hloopt.memory.sizes import CPU_SIZES, SizeRule

Pair = tuple[int, int]
_MAY_SHARE = IN_PLACE | {Opcode.WHILE, Opcode.CONDITIONAL}
"""Two values that must share."""
ColorRule = Callable[[Dataflow], Iterable[tuple[int, int]]]
"""Values and the colors that a backend wants them in; a value may be wanted in several."""


@dataclass(slots=True, eq=False)
class Buffer:
    """Values that must share memory, as many bytes as the largest takes."""

    number: int
    values: list[int]
    """In order of their numbers."""
    size: int
    color: int
    """The memory space."""
    is_live_out: bool = False


@dataclass(slots=True)
class Buffers:
    """The buffers of a module.

    Values share where HLO demands it: the state of a while, results of branches, operations in
    place, and outputs with the parameters they are aliased with. Whether that is legal is not
    checked: copy insertion sees to it. O(slots · log values).
    """

    flow: Dataflow
    in_place: InPlace
    aliases: tuple[Alias, ...]
    of_value: dict[int, Buffer] = field(default_factory=dict)
    all: list[Buffer] = field(default_factory=list)
    """By number."""
    wanted: dict[int, list[int]] = field(default_factory=dict)
    """Colors by value, beyond those of layouts."""
    sizes: SizeRule = CPU_SIZES

    @classmethod
    def of(
        cls,
        flow: Dataflow,
        color_rule: ColorRule | None = None,
        *,
        aliases: tuple[Alias, ...] | None = None,
        sizes: SizeRule = CPU_SIZES,
    ) -> Buffers:
        """Share by the module's input_output_alias, or by `aliases` instead.

        Raises HloVerifyError for an alias of what does not exist, and for values that must share
        and are wanted in different memory.
        """
        if aliases is None:
            aliases = entry_aliases(flow.module)
        result = cls(flow, InPlace(), aliases, sizes=sizes)
        if color_rule is not None:
            for value, color in color_rule(flow):
                result.wanted.setdefault(value, []).append(color)
        result._make(_united(flow, result._pairs()))
        return result

    # -- who must share -----------------------------------------------------------------------

    def _pairs(self) -> Iterator[Pair]:
        yield from self._aliased()
        flow = self.flow
        for computation in flow.scope.orders:
            for instruction in computation.instructions:
                if instruction.opcode not in _MAY_SHARE:
                    continue
                if instruction.opcode is Opcode.WHILE:
                    yield from self._loop_state(instruction)
                elif instruction.opcode is Opcode.CONDITIONAL:
                    for branch in instruction.called:
                        yield from self._slot_by_slot(branch.root, instruction)
                else:
                    yield from self._in_place_of(instruction)

    def _aliased(self) -> Iterator[Pair]:
        entry = self.flow.module.entry
        parameters = {p.parameter_number: p for p in entry.parameters}
        for alias in self.aliases:
            parameter = parameters.get(alias.parameter)
            source = None
            if parameter is not None:
                source = self.flow.at(parameter, alias.parameter_index)
            result = self.flow.at(entry.root, alias.output_index)
            if source is None or result is None:
                raise HloVerifyError(
                    f"input_output_alias names parameter {alias.parameter} at "
                    f"{braces(map(str, alias.parameter_index))} and output "
                    f"{braces(map(str, alias.output_index))}, which do not both exist"
                )
            yield result, source

    def _loop_state(self, loop: Instruction) -> Iterator[Pair]:
        parts = [loop.operands[0], *(callee.root for callee in loop.called[:1])]
        parts += [parameter for callee in loop.called for parameter in callee.parameters]
        for part in parts:
            yield from self._slot_by_slot(part, loop)

    def _slot_by_slot(self, part: Instruction, whole: Instruction) -> Iterator[Pair]:
        held = self.flow.held
        return zip(held[part], held[whole], strict=False)

    def _in_place_of(self, instruction: Instruction) -> Iterator[Pair]:
        for output, number, index in self.in_place.pairs(instruction):
            if number < len(instruction.operands):
                source = self.flow.at(instruction.operands[number], index)
                result = self.flow.at(instruction, output)
                if source is not None and result is not None:
                    yield source, result

    # -- buffers ------------------------------------------------------------------------------

    def _make(self, groups: dict[int, list[int]]) -> None:
        flow = self.flow
        slots_once = cache(self.sizes.slots)  # many values have one shape
        live_out = set(flow.members(flow.held[flow.module.entry.root]))
        for number, values in sorted(groups.items()):
            values.sort()
            size = max([slots_once(flow.definer[v].shape)[flow.slot[v]] for v in values])
            buffer = Buffer(
                number, values, size, self._color(values), not live_out.isdisjoint(values)
            )
            self.all.append(buffer)
            for value in values:
                self.of_value[value] = buffer

    def _color(self, values: list[int]) -> int:
        space = self.flow.shape(values[0]).layout.memory_space
        if not self.wanted:
            return space
        colors = {color for value in values for color in self.wanted.get(value, ())}
        if not colors:
            return space
        colors |= {self.flow.shape(value).layout.memory_space for value in values} - {0}
        if len(colors) > 1:
            names = ", ".join(f"'%{self.flow.definer[value].name}'" for value in values[:4])
            raise HloVerifyError(
                f"what {names} hold{'s' * (len(values) == 1)} lies in one place, but is wanted in "
                f"the memory spaces {' and '.join(map(str, sorted(colors)))}"
            )
        return colors.pop()

    def value_size(self, value: int) -> int:
        """Bytes of one value."""
        flow = self.flow
        return self.sizes.slots(flow.definer[value].shape)[flow.slot[value]]


def shared_values(flow: Dataflow, in_place: InPlace) -> dict[int, list[int]]:
    """Of each value that must share memory with others all that lie there, itself included.

    In order of their numbers; what lies alone is left out. Raises HloVerifyError for an alias of
    what does not exist. O(slots).
    """
    groups: dict[int, list[int]] = {}
    for pair in Buffers(flow, in_place, entry_aliases(flow.module))._pairs():
        first, *others = flow.members(pair)
        for second in others:
            if first < 0 or second < 0 or first == second:
                continue
            one = groups.get(first) or groups.setdefault(first, [first])
            other = groups.get(second) or groups.setdefault(second, [second])
            if one is other:
                continue
            if len(one) < len(other):
                one, other = other, one
            one += other
            for value in other:
                groups[value] = one
    for values in {id(values): values for values in groups.values()}.values():
        values.sort()
    return groups


def entry_aliases(module: Module) -> tuple[Alias, ...]:
    """The outputs of the entry that the header aliases with parameters."""
    return parse_aliasing(module.attributes.get("input_output_alias", "{}"))


def read_only_values(flow: Dataflow, aliases: tuple[Alias, ...]) -> set[int]:
    """The values in memory where nothing may be written: constants, arguments without alias.

    O(values).
    """
    found = {
        value for value, definer in enumerate(flow.definer) if definer.opcode is Opcode.CONSTANT
    }
    aliased = {(alias.parameter, alias.parameter_index) for alias in aliases}
    for parameter in flow.module.entry.parameters:
        number = parameter.parameter_number
        indices = slots_of(parameter.shape).indices
        for value, index in zip(flow.held[parameter], indices, strict=True):
            if (number, index) not in aliased:
                found.add(value)
    return found


def _united(flow: Dataflow, pairs: Iterator[Pair]) -> dict[int, list[int]]:
    """The values that share, directly or not, by the number of their buffer.

    Value by value, the largest of the sets that come together takes in the others, the one with
    the smallest number among equals, and keeps its number: as XLA does, for these numbers settle
    which of equal buffers goes first.
    """
    partners: dict[int, list[int]] = {}
    for pair in pairs:
        first, *others = flow.members(pair)
        for second in others:
            if first != second and first >= 0 and second >= 0:
                partners.setdefault(first, []).append(second)
                partners.setdefault(second, []).append(first)
    groups = {value: [value] for value in flow.values()}
    group_of = {value: value for value in partners}
    for value in sorted(partners):
        meeting = {group_of[value], *(group_of[partner] for partner in partners[value])}
        if len(meeting) == 1:
            continue
        largest = min(meeting, key=lambda number: (-len(groups[number]), number))
        for number in sorted(meeting - {largest}):
            group = groups.pop(number)
            groups[largest] += group
            for member in group:
                group_of[member] = largest
    return groups
