"""The operand by which dots are comparable: the source behind transposes and reshapes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.dots.dimension_factors import REARRANGING, View, before, whole
from hloopt.passes.simplification.algsimp.reductions.dot_dimensions import (
    Side,
    dot_dimensions,
)

Category: TypeAlias = Literal["batch", "contracting", "free", "one"]
_COPIED = ("algorithm", "backend_config")


@dataclass(frozen=True, slots=True)
class Sharer:
    """A dot, seen from the operand that it may share with others."""

    dot: Instruction
    number: int
    """Which of its operands that is."""
    source: Instruction
    view: View
    """The dimensions of the source, in factors of the operand's dimensions."""
    categories: tuple[Category, ...]
    """The roles of the source's dimensions."""

    @property
    def other(self) -> Instruction:
        return self.dot.operands[1 - self.number]

    @property
    def sides(self) -> tuple[Side, Side]:
        """The dimensions of the shared operand, and of the other one."""
        left, right = dot_dimensions(self.dot).sides
        return (right, left) if self.number else (left, right)

    def key(self, queue_id: Callable[[Instruction], int]) -> Hashable:
        """A key that is the same for dots that may be merged."""
        attributes, shared = self.dot.attributes, self.dot.operands[self.number]
        precisions = precisions_of(self.dot)
        return (
            *(self.source, self.categories, queue_id(self.dot)),
            *(shared.shape.element_type, self.other.shape.element_type),
            self.dot.shape.element_type,
            *(precisions[self.number], precisions[1 - self.number]),
            *[attributes.get(name) for name in _COPIED],
        )


def sharer(dot: Instruction, number: int) -> Sharer:
    """A dot, seen from one of its operands: back to where a step would mix the roles."""
    side = dot_dimensions(dot).sides[number]
    source = dot.operands[number]
    view, roles = whole(source.shape.dimensions), _roles(side)
    categories = _categories(view, roles)
    assert categories is not None
    while source.opcode in REARRANGING and not source.has_control_dependencies:
        further = before(view, source)
        found = None if further is None else _categories(further, roles)
        if further is None or found is None:
            break
        source, view, categories = source.operands[0], further, found
    return Sharer(dot, number, source, view, categories)


def _roles(side: Side) -> dict[int, Category]:
    roles: dict[int, Category] = dict.fromkeys(side.batch, "batch")
    roles.update(dict.fromkeys(side.contracting, "contracting"))
    roles.update(dict.fromkeys(side.free, "free"))
    return roles


def _categories(view: View, roles: dict[int, Category]) -> tuple[Category, ...] | None:
    """The role of each dimension; None where one has factors of several."""
    found: list[Category] = []
    for factors in view:
        own = {roles[factor.dimension] for factor in factors}
        if len(own) > 1:
            return None
        found.append(own.pop() if own else "one")
    return tuple(found)


def precisions_of(dot: Instruction) -> tuple[str, str]:
    """The precisions of both operands."""
    parts = dot.attributes.get("operand_precision", "{}").strip("{}").split(",")
    left, right = [part.strip() or "default" for part in (*parts, "default")[:2]]
    return left, right


def why_not(dot: Instruction) -> str | None:
    """The reason why a dot is merged with none, or None."""
    if dot.has_control_dependencies:
        return "it has control dependencies"
    shapes = [dot.shape, *[operand.shape for operand in dot.operands]]
    if any(shape.is_dynamic for shape in shapes):
        return "it has dynamic dimensions"
    if any(0 in shape.dimensions for shape in shapes):
        return "an array of it is empty"
    for operand in dot.operands:
        if (narrow := _narrow_conversion(operand)) is not None:
            return f"%{narrow.name} converts from {narrow.operands[0].shape.type_name}"
    return None


def _narrow_conversion(operand: Instruction) -> Instruction | None:
    """The convert from a type below 8 bits that an operand comes from, if any.

    Backends fuse it into the dot, which a concatenate between both would prevent.
    """
    while operand.opcode in REARRANGING or operand.opcode is Opcode.CONVERT:
        source = operand.operands[0]
        kind = source.shape.element_type
        if operand.opcode is Opcode.CONVERT and kind and kind.bits < 8 and kind.name != "pred":
            return operand
        operand = source
    return None
