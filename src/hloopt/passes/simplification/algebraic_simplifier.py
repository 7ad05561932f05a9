"""Combine rearrangements that meet, and drop those that change nothing."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import (
    control_dependencies_can_move,
    replace_instruction,
    shardings_differ,
)
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination

_REARRANGING = frozenset((Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.BROADCAST))


@register(
    "algsimp",
    preserves="bits",
    xla=XlaPass("AlgebraicSimplifier", "xla/hlo/transforms/simplifiers/algebraic_simplifier.h"),
)
class AlgebraicSimplifier(ModulePass):
    """Combine reshapes, transposes and broadcasts.

    This is the part of XLA's algebraic simplifier that tidies up after `reshape-mover`, not the
    whole of it: a reshape of a reshape, a transpose of a transpose and a broadcast of a broadcast
    become one; a reshape of a broadcast scalar and a transpose of a broadcast become a broadcast;
    what leaves its operand as it is, layout included, goes. Arithmetic stays as it is, and so do
    fusions' insides, dynamic dimensions and what has control dependencies that cannot move. Linear
    in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        dead: DeadCode | None = None
        for computation in module.computations.values():
            if computation.is_fusion:
                continue
            orphans = _simplify(computation, context)
            if orphans:
                if dead is None:
                    options = DeadCodeElimination.Options()
                    dead = DeadCode(SideEffects(module), options, PassContext(wants_remarks=False))
                dead.remove_dead(orphans)
        return dead is not None


class _Recipe(NamedTuple):
    """The recipe of a value: the operations that make it."""

    opcode: Opcode | None
    """None: the operand is the value."""
    operand: Instruction
    dimensions: tuple[int, ...] = ()
    """Of a transpose or a broadcast."""


def _simplify(computation: Computation, context: PassContext) -> list[Instruction]:
    """Replace what can be replaced; the operands of what was, which may be unused now."""
    if not any(i.opcode in _REARRANGING for i in computation.instructions):
        return []
    orphans: list[Instruction] = []
    for instruction in post_order(computation):
        if instruction.opcode not in _REARRANGING or instruction.shape.is_dynamic:
            continue
        recipe = _as_operand(instruction) or _combined(instruction)
        if recipe is None:
            continue
        if reason := _why_not(instruction, recipe):
            context.missed(instruction, reason)
            continue
        made = f"a {recipe.opcode} of " if recipe.opcode else ""
        what = f"replaced by {made}%{recipe.operand.name}"
        if not context.apply(instruction, what, remark=False):
            break
        result = _make(recipe, instruction)
        context.applied(instruction, f"replaced by %{result.name}")
        context.count("rearrangements combined")
        orphans += instruction.operands
        replace_instruction(instruction, result)
    if orphans and computation.module.is_scheduled:
        computation.reorder(stable_order(computation))
    return orphans


def _as_operand(instruction: Instruction) -> _Recipe | None:
    """The operand, if the instruction leaves every element where it is."""
    (source,) = instruction.operands
    if source.shape is not instruction.shape:
        return None
    if instruction.opcode is not Opcode.RESHAPE:
        dimensions = _dimensions(instruction)
        if dimensions != tuple(range(len(dimensions))):
            return None
    return _Recipe(None, source)


def _combined(instruction: Instruction) -> _Recipe | None:
    """One rearrangement for the instruction and the one it works on."""
    (inner,) = instruction.operands
    if inner.opcode not in _REARRANGING or inner.shape.is_dynamic:
        return None
    (source,) = inner.operands
    if source.shape.is_dynamic:
        return None
    match instruction.opcode, inner.opcode:
        case Opcode.RESHAPE, Opcode.RESHAPE:
            same = source.shape is instruction.shape
            return _Recipe(None if same else Opcode.RESHAPE, source)
        case Opcode.RESHAPE, Opcode.BROADCAST if source.shape.is_scalar:
            return _Recipe(Opcode.BROADCAST, source)
        case Opcode.TRANSPOSE, Opcode.TRANSPOSE:
            before = _dimensions(inner)
            order = tuple([before[d] for d in _dimensions(instruction)])
            same = source.shape is instruction.shape and order == tuple(range(len(order)))
            return _Recipe(None if same else Opcode.TRANSPOSE, source, order)
        case Opcode.TRANSPOSE, Opcode.BROADCAST:
            place = {old: new for new, old in enumerate(_dimensions(instruction))}
            dimensions = tuple([place[d] for d in _dimensions(inner)])
            is_plain = list(dimensions) == sorted(dimensions)
            return _Recipe(Opcode.BROADCAST, source, dimensions) if is_plain else None
        case Opcode.BROADCAST, Opcode.BROADCAST:
            places = _dimensions(instruction)
            dimensions = tuple([places[d] for d in _dimensions(inner)])
            return _Recipe(Opcode.BROADCAST, source, dimensions)
    return None


def _dimensions(instruction: Instruction) -> tuple[int, ...]:
    return dimensions_of(instruction)


def _why_not(instruction: Instruction, recipe: _Recipe) -> str | None:
    """The reason why `instruction` must stay, or None where it may be replaced."""
    operand = recipe.operand
    if recipe.opcode is None and shardings_differ(instruction, operand):
        return f"its sharding differs from that of %{operand.name}"
    if not control_dependencies_can_move(instruction, operand):
        return f"a control predecessor of it may depend on %{operand.name}"
    return None


def _make(recipe: _Recipe, old: Instruction) -> Instruction:
    """The value by its recipe, to stand for `old`."""
    if recipe.opcode is None:
        return recipe.operand
    attributes = {}
    if recipe.opcode is not Opcode.RESHAPE:
        attributes["dimensions"] = format_ints(recipe.dimensions)
    return old.parent.add(recipe.opcode, old.shape, [recipe.operand], attributes=attributes)
