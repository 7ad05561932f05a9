"""Rules: a pattern, the rewrite of what it finds, and the part of the results that they keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import compatible
from hloopt.passes.rewriting.replace import shardings_differ
from hloopt.passes.rewriting.rules.build import Builder
from hloopt.passes.rewriting.rules.constants import splat_of
from hloopt.passes.rewriting.rules.pattern import INDEXED, Found, Pattern, Test
from hloopt.preserves import PRESERVES, Preserves


@dataclass(frozen=True, slots=True)
class Missed:
    """The reason why a rule whose pattern fits leaves the instruction alone: a missed remark."""

    reason: str


class Edited:
    """The result of a rule that changed the graph itself: operands, users or attributes."""


EDITED = Edited()

Result: TypeAlias = Instruction | Missed | Edited | None
"""The replacement of the root; EDITED where the rule made the change; None where it does not apply,
with nothing changed."""
Layouts: TypeAlias = Literal["any", "insensitive", "sensitive"]
"""When a rule runs: always, or only before, or only after layout assignment."""


class Match:
    """An instruction that a pattern fits, as a rule gets it: `match.x` is what `x` stands for."""

    __slots__ = ("__dict__", "build", "layout_sensitive", "options", "root", "touched")

    def __init__(
        self, root: Instruction, found: Found, build: Builder, options: Any, layout_sensitive: bool
    ) -> None:
        self.root = root
        self.bind(found)
        self.build = build
        """Makes the instructions of the replacement."""
        self.options = options
        """The options of the pass."""
        self.layout_sensitive = layout_sensitive
        self.touched: list[Instruction] = []
        """Instructions that a rule changed itself, to be looked at again."""

    def bind(self, found: Found) -> None:
        """Give the names of another pattern that fits the same instruction."""
        self.__dict__ = found

    def __getattr__(self, name: str) -> Instruction:
        raise AttributeError(f"the pattern has no name '{name}'")

    def same_shape(self, a: Instruction, b: Instruction) -> bool:
        """Whether shapes are equal, layouts included where the pass is layout-sensitive."""
        return a.shape is b.shape or (not self.layout_sensitive and compatible(a.shape, b.shape))

    def if_compatible(self, new: Instruction) -> Result:
        """`new` where it can stand for the root: same shape, no control predecessors, shardings
        that agree where both have one."""
        root = self.root
        if not self.same_shape(root, new):
            return Missed(f"%{new.name} has another shape")
        if root.control_predecessors:
            return Missed("it has control predecessors")
        if shardings_differ(root, new):
            return Missed(f"its sharding differs from that of %{new.name}")
        return new


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rewrite. Its docstring says what it does and why it is right."""

    name: str
    pattern: Pattern
    rewrite: Callable[[Any], Result]
    floats: Preserves
    """The part of results that it keeps where floating-point numbers take part; integers and truth
    values keep every bit."""
    layouts: Layouts
    option: str | None
    """The option, a boolean, without which it is left out."""
    dynamic: bool
    """Whether it may be applied where shapes are dynamic."""
    moves_control: bool
    """Whether a new instruction takes over the control dependencies of the one it replaces."""
    signature: Test | None
    """A condition on nothing but opcodes and shapes of the root and of its first three operands:
    asked once for all instructions that agree in these."""

    @property
    def doc(self) -> str:
        return self.rewrite.__doc__ or ""

    def keeps(self, root: Instruction, wanted: Preserves) -> bool:
        """Whether applying it at `root` preserves as much as is wanted."""
        order = PRESERVES.index
        return order(self.floats) <= order(wanted) or not involves_floats(root)


def rule(
    pattern: Pattern,
    *,
    name: str | None = None,
    floats: Preserves = "bits",
    layouts: Layouts = "any",
    option: str | None = None,
    dynamic: bool = False,
    moves_control: bool = False,
    signature: Test | None = None,
) -> Callable[[Callable[[Any], Result]], Rule]:
    """Make a rule of a function from Match to Result; its name is that of the function."""

    def decorate(rewrite: Callable[[Any], Result]) -> Rule:
        return Rule(
            name or rewrite.__name__.strip("_").replace("_", "-"),
            *(pattern, rewrite, floats, layouts, option, dynamic, moves_control, signature),
        )

    return decorate


def involves_floats(root: Instruction) -> bool:
    """Whether an instruction makes or reads floating-point or complex numbers."""
    return any(
        leaf.element_type is not None and leaf.element_type.kind in ("float", "complex")
        for shape in (root.shape, *[o.shape for o in root.operands])
        for leaf in (shape.leaves() if shape.is_tuple else (shape,))
    )


