"""Simplify computations of shapes: joined, sliced and reshaped sizes of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hloopt.ir.attributes.typed import dimensions_of, slices_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import shardings_differ


@register(
    "dynamic-dimension-simplifier",
    preserves="bits",
    xla=XlaPass(
        "DynamicDimensionSimplifier",
        "xla/hlo/transforms/simplifiers/dynamic_dimension_simplifier.h",
    ),
)
class DynamicDimensionSimplifier(ModulePass):
    """Simplify how sizes of dimensions are put into vectors and taken out of them again.

    Six sweeps, one after the other: a concatenate of concatenates along the same dimension takes
    their operands; a slice of a concatenate of vectors that is one of its operands becomes that; a
    reshape to a scalar of a vector that a scalar was broadcast to becomes the scalar; a reshape of
    a reshape that gives the first shape again becomes the first operand; converts and reshapes to
    the shape of the operand become the operand. What was replaced stays for `dce`, as in XLA, and
    so do fusions' insides and what has control dependencies. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        order = {c: post_order(c) for c in module.computations.values() if not c.is_fusion}
        if _flatten_all(order, context):
            touched.update(dict.fromkeys(order))
        for opcode, sweep in _SWEEPS:
            for instruction in (i for each in order.values() for i in each if i.opcode is opcode):
                if _replace(instruction, sweep(instruction), context):
                    touched[instruction.parent] = None
        repair_schedule(touched)
        return bool(touched)


def _is_needed(instruction: Instruction) -> bool:
    return bool(instruction.users) or instruction.is_root


# -- sweeps ---------------------------------------------------------------------------------------


def _flatten_all(order: dict[Computation, list[Instruction]], context: PassContext) -> bool:
    """Give concatenates the operands of those that they join, one level deep."""
    changed = False
    for each in order.values():
        for joined in each:
            if joined.opcode is not Opcode.CONCATENATE or not _is_needed(joined):
                continue
            operands = list(_flattened(joined))
            if len(operands) == len(joined.operands) and operands == [*joined.operands]:
                continue
            if context.apply(joined, "takes the operands of the concatenates that it joins"):
                context.count("concatenates flattened")
                _take_operands(joined, operands)
                changed = True
    return changed


def _take_operands(joined: Instruction, operands: list[Instruction]) -> None:
    orphans = dict.fromkeys(joined.operands)
    joined.set_operands(operands)
    for orphan in orphans:
        is_read = _is_needed(orphan) or orphan.has_control_dependencies
        if orphan.opcode is Opcode.CONCATENATE and not is_read:
            orphan.parent.remove(orphan)


def _flattened(joined: Instruction) -> Iterator[Instruction]:
    dimensions = dimensions_of(joined)
    for operand in joined.operands:
        if operand.opcode is Opcode.CONCATENATE and dimensions_of(operand) == dimensions:
            yield from operand.operands
        else:
            yield operand


def _operand_that_is_sliced(part: Instruction) -> Instruction | None:
    joined = part.operands[0]
    if joined.opcode is not Opcode.CONCATENATE or part.shape.rank != 1:
        return None
    (wanted,) = slices_of(part)
    if wanted.stride != 1:
        return None
    start = 0
    for operand in joined.operands:
        limit = start + operand.shape.dimensions[0]
        if (start, limit) == (wanted.start, wanted.limit):
            return operand
        start = limit
    return None


def _broadcast_scalar(reshape: Instruction) -> Instruction | None:
    vector = reshape.operands[0]
    if vector.opcode is not Opcode.BROADCAST or reshape.shape.rank != 0 or vector.shape.rank != 1:
        return None
    return vector.operands[0]


def _reshaped_back(reshape: Instruction) -> Instruction | None:
    inner = reshape.operands[0]
    return inner.operands[0] if inner.opcode is Opcode.RESHAPE else None


def _operand(instruction: Instruction) -> Instruction | None:
    return instruction.operands[0]


_SWEEPS: tuple[tuple[Opcode, Callable[[Instruction], Instruction | None]], ...] = (
    (Opcode.SLICE, _operand_that_is_sliced),
    (Opcode.RESHAPE, _broadcast_scalar),
    (Opcode.RESHAPE, _reshaped_back),
    (Opcode.CONVERT, _operand),
    (Opcode.RESHAPE, _operand),
)
"""For each sweep after the first: an opcode, and what may stand for an instruction that has it."""


def _replace(old: Instruction, new: Instruction | None, context: PassContext) -> bool:
    """Let the users of `old` read `new`, if that has the same shape; whether they do now."""
    if new is None or new.shape is not old.shape or not _is_needed(old):
        return False
    if old.has_control_dependencies:
        context.missed(old, "it has control dependencies")
    elif shardings_differ(old, new):
        context.missed(old, f"its sharding differs from that of %{new.name}")
    elif context.apply(old, f"users read %{new.name} instead"):
        context.count("users redirected")
        old.replace_all_uses_with(new)
        return True
    return False
