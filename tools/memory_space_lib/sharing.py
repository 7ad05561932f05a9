"""Positions that hold one value, and positions that have one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.leaves import element_range, index_range
from memory_space_lib.in_place import aliases_in, in_place_pairs
from memory_space_lib.timeline import Timeline

FORWARDS = (
    *(Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.OPT_BARRIER),
    *(Opcode.DOMAIN, Opcode.ADD_DEPENDENCY),
)
"""Opcodes that pass on what they are given and read no bytes."""


def _pairs(one: Iterable[int], other: Iterable[int]) -> Iterator[tuple[int, int]]:
    """As many positions on both sides, each with its own."""
    return zip(one, other, strict=True)


class Groups:
    """Positions in groups that grow together."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def find(self, position: int) -> int:
        """The position that stands for a group. Nearly O(1)."""
        above = self._above
        while above[position] != position:
            above[position] = above[above[position]]
            position = above[position]
        return position

    def join(self, one: int, other: int) -> None:
        """Make two groups one; its earliest position stands for it."""
        one, other = self.find(one), self.find(other)
        self._above[max(one, other)] = min(one, other)

    def join_all(self, pairs: Iterable[tuple[int, int]]) -> None:
        for one, other in pairs:
            self.join(one, other)


class Sharing:
    """`values`: positions of one value. `places`: positions in one place, of one or more values.

    Loops, conditionals, operations in place and donated parameters join places, as results have
    the place of what is given. A loop's element that its body only passes on is one value outside
    and inside. Nearly O(positions).
    """

    def __init__(self, line: Timeline) -> None:
        self.line = line
        self.values = Groups(len(line.holders))
        for instruction in line.steps:
            self.values.join_all(self._forwarded(instruction))
            if instruction.opcode is Opcode.WHILE:
                self._pass_through_loop(instruction)
            elif instruction.opcode is Opcode.CONDITIONAL:
                self._pass_through_branches(instruction)
        self.places = Groups(len(line.holders))
        for position in range(len(line.holders)):
            self.places.join(position, self.values.find(position))
        for instruction in line.steps:
            self.places.join_all(self._shared(instruction))
        self.places.join_all(self._donated())

    # -- one value ------------------------------------------------------------------------------

    def _forwarded(self, instruction: Instruction) -> Iterator[tuple[int, int]]:
        line = self.line
        own = line.positions(instruction)
        operands = instruction.operands
        match instruction.opcode:
            case Opcode.GET_TUPLE_ELEMENT:
                yield from zip(
                    own, self._element(operands[0], instruction.tuple_index), strict=True
                )
            case Opcode.TUPLE:
                yield from _pairs(own, chain.from_iterable(map(line.positions, operands)))
            case opcode if opcode in FORWARDS:
                yield from _pairs(own, line.positions(operands[0]))
            case Opcode.CALL:
                yield from _pairs(own, line.positions(instruction.called[0].root))
                for parameter in instruction.called[0].parameters:
                    given = operands[parameter.parameter_number]
                    yield from _pairs(line.positions(parameter), line.positions(given))
            case Opcode.CONDITIONAL:
                for branch, given in zip(instruction.called, operands[1:], strict=True):
                    (parameter,) = branch.parameters
                    yield from _pairs(line.positions(parameter), line.positions(given))
            case Opcode.COPY_START:
                yield own[1], line.base[operands[0]]
            case Opcode.COPY_DONE:
                yield own[0], line.base[operands[0]]
            case Opcode.ALL_REDUCE_DONE:
                yield from _pairs(own, line.positions(operands[0]))
            case _:
                yield from self._forwarded_by_halves(instruction, own)

    def _forwarded_by_halves(
        self, instruction: Instruction, own: range
    ) -> Iterator[tuple[int, int]]:
        """Sources of asynchronous operations, and results, which their dones pass on."""
        operands = instruction.operands
        match instruction.opcode:
            case (
                Opcode.ALL_GATHER_START
                | Opcode.COLLECTIVE_PERMUTE_START
                | Opcode.ASYNC_START
                | Opcode.SEND
            ):
                given = chain.from_iterable(map(self.line.positions, operands))
                # A collective-permute has operands beside its sources.
                yield from zip(self._element(instruction, 0), given, strict=False)
                if instruction.opcode is Opcode.ASYNC_START:
                    yield from self._given_back(instruction)
            case Opcode.ALL_GATHER_DONE | Opcode.COLLECTIVE_PERMUTE_DONE | Opcode.ASYNC_DONE:
                yield from _pairs(own, self._element(operands[0], 1))
            case Opcode.ASYNC_UPDATE:
                late = chain.from_iterable(map(self.line.positions, operands[1:]))
                given = chain(self._element(operands[0], 0), late)
                yield from _pairs(self._element(instruction, 0), given)
                # As long as operands are missing, the result may be missing, too.
                result = self._element(operands[0], 1)
                yield from zip(self._element(instruction, 1), result, strict=False)
            case Opcode.RECV_DONE:
                yield from _pairs(self._element(instruction, 0), self._element(operands[0], 0))

    def _given_back(self, start: Instruction) -> Iterator[tuple[int, int]]:
        """Results of an async-start that its computation is given and does not change."""
        root = start.called[0].root
        for leaf, position in enumerate(self._element(start, 1)):
            found = parameter_of(root, leaf)
            if found is not None:
                yield position, self.line.base[start.operands[found[0]]] + found[1]

    def _element(self, instruction: Instruction, number: int) -> range:
        """The positions of an element of a tuple."""
        leaves = element_range(instruction.shape, number)
        return self.line.positions(instruction)[leaves]

    def _loop(self, loop: Instruction) -> Iterator[tuple[int, ...]]:
        """Leaf by leaf: result, operand, parameters of body and condition, root of the body."""
        body, condition = loop.called
        (of_body,), (of_condition,) = body.parameters, condition.parameters
        whole = (loop, loop.operands[0], of_body, of_condition, body.root)
        return zip(*map(self.line.positions, whole), strict=True)

    def _pass_through_loop(self, loop: Instruction) -> None:
        """Join what always holds the value it began with; and what begins and goes on alike.

        An element may go on with another one that holds the same: as often as something is joined,
        all are looked at again.
        """
        find = self.values.find
        left = list(self._loop(loop))
        found = True
        while found:
            found = False
            twins: dict[tuple[int, int], tuple[int, ...]] = {}
            varying = []
            for element in left:
                result, given, of_body, of_condition, root = element
                inside = result, of_body, of_condition
                if find(root) in (find(of_body), find(given)):
                    self.values.join_all((given, other) for other in inside)
                    found = True
                    continue
                twin = twins.setdefault((find(given), find(root)), inside)
                if twin is inside:
                    varying.append(element)
                else:
                    self.values.join_all(zip(inside, twin, strict=True))
                    found = True
            left = varying

    def _pass_through_branches(self, conditional: Instruction) -> None:
        roots = [self.line.positions(branch.root) for branch in conditional.called]
        for result, *given in zip(self.line.positions(conditional), *roots, strict=True):
            if len({self.values.find(one) for one in given}) == 1:
                self.values.join(result, given[0])

    # -- one place ------------------------------------------------------------------------------

    def _shared(self, instruction: Instruction) -> Iterator[tuple[int, int]]:
        line = self.line
        match instruction.opcode:
            case Opcode.WHILE:
                for result, *others in self._loop(instruction):
                    yield from ((result, other) for other in others)
            case Opcode.CONDITIONAL:
                for branch in instruction.called:
                    yield from zip(
                        line.positions(instruction), line.positions(branch.root), strict=True
                    )
            case _:
                for operand, leaf, output in in_place_pairs(instruction):
                    read = line.base[instruction.operands[operand]] + leaf
                    yield line.base[instruction] + output, read

    def _donated(self) -> Iterator[tuple[int, int]]:
        """Results of the program, and parameters whose place they take over."""
        line, entry = self.line, self.line.module.entry
        given = line.module.attributes.get("input_output_alias", "")
        parameters = entry.parameters
        for output, number, index in aliases_in(given):
            parameter = parameters[number]
            written = line.positions(entry.root)[index_range(entry.root.shape, output)]
            yield from _pairs(
                written, line.positions(parameter)[index_range(parameter.shape, index)]
            )


def parameter_of(instruction: Instruction, leaf: int) -> tuple[int, int] | None:
    """The parameter, by number, and its leaf that an instruction of its computation passes on."""
    while instruction.opcode is not Opcode.PARAMETER:
        match instruction.opcode:
            case Opcode.BITCAST:
                pass
            case Opcode.GET_TUPLE_ELEMENT:
                leaf += element_range(instruction.operands[0].shape, instruction.tuple_index).start
            case Opcode.CALL:
                found = parameter_of(instruction.called[0].root, leaf)
                if found is None:
                    return None
                number, leaf = found
                instruction = instruction.operands[number]
                continue
            case _:
                return None
        instruction = instruction.operands[0]
    return instruction.parameter_number, leaf
