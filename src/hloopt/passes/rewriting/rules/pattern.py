"""Patterns of HLO: an opcode over patterns of operands, with names for what is found.

    op("add", "a", op("subtract", "b", "a"), any_order=True)

matches `a + (b - a)` and its mirror image. A name that occurs twice stands for one instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, permutations, product
from typing import TypeAlias

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.rewriting.rules.constants import Scalar, scalar_of, splat_value

Found: TypeAlias = dict[str, Instruction]
Test: TypeAlias = Callable[[Instruction], bool]
ShapeTest: TypeAlias = Callable[[Shape], bool]

_SPLATS = frozenset((Opcode.CONSTANT, Opcode.BROADCAST))
INDEXED = 3
"""Operands whose opcodes and shapes a table looks at."""


@dataclass(frozen=True, slots=True)
class _Node:
    """An instruction of a pattern, its operands in one order; None: whatever they are."""

    opcodes: frozenset[Opcode] | None
    operands: tuple[_Node, ...] | None
    name: str | None = None
    tests: tuple[Test, ...] = ()
    shapes: tuple[ShapeTest, ...] = ()
    known: tuple[Test, ...] = ()
    """Conditions on what `where_known` names."""
    below: frozenset[Opcode] | None = None
    """The opcodes that the operand of a broadcast may have; None: any."""
    is_bare: bool = field(init=False)
    """Whether it fits whatever instruction."""
    asks: bool = field(init=False)
    """Whether it has a condition on shapes or on what is known."""

    def __post_init__(self) -> None:
        asks = bool(self.known or self.shapes)
        is_bare = self.opcodes is None and self.operands is None and not (self.tests or asks)
        object.__setattr__(self, "is_bare", is_bare)
        object.__setattr__(self, "asks", asks)

    def fits(self, instruction: Instruction, found: Found) -> bool:
        """Whether it can be laid over `instruction`; adds the names of what it finds."""
        if self.opcodes is not None and instruction.opcode not in self.opcodes:
            return False
        if self.asks and not (self.has_shape(instruction) and self.is_known(instruction)):
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
                if part.name is not None and found.setdefault(part.name, operand) is not operand:
                    return False
            elif not part.fits(operand, found):
                return False
        return True

    def has_shape(self, instruction: Instruction) -> bool:
        """Whether the shape of an instruction meets the conditions on it."""
        for test in self.shapes:  # noqa: SIM110  # asked often, and `all` makes a generator
            if not test(instruction.shape):
                return False
        return True

    def is_known(self, instruction: Instruction) -> bool:
        """Whether an instruction meets the conditions on what is known of it."""
        for test in self.known:  # noqa: SIM110  # asked often, and `all` makes a generator
            if not test(instruction):
                return False
        return True

    def may_be_over(self, root: Instruction) -> bool:
        """Whether it may fit instructions like `root`, by all that `Pattern.over` looks at."""
        parts = self.operands
        if self.opcodes is not None and root.opcode not in self.opcodes:
            return False
        if parts is None:
            return True
        if len(parts) != len(root.operands):
            return False
        named: dict[str, Instruction] = {}
        for part, operand in zip(parts[:INDEXED], root.operands, strict=False):
            if not part.may_be(operand):
                return False
            if part.name is not None:
                other = named.setdefault(part.name, operand)
                if other.opcode is not operand.opcode or other.shape is not operand.shape:
                    return False
        return True

    def over(self) -> _Node:
        """The part of it that is still to be asked of roots of which `may_be_over` is known."""
        return replace(self, opcodes=None, operands=self._first_operands(_Node._of_known_kind))

    def beneath(self) -> _Node:
        """The part of it that is still to be asked once `may_be_beneath` is known, too."""
        return replace(self, operands=self._first_operands(_Node._of_known_value))

    def _first_operands(self, each: Callable[[_Node], _Node]) -> tuple[_Node, ...] | None:
        """The patterns of the operands, `each` of those a table looks at in place of these."""
        parts = self.operands
        return parts and (*map(each, parts[:INDEXED]), *parts[INDEXED:])

    def _of_known_kind(self) -> _Node:
        """This pattern of an operand without the conditions of `may_be`."""
        parts = self.operands
        if parts:
            parts = (replace(parts[0], opcodes=None), *parts[1:])
        return replace(self, opcodes=None, shapes=(), operands=parts)

    def _of_known_value(self) -> _Node:
        """This pattern of an operand without the conditions of `may_be_beneath`."""
        parts = self.operands
        if parts:
            parts = (replace(parts[0], shapes=()), *parts[1:])
        return replace(self, known=(), operands=parts)

    def may_be(self, operand: Instruction) -> bool:
        """Whether it fits the opcode and shape of an operand, and the opcode below that."""
        opcode = operand.opcode
        if self.opcodes is not None and opcode not in self.opcodes:
            return False
        if not self.has_shape(operand):
            return False
        first = operand.operands[0].opcode if operand.operands else None
        if opcode is Opcode.BROADCAST and self.below is not None:
            return first in self.below
        parts = self.operands
        return not parts or parts[0].opcodes is None or first in parts[0].opcodes

    def shape_below(self) -> _Node | None:
        """The pattern of its first operand where that has a condition on shapes."""
        return self.operands[0] if self.operands and self.operands[0].shapes else None

    def may_be_beneath(self, operands: Sequence[Instruction]) -> bool:
        """Whether the first operands meet all conditions that `Pattern.beneath` looks at."""
        for part, operand in zip((self.operands or ())[:INDEXED], operands, strict=False):
            first = part.shape_below()
            if not part.is_known(operand):
                return False
            if first is not None and operand.operands and not first.has_shape(operand.operands[0]):
                return False
        return True


class Pattern:
    """A tree that is laid over an instruction and its operands. Immutable; made by functions below.

    It has one variant for each order of operands. `opcodes` are those that its root may have, None
    for any: rules are indexed by them.
    """

    __slots__ = ("_beneath", "_count", "_names", "_over", "_variants", "opcodes")

    def __init__(self, variants: Iterable[_Node]) -> None:
        self._variants = tuple(variants)
        roots = [each.opcodes for each in self._variants]
        self.opcodes = None if None in roots else frozenset().union(*filter(None, roots))
        self._count = _plain_count(self._variants)
        self._names = _bare_names(self._variants) if self._count is not None else None
        self._over: dict[tuple[bool, ...], Pattern] = {}
        self._beneath: dict[tuple[bool, ...], Pattern] = {}

    # -- refinements --------------------------------------------------------------------------

    def named(self, name: str) -> Pattern:
        """This pattern, with a name for the instruction that it finds."""
        return Pattern(replace(each, name=name) for each in self._variants)

    def where(self, test: Test) -> Pattern:
        """This pattern, for instructions that pass a test."""
        return Pattern(replace(each, tests=(*each.tests, test)) for each in self._variants)

    def where_shape(self, test: ShapeTest) -> Pattern:
        """This pattern, for instructions whose shape passes a test."""
        return Pattern(replace(each, shapes=(*each.shapes, test)) for each in self._variants)

    def one_use(self) -> Pattern:
        """This pattern, for instructions with exactly one user."""
        return self.where(lambda instruction: len(instruction.users) == 1)

    def of_type(self, *kinds: str) -> Pattern:
        """This pattern, for element types of these kinds: `pred`, `signed`, `float`, `f32`…"""
        return self.where_shape(lambda shape: has_kind(shape, kinds))

    def scalar(self) -> Pattern:
        """This pattern, for values of rank 0."""
        return self.where_shape(lambda shape: shape.is_scalar)

    def where_known(self, test: Test) -> Pattern:
        """This pattern, for instructions that pass a test on nothing but their opcode and shape,
        the shape of their first operand, and the one value of all elements of a constant or of a
        broadcast of one. A table asks once for all that agree in these, and leaves the rule out of
        those that fail; a match asks only below the first operands."""
        return Pattern(replace(each, known=(*each.known, test)) for each in self._variants)

    # -- matching -----------------------------------------------------------------------------

    def match(self, instruction: Instruction) -> Found | None:
        """The instructions found by name, None where the pattern does not fit.

        O(nodes of the pattern) for each order of operands.
        """
        operands = instruction.operands
        if self._count is not None:  # of a root on which there are no other conditions
            if len(operands) != self._count:
                return None
            if self.opcodes is not None and instruction.opcode not in self.opcodes:
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

    def over(self, root: Instruction) -> Pattern | None:
        """The pattern of what is left to ask of instructions like `root`: of its opcode, with as
        many operands, of which the first have these opcodes and shapes and read first something of
        these opcodes; None where it fits none of them."""
        fits = tuple([each.may_be_over(root) for each in self._variants])
        return self._rest(fits, self._over, _Node.over)

    def asked(self) -> set[int]:
        """The places of the first operands at which `beneath` looks."""
        return {
            place
            for variant in self._variants
            for place, part in enumerate((variant.operands or ())[:INDEXED])
            if part.known or part.shape_below() is not None
        }

    def beneath(self, operands: Sequence[Instruction]) -> Pattern | None:
        """The pattern of what is left to ask of roots of which `over` is known, and what
        `where_known` names of these first operands; None where it fits none of them."""
        fits = tuple([each.may_be_beneath(operands) for each in self._variants])
        return self._rest(fits, self._beneath, _Node.beneath)

    def _rest(
        self,
        fits: tuple[bool, ...],
        known: dict[tuple[bool, ...], Pattern],
        rest_of: Callable[[_Node], _Node],
    ) -> Pattern | None:
        """The pattern of what is left to ask of variants that fit, made once; None without any."""
        if True not in fits:
            return None
        found = known.get(fits)
        if found is None:
            found = known[fits] = Pattern(map(rest_of, compress(self._variants, fits)))
        return found

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
        and not (each.tests or each.asks)
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
    found = constant().scalar()
    return found if equal_to is None else found.where_known(lambda c: scalar_of(c) == equal_to)


def splat(equal_to: Scalar | None = None) -> Pattern:
    """A constant whose elements all are one value, or a broadcast (of a broadcast …) of one.

    With `equal_to` that value; -0 equals 0, as in comparisons of numbers.
    """

    def holds(instruction: Instruction) -> bool:
        found = splat_value(instruction)
        return found is not None and (equal_to is None or found == equal_to)

    return Pattern([_Node(_SPLATS, None, known=(holds,), below=_SPLATS)])


def broadcast_of_scalar(operand: PatternLike) -> Pattern:
    """A broadcast of a value of rank 0."""
    part = value(operand) if isinstance(operand, str) else operand
    return op(Opcode.BROADCAST, part.scalar())


def has_kind(shape: Shape, kinds: Sequence[str]) -> bool:
    """Whether the element type of an array is one of `kinds`, or is called so."""
    kind = shape.element_type
    return kind is not None and (kind.kind in kinds or kind.name in kinds)
