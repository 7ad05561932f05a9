"""The narrowest float types on the paths of a program: what limits the precision of its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hloopt.equivalence.coverage import CALLERS
from hloopt.equivalence.measures import Index
from hloopt.interpreter.exactness import rounds
from hloopt.interpreter.values import dtype_of, float_info
from hloopt.ir.block_scaling import common_type
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.element_type import ELEMENT_TYPES, ElementType
from hloopt.ir.shapes.shape import Shape

NARROW = 32
"""Floats of fewer bits are narrow: passes that change precision trade them for others."""
_SCALES = "f8e8m0fnu"
"""Powers of two, which scale values of other types; no value is rounded to it on its way."""

ReadType: TypeAlias = Callable[[Instruction, int], str | None]
"""The narrower float type that a backend rounds an operand to where an operation reads it; None
where it does not."""


class PathTypes:
    """Of each instruction, the narrowest float type it is computed from, and that of what is
    computed from it.

    A path goes by operands, through calls, branches and loops; arrays of one tuple are not told
    apart. What `read_types` say that a backend reads as counts, as if a conversion stood there.
    O(operands * read_types).
    """

    def __init__(self, program: Module, read_types: Sequence[ReadType] = ()) -> None:
        self._program = program
        sources: dict[Instruction, list[Instruction]] = {}
        readers: dict[Instruction, list[Instruction]] = {}
        before: dict[ElementType, list[Instruction]] = {}
        after: dict[ElementType, list[Instruction]] = {}
        for instruction in program.instructions():
            sources[instruction] = list(_sources(instruction))
            for source in sources[instruction]:
                readers.setdefault(source, []).append(instruction)
            narrowest = _narrowest_of(instruction.shape)
            if narrowest is not None:
                before.setdefault(narrowest, []).append(instruction)
                after.setdefault(narrowest, []).append(instruction)
            for operand, element in _reads(instruction, read_types):
                before.setdefault(element, []).append(instruction)
                after.setdefault(element, []).append(operand)
        self._before = _spread(before, readers)
        self._after = _spread(after, sources)

    def of_output(self, leaf: Index) -> ElementType | None:
        """The narrowest type on the paths from the inputs to an output; None without floats.

        That of the whole program for what an effect sends out.
        """
        root = self._program.entry.root
        if leaf[:1] == (-1,):
            return min(self._before.values(), key=_width, default=None)
        if leaf and root.opcode is Opcode.TUPLE:
            root = root.operands[leaf[0]]
        return self._before.get(root)

    def narrowest(self, instruction: Instruction) -> ElementType | None:
        """The narrowest type on any path from the inputs through an instruction to the outputs."""
        both = (self._before.get(instruction), self._after.get(instruction))
        return min((e for e in both if e is not None), key=_width, default=None)

    @cached_property
    def has_narrow(self) -> bool:
        """Whether any float of the program has fewer than 32 bits."""
        return any(element.bits < NARROW for element in self._before.values())

    def movable_roundings(self) -> dict[Instruction, np.dtype[Any]]:
        """The operations whose result a pass that changes precision may round, each with the type:
        a narrower one that something computed from it has, that a scaled-dot multiplies in, or that
        a product is rounded to before it becomes an integer."""
        found = {}
        for instruction in self._program.instructions(Opcode.SCALED_DOT):
            within = self._type_of_products(instruction)
            if within is not None and within.bits < NARROW:
                found[instruction] = dtype_of(within)
        for opcode in (Opcode.DOT, Opcode.CONVOLUTION):
            for instruction in self._program.instructions(opcode):
                narrow = _rounded_before_cut(instruction)
                if narrow is not None:
                    found[instruction] = dtype_of(narrow)
        for instruction, element in self._after.items():
            own = _narrowest_of(instruction.shape)
            if own is not None and _width(element) < _width(own) and _may_round(instruction):
                found[instruction] = dtype_of(element)
        return found

    def _type_of_products(self, scaled_dot: Instruction) -> ElementType | None:
        """The narrowest type that values and scales may be multiplied in, by the types that both
        are computed from; None where no product is rounded: scales are powers of two, or missing.
        """
        operands = scaled_dot.operands
        types = [self._before.get(operand) for operand in operands]
        products = [
            ELEMENT_TYPES[common_type(values.name, scale.name)]
            for operand, values, scale in zip(operands[2:], types[:2], types[2:], strict=True)
            if operand.shape.dimensions and values is not None and scale is not None
            if operand.shape.type_name != _SCALES
        ]
        return min(products, key=_width, default=None)

    def rounded_constants(self) -> dict[Instruction, np.dtype[Any]]:
        """Those of them that depend on constants alone: what constant folding may round."""
        fixed: set[Instruction] = set()
        for computation in self._program.computations.values():
            for instruction in stable_order(computation):
                if instruction.opcode in _GIVEN_BY_TEXT or (
                    instruction.operands and fixed.issuperset(instruction.operands)
                ):
                    fixed.add(instruction)
        return {i: dtype for i, dtype in self.movable_roundings().items() if i in fixed}


def rounds_in_sums(program: Module) -> bool:
    """Whether a computation that is applied to elements rounds to a narrow type.

    O(instructions).
    """
    return any(
        any(caller.opcode not in CALLERS for caller in instruction.parent.callers)
        for opcode in (Opcode.CONVERT, Opcode.REDUCE_PRECISION)
        for instruction in program.instructions(opcode)
        if opcode is Opcode.REDUCE_PRECISION or _is_narrow(instruction.shape)
    )


def _is_narrow(shape: Shape) -> bool:
    element = _narrowest_of(shape)
    return element is not None and element.bits < NARROW


_GIVEN_BY_TEXT = (Opcode.CONSTANT, Opcode.IOTA)


def _rounded_before_cut(product: Instruction) -> ElementType | None:
    """The narrow type of floats whose product is an integer: it is rounded to that type first."""
    left, right = (operand.shape.element_type for operand in product.operands[:2])
    result = product.shape.element_type
    if left is not right or left is None or result is None or not result.is_integral:
        return None
    return left if left.is_floating and left.bits < NARROW else None


def _may_round(instruction: Instruction) -> bool:
    """Whether a result has values that another type may round differently, moved values aside."""
    if instruction.opcode is Opcode.PARAMETER:
        return instruction.parent.is_entry
    is_made = instruction.opcode in (*_GIVEN_BY_TEXT, Opcode.CONVERT)
    return is_made or rounds(instruction)


def _width(element: ElementType) -> tuple[int, float]:
    """Sorts float types: the narrowest first, of equal widths the one of fewer digits."""
    return element.bits, -float(float_info(dtype_of(element)).eps)


def _narrowest_of(shape: Shape) -> ElementType | None:
    floats = (
        element
        for leaf in shape.leaves()
        for element in [_real_type(leaf)]
        if element is not None and element.name != _SCALES
    )
    return min(floats, key=_width, default=None)


def _real_type(leaf: Shape) -> ElementType | None:
    """The float type of an array, of its parts where it is complex."""
    element = leaf.element_type
    if element is None or element.kind == "complex":
        return element and ELEMENT_TYPES[f"f{element.bits // 2}"]
    return element if element.is_floating else None


def _reads(
    instruction: Instruction, read_types: Sequence[ReadType]
) -> Iterator[tuple[Instruction, ElementType]]:
    """The operands that a backend reads in other types than they have, with these."""
    for read_type in read_types:
        for number, operand in enumerate(instruction.operands):
            name = read_type(instruction, number)
            if name is not None:
                yield operand, ELEMENT_TYPES[name]


def _sources(instruction: Instruction) -> Iterator[Instruction]:
    """The instructions whose values one reads: across the borders of computations, too."""
    yield from instruction.operands
    if instruction.opcode is Opcode.PARAMETER:
        for caller in instruction.parent.callers:
            if caller.opcode in CALLERS:
                yield from caller.operands
                if caller.opcode is Opcode.WHILE:
                    yield caller.called[0].root
    elif instruction.opcode in CALLERS:
        yield from (computation.root for computation in instruction.called)


def _spread(
    seeds: Mapping[ElementType, Sequence[Instruction]],
    edges: Mapping[Instruction, Sequence[Instruction]],
) -> dict[Instruction, ElementType]:
    """The narrowest type of `seeds` that reaches each instruction by `edges`."""
    found: dict[Instruction, ElementType] = {}
    for element in sorted(seeds, key=_width):
        stack = [seed for seed in seeds[element] if seed not in found]
        while stack:
            instruction = stack.pop()
            if instruction not in found:
                found[instruction] = element
                stack += [i for i in edges.get(instruction, ()) if i not in found]
    return found
