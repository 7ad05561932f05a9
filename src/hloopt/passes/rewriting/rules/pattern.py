"""Patterns of HLO: an opcode over patterns of operands, with names for what is found.

    op("add", "a", op("subtract", "b", "a"), any_order=True)

matches `a + (b - a)` and its mirror image. A name that occurs twice stands for one instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import TypeAlias

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import Scalar, scalar_of, splat_of

Found: TypeAlias = dict[str, Instruction]
Test: TypeAlias = Callable[[Instruction], bool]
Opcodes: TypeAlias = tuple[Opcode, Opcode | None]
"""The opcode of an instruction and that of its first operand, None without operands."""

_SPLATS = frozenset((Opcode.CONSTANT, Opcode.BROADCAST))


@dataclass(frozen=True, slots=True)
class _Node:
    """An instruction of a pattern, its operands in one order; None: whatever they are."""

    opcodes: frozenset[Opcode] | None
    operands: tuple[_Node, ...] | None
    name: str | None = None
    tests: tuple[Test, ...] = ()
    below: frozenset[Opcode] | None = None
    """The opcodes that the operand of a broadcast may have; None: any."""
    is_bare: bool = field(init=False)
    """Whether it is a name for whatever instruction."""

    def __post_init__(self) -> None:
        bare = self.opcodes is None and self.operands is None and not self.tests
        object.__setattr__(self, "is_bare", bare and self.name is not None)

    def fits(self, instruction: Instruction, found: Found) -> bool:
        """Whether it can be laid over `instruction`; adds the names of what it finds."""
        if self.opcodes is not None and instruction.opcode not in self.opcodes:
            return False
        for test in self.tests:
            if not test(instruction):
                return False
        name = self.name
        if name is not None:
            known = found.get(name)
            if known is None:
                found[name] = instruction
            elif known is not instruction:
                return False
        parts = self.operands
        if parts is None:
            return True
        operands = instruction.operands
        return len(operands) == len(parts) and self.fits_operands(operands, found)

    def fits_operands(self, operands: Sequence[Instruction], found: Found) -> bool:
        """Whether the operands fit, which are as many as this pattern has."""
        parts = self.operands or ()
        for part, operand in zip(parts, operands, strict=True):
            if part.is_bare:  # as most are: no call for these
                known = found.setdefault(part.name, operand)  # type: ignore[arg-type]  # bare: named
                if known is not operand:
                    return False
            elif not part.fits(operand, found):
                return False
        return True

    def may_be_over(self, opcodes: Sequence[Opcodes], count: int) -> bool:
        """Whether it may have `count` operands, of which the first have these opcodes."""
        parts = self.operands
        return parts is None or (
            len(parts) == count
            and all(part.may_be(*each) for part, each in zip(parts, opcodes, strict=False))
        )

    def may_be(self, opcode: Opcode, first: Opcode | None) -> bool:
        """Whether it fits an opcode, and that of the first operand."""
        if self.opcodes is not None and opcode not in self.opcodes:
            return False
        if opcode is Opcode.BROADCAST and self.below is not None:
            return first in self.below
        parts = self.operands
        return not parts or parts[0].opcodes is None or first in parts[0].opcodes


class Pattern:
    """A tree that is laid over an instruction and its operands. Immutable; made by functions below.

    It has one variant for each order of operands. `opcodes` are those that its root may have, None
    for any: rules are indexed by them.
    """

    __slots__ = ("_count", "_names", "_variants", "opcodes")

    def __init__(self, variants: Iterable[_Node]) -> None:
        self._variants = tuple(variants)
        roots = [each.opcodes for each in self._variants]
        self.opcodes = None if None in roots else frozenset().union(*filter(None, roots))
        self._count = _plain_count(self._variants)
        self._names = _bare_names(self._variants) if self._count is not None else None

    # -- refinements --------------------------------------------------------------------------

    def named(self, name: str) -> Pattern:
        """This pattern, with a name for the instruction that it finds."""
        return Pattern(replace(each, name=name) for each in self._variants)

    def where(self, test: Test) -> Pattern:
        """This pattern, for instructions that pass a test."""
        return Pattern(replace(each, tests=(*each.tests, test)) for each in self._variants)

    def one_use(self) -> Pattern:
        """This pattern, for instructions with exactly one user."""
        return self.where(lambda instruction: len(instruction.users) == 1)

    def of_type(self, *kinds: str) -> Pattern:
        """This pattern, for element types of these kinds: `pred`, `signed`, `float`, `f32`…"""
        return self.where(lambda instruction: has_kind(instruction, kinds))

    # -- matching -----------------------------------------------------------------------------

    def match(self, instruction: Instruction) -> Found | None:
        """The instructions found by name, None where the pattern does not fit.

        O(nodes of the pattern) for each order of operands.
        """
        operands = instruction.operands
        if self._count is not None:  # of a root on which there are no other conditions
            if len(operands) != self._count or instruction.opcode not in (self.opcodes or Opcode):
                return None
            if self._names is not None:
                return dict(zip(self._names, operands, strict=True))
            for variant in self._variants:
                found: Found = {}
                if variant.fits_operands(operands, found):
                    return found
            return None
        for variant in self._variants:
            found = {}
            if variant.fits(instruction, found):
                return found
        return None

    def over(self, opcodes: Sequence[Opcodes], count: int) -> Pattern | None:
        """This pattern for roots with so many operands, of which the first have these opcodes; None
        where it fits none of them."""
        fitting = [each for each in self._variants if each.may_be_over(opcodes, count)]
        if len(fitting) == len(self._variants):
            return self
        return Pattern(fitting) if fitting else None

    def in_orders(self) -> tuple[_Node, ...]:
        """The pattern as trees with a fixed order of operands."""
        return self._variants


def _plain_count(variants: tuple[_Node, ...]) -> int | None:
    """The number of operands of all variants, of whose roots nothing is asked but one opcode."""
    first = variants[0]
    is_plain = first.operands is not None and all(
        each.opcodes == first.opcodes
        and each.operands is not None
        and len(each.operands) == len(first.operands)
        and each.name is None
        and not each.tests
        for each in variants
    )
    return len(first.operands) if is_plain and first.operands is not None else None


def _bare_names(variants: tuple[_Node, ...]) -> tuple[str, ...] | None:
    """The names of operands that may be whatever instructions, each another one."""
    parts = variants[0].operands or ()
    names = tuple(part.name for part in parts if part.is_bare and part.name is not None)
    return names if len(variants) == 1 and len({*names}) == len(parts) else None


PatternLike: TypeAlias = Pattern | str
"""A pattern; a text alone stands for any instruction, by that name."""


def value(name: str) -> Pattern:
    """Any instruction, by a name."""
    return Pattern([_Node(None, None, name)])


def op(
    opcode: str | Opcode | Iterable[str], *operands: PatternLike, any_order: bool = False
) -> Pattern:
    """An instruction of an opcode (or of one of several) over these operands, in this order.

    Without operands: whatever it has. With `any_order` the operands stand in any order.
    """
    names = (opcode,) if isinstance(opcode, str) else tuple(opcode)
    opcodes = frozenset(map(Opcode, names))
    if not operands:
        return Pattern([_Node(opcodes, None)])
    parts = [value(part) if isinstance(part, str) else part for part in operands]
    orders = permutations(parts) if any_order else [tuple(parts)]
    return Pattern(
        _Node(opcodes, nodes)
        for order in orders
        for nodes in product(*[part.in_orders() for part in order])
    )


def either(*patterns: Pattern) -> Pattern:
    """The first of these patterns that fits."""
    return Pattern(each for pattern in patterns for each in pattern.in_orders())


def constant() -> Pattern:
    """A constant of any shape."""
    return op(Opcode.CONSTANT)


def scalar_constant(equal_to: Scalar | None = None) -> Pattern:
    """A constant of rank 0; of this value, if one is given."""
    found = constant().where(lambda instruction: not instruction.shape.dimensions)
    if equal_to is None:
        return found
    return found.where(lambda instruction: scalar_of(instruction) == equal_to)


def splat(equal_to: Scalar | None = None) -> Pattern:
    """A constant whose elements all are one value, or a broadcast (of a broadcast …) of one.

    With `equal_to` that value; -0 equals 0, as in comparisons of numbers.
    """

    def holds(instruction: Instruction) -> bool:
        while instruction.opcode is Opcode.BROADCAST:
            (instruction,) = instruction.operands
        if instruction.opcode is not Opcode.CONSTANT:
            return False
        found = splat_of(instruction)
        return found is not None and (equal_to is None or found == equal_to)

    return Pattern([_Node(_SPLATS, None, tests=(holds,), below=_SPLATS)])


def broadcast_of_scalar(operand: PatternLike) -> Pattern:
    """A broadcast of a value of rank 0."""
    part = value(operand) if isinstance(operand, str) else operand
    return op(Opcode.BROADCAST, part.where(lambda instruction: instruction.shape.is_scalar))


def has_kind(instruction: Instruction, kinds: Sequence[str]) -> bool:
    """Whether the element type of an array is one of `kinds`, or is called so."""
    kind = instruction.shape.element_type
    return kind is not None and (kind.kind in kinds or kind.name in kinds)