_BROADCAST, _CONSTANT = Opcode.BROADCAST, Opcode.CONSTANT  # members are slow to look up in a loop
_LONG = 64
"""Characters of constants whose text stands for their value."""
_Key: TypeAlias = tuple[object, ...]
Candidates: TypeAlias = tuple[tuple[Rule, Pattern], ...]
"""Rules in order, each with its pattern for operands of known opcodes."""


class RuleTable:
    """Rules in order, indexed by the opcodes and shapes of an instruction and its first operands,
    and by the opcodes of what these read first.

    What fits no rule by these, as most instructions do, costs one look into a dict: a program has
    few shapes, and its layers repeat them. Rules that ask for the value of a constant, or for a
    shape below an operand, cost one more.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_opcode: dict[Opcode, list[Rule]] = {}
        for each in self.rules:
            for opcode in each.pattern.opcodes or Opcode:
                self._by_opcode.setdefault(opcode, []).append(each)
        self._known: dict[_Key, Candidates | _Further] = {}

    def fitting(
        self, instructions: Iterable[Instruction]
    ) -> Iterator[tuple[Instruction, Candidates]]:
        """The instructions that have candidates, with these: the rules that may apply, in order.

        Each is looked at when the one before is done with. O(1) for each.
        """
        opcodes, known = self._by_opcode, self._known
        key: _Key
        for instruction in instructions:
            opcode = instruction.opcode
            if opcode not in opcodes:
                continue
            operands = instruction.operands
            if len(operands) == 1:
                (x,) = operands
                first = x.operands[0].opcode if x.operands else None
                key = (opcode, instruction.shape, x.opcode, x.shape, first)
            elif len(operands) == 2:
                x, y = operands
                first = x.operands[0].opcode if x.operands else None
                second = y.operands[0].opcode if y.operands else None
                key = (
                    opcode,
                    instruction.shape,
                    x.opcode,
                    x.shape,
                    first,
                    y.opcode,
                    y.shape,
                    second,
                )
            else:
                key = (opcode, instruction.shape, len(operands))
                for x in operands[:INDEXED]:
                    below = x.operands
                    key = (*key, x.opcode, x.shape, below[0].opcode if below else None)
            found = known.get(key)
            if found is None:
                found = known[key] = self._candidates(instruction)
            if found:  # few have any
                rules = found.candidates(operands) if isinstance(found, _Further) else found
                if rules:
                    yield instruction, rules

    def _candidates(self, instruction: Instruction) -> Candidates | _Further:
        is_dynamic = has_dynamic_shape(instruction, instruction.operands[:INDEXED])
        found: list[tuple[Rule, Pattern]] = []
        for each in self._by_opcode[instruction.opcode]:
            if is_dynamic and not each.dynamic:
                continue
            pattern = each.pattern.over(instruction)
            if pattern is None or not (each.signature is None or each.signature(instruction)):
                continue
            found.append((each, pattern))
        asked = {place for _, pattern in found for place in pattern.asked()}
        return _Further(tuple(found), sorted(asked)) if asked else tuple(found)


class _Further:
    """Rules for an instruction of a known signature, by what a table looks at next: the values of
    some operands, where these are constants, and the shapes of what they read first."""

    def __init__(self, rules: Candidates, asked: Sequence[int]) -> None:
        self._rules = rules
        self._asked = asked
        self._known: dict[_Key, Candidates] = {}

    def candidates(self, operands: Sequence[Instruction]) -> Candidates:
        """The rules that may apply to an instruction with these operands, in order."""
        parts: list[object] = []
        for place in self._asked:
            x = operands[place]
            parts.append(x.operands[0].shape if x.operands else None)
            while x.opcode is _BROADCAST:
                (x,) = x.operands
            if x.opcode is _CONSTANT:
                parts += (x.shape, x.payload if len(x.payload) < _LONG else _value(x))
            else:
                parts.append(None)
        key = tuple(parts)
        known = self._known.get(key)
        if known is None:
            first = operands[:INDEXED]
            fitting = ((rule, pattern.beneath(first)) for rule, pattern in self._rules)
            known = tuple((rule, pattern) for rule, pattern in fitting if pattern is not None)
            self._known[key] = known
        return known


def _value(constant: Instruction) -> str | None:
    """The value that every element of a constant has, as a text: NaN does not equal itself, and 0
    equals -0."""
    found = splat_of(constant)
    return None if found is None else repr(found)


def has_dynamic_shape(root: Instruction, operands: Iterable[Instruction]) -> bool:
    """Whether the shape of an instruction or of one of these operands is dynamic."""
    return any(
        leaf.is_dynamic
        for shape in (root.shape, *[operand.shape for operand in operands])
        for leaf in (shape.leaves() if shape.is_tuple else (shape,))
    )
