"""The dimensions of a module that have sizes in common: the factors of every array's dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import TypeAlias

from hloopt.ir.attributes.values import (
    Alias,
    parse_aliasing,
    parse_ints,
    parse_output_to_operand_aliasing,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order, stable_order
from hloopt.ir.shapes.leaves import element_range, leaf_count
from hloopt.ir.shapes.shape import Shape
from hloopt.shrink.counter_uses import keep_trips
from hloopt.shrink.errors import explaining
from hloopt.shrink.factors import Factor, Rest, equate, keep
from hloopt.shrink.facts import ValueFacts
from hloopt.shrink.uniformity import Uniformity

Dimensions: TypeAlias = tuple[Factor, ...]
"""Of an array: a factor (perhaps split) for each of its dimensions."""
Leaves: TypeAlias = list[Dimensions]
"""By leaf of a shape; tokens have no dimensions."""
Relation: TypeAlias = "Callable[[Flow, Instruction], Leaves]"


class Flow:
    """The dimensions of all values of a module, related by `relations`.

    Nearly linear in its leaves.
    """

    def __init__(self, module: Module, relations: Mapping[Opcode, Relation]) -> None:
        self.module = module
        self.facts = ValueFacts(module)
        keep_trips(module, self.facts)
        self.uniformity = Uniformity()
        self.values: dict[Instruction, Leaves] = {}
        self.blocks: dict[tuple[Instruction, int], Factor] = {}
        """By dimension of slices, pads and dynamic slices: of what their offsets are multiples."""
        self.windows: dict[tuple[Instruction, int], Factor] = {}
        """By dimension of reduce-windows: the size of the window, where it follows dimensions."""
        self.rests: list[Rest] = []
        self.points: list[tuple[Instruction, int]] = []
        """Slices of one element of a dimension."""
        self.iotas: list[tuple[Instruction, int]] = []
        """Values that count positions along a dimension."""
        for computation in computation_post_order(module):
            for instruction in stable_order(computation):
                with explaining(instruction):
                    self.values[instruction] = self._relate(
                        instruction, relations.get(instruction.opcode)
                    )
        self._relate_aliases()

    def of(self, instruction: Instruction) -> Dimensions:
        """The dimensions of an array."""
        return self.values[instruction][0]

    # -- what relations are made of ------------------------------------------------------------

    def fresh(self, shape: Shape) -> Leaves:
        """New dimensions, related to nothing; those that are dynamic stay."""
        return [_fresh(leaf) for leaf in shape.leaves()]

    def join(self, left: Leaves, right: Leaves, instruction: Instruction, where: str = "") -> None:
        """Let leaves have the same dimensions."""
        reason = f"%{instruction.name}: {where or instruction.opcode} joins different sizes"
        for a, b in zip(left, right, strict=True):
            if len(a) != len(b):  # one memory for arrays of different ranks
                equate(a, b, reason)
                continue
            for x, y in zip(a, b, strict=True):
                if x is not y:
                    equate([x], [y], reason)

    def same(self, a: Factor, b: Factor, instruction: Instruction) -> None:
        """Let two dimensions have the same size."""
        self.products([a], [b], instruction)

    def products(self, a: Sequence[Factor], b: Sequence[Factor], instruction: Instruction) -> None:
        """Let two products of dimensions be the same."""
        equate(a, b, f"%{instruction.name}: {instruction.opcode} of sizes that do not divide")

    def stay(self, factors: Sequence[Factor], instruction: Instruction, reason: str) -> None:
        """Let sizes be as they are."""
        keep(factors, f"%{instruction.name}: {reason}")

    def share_blocks(
        self, dimensions: Sequence[Factor], offsets: Sequence[int], instruction: Instruction
    ) -> Factor:
        """The common block of dimensions that are cut or put together at `offsets`.

        Sizes and offsets are whole numbers of blocks, and these numbers stay.
        """
        block = Factor(gcd(*(dimension.size for dimension in dimensions), *offsets))
        reason = f"%{instruction.name}: {instruction.opcode} at these offsets"
        for dimension in dimensions:
            if block.size > 0:
                equate([dimension], [Factor(dimension.size // block.size, reason), block], reason)
            else:
                keep([dimension], reason)
        return block

    def stay_all(self, instruction: Instruction, reason: str) -> Leaves:
        """Let all sizes of operands and results be as they are."""
        result = self.fresh(instruction.shape)
        involved = [result, *(self.values[operand] for operand in instruction.operands)]
        for computation in instruction.called:
            involved += [self.values[parameter] for parameter in computation.parameters]
            involved.append(self.values[computation.root])
        for leaves in involved:
            self.stay([f for dimensions in leaves for f in dimensions], instruction, reason)
        return result

    # -- the walk --------------------------------------------------------------------------------

    def _relate(self, instruction: Instruction, relation: Relation | None) -> Leaves:
        if relation is None:
            return self.stay_all(instruction, f"the sizes of {instruction.opcode} are not followed")
        result = relation(self, instruction)
        if "output_to_operand_aliasing" in instruction.attributes:
            aliases = parse_output_to_operand_aliasing(
                instruction.attributes["output_to_operand_aliasing"]
            )
            self._join_aliases(aliases, instruction, result, instruction.operands)
        return result

    def _relate_aliases(self) -> None:
        text = self.module.attributes.get("input_output_alias")
        if text is not None:
            entry = self.module.entry
            result = self.values[entry.root]
            with explaining(entry.root):
                self._join_aliases(parse_aliasing(text), entry.root, result, entry.parameters)

    def _join_aliases(
        self,
        aliases: Sequence[Alias],
        instruction: Instruction,
        result: Leaves,
        sources: Sequence[Instruction],
    ) -> None:
        for alias in aliases:
            source = sources[alias.parameter]
            theirs = self.values[source][_place(source.shape, alias.parameter_index)]
            ours = result[_place(instruction.shape, alias.output_index)]
            self.join(ours, theirs, instruction, "aliasing")


def _fresh(shape: Shape) -> Dimensions:
    return tuple(
        Factor(size, "a dynamic dimension" if dynamic or size < 0 else "")
        for size, dynamic in zip(shape.dimensions, shape.dynamic, strict=True)
    )


def _place(shape: Shape, index: Sequence[int]) -> slice:
    """The leaves at a shape index."""
    start = 0
    for number in index:
        start += element_range(shape, number).start
        shape = shape.elements[number]
    return slice(start, start + leaf_count(shape))


def ints(instruction: Instruction, name: str) -> tuple[int, ...]:
    """An attribute that is a list of integers, by default empty."""
    return parse_ints(instruction.attributes.get(name, "{}"))


RELATIONS: dict[Opcode, Relation] = {}
"""The relations of dimensions by opcode, of modules imported so far; `relations` imports all."""


def relation(*opcodes: Opcode) -> Callable[[Relation], Relation]:
    """Register what relates the dimensions of operands and result of `opcodes`."""

    def register(function: Relation) -> Relation:
        for opcode in opcodes:
            assert opcode not in RELATIONS, opcode
            RELATIONS[opcode] = function
        return function

    return register
