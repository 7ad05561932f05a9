"""Slices that fusions made inside of them, taken and written beside them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from hloopt.analysis.loops.sources import source_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.passes.async_ops.async_pairs import replace_by_pairs, wrap_fused
from hloopt.passes.memory_space.residuals.indices import Indices
from hloopt.passes.memory_space.residuals.stacks import Access
from hloopt.passes.rewriting.dead_parameters import keep_parameters
from hloopt.passes.rewriting.replace import (
    attributes_for_another_value,
    hand_value_on,
    inherit,
)


@dataclass(slots=True)
class Slices:
    """The slices of one stack that were taken so far: equal ones are taken once."""

    dimension: int
    indices: Indices
    _taken: dict[Hashable, Instruction] = field(default_factory=dict)

    def outside(self, slicing: Instruction, fusion: Instruction) -> Instruction:
        """The slice that a fusion takes, beside it."""
        stack = fusion.operands[slicing.operands[0].parameter_number]
        start = self.indices.outside(slicing.operands[1 + self.dimension], fusion)
        key = (fusion.parent, source_of(stack), start, slicing.shape)
        found = self._taken.get(key)
        if found is None:
            starts = _starts(start, self.dimension, slicing.shape.rank, self.indices)
            taken = fusion.parent.add(
                Opcode.DYNAMIC_SLICE,
                slicing.shape,
                [stack, *starts],
                attributes=attributes_for_another_value(slicing),
            )
            found = self._taken[key] = _asynchronous(taken)
        return found


def take_slices(fusion: Instruction, slicings: list[Instruction], slices: Slices) -> None:
    """Give a fusion the slices that it takes of a stack; one that does nothing else is removed.

    O(its instructions).
    """
    body = fusion.called[0]
    for slicing in slicings:
        taken = slices.outside(slicing, fusion)
        slicing.replace_all_uses_with(_parameter_for(fusion, taken))
        _remove_dead(slicing)
    _drop_dead_parameters(fusion)
    root = body.root
    if _is_only_viewed(root):
        value = _view(root, fusion)
        inherit(fusion, value)
        fusion.move_control_dependencies_to(value)
        fusion.replace_all_uses_with(value)
        fusion.parent.remove(fusion)


def outside_update(write: Access, dimension: int, indices: Indices) -> None:
    """Let a fusion give out the slice that it wrote; a dynamic-update-slice beside it writes it.

    O(its instructions + users).
    """
    fusion, slicing, result = write.fusion, write.slicing, write.result
    assert fusion is not None
    body, update = fusion.called[0], slicing.operands[1]
    stack = fusion.operands[slicing.operands[0].parameter_number]
    start = indices.outside(write.start(dimension), fusion)
    starts = _starts(start, dimension, slicing.shape.rank, indices)
    parent = fusion.parent
    is_only_viewed = fusion is result and _is_only_viewed(update)
    piece = _view(update, fusion) if is_only_viewed else result
    outside = parent.add(
        Opcode.DYNAMIC_UPDATE_SLICE,
        stack.shape,
        [stack, piece, *starts],
        attributes=attributes_for_another_value(slicing),
    )
    hand_value_on(result, outside)
    if is_only_viewed:
        fusion.move_control_dependencies_to(outside)
        parent.remove(fusion)
        _asynchronous(outside)
        return
    if fusion is not result and update.opcode is Opcode.PARAMETER:
        update = body.add(Opcode.COPY, update.shape, [update])
    slicing.replace_all_uses_with(update)
    _remove_dead(slicing)
    if fusion is not result:
        body.root.set_shape(tuple_shape(given.shape for given in body.root.operands))
    result.set_shape(update.shape)
    fusion.set_shape(body.root.shape)
    _drop_dead_parameters(fusion)
    _asynchronous(outside)


def _asynchronous(slicing: Instruction) -> Instruction:
    """The async-done that takes the place of a slicing."""
    pair = wrap_fused(slicing)
    replace_by_pairs(slicing.parent, {slicing: pair})
    return pair.done


def _remove_dead(value: Instruction) -> None:
    """Remove what a fusion does not use any more, and what it computed for that alone."""
    stack = [value]
    while stack:
        dead = stack.pop()
        if dead.users or dead.is_root or dead.opcode is Opcode.PARAMETER:
            continue
        operands = dict.fromkeys(dead.operands)
        dead.parent.remove(dead)
        stack += operands


def _starts(start: Instruction, dimension: int, rank: int, indices: Indices) -> list[Instruction]:
    """The indices of a slice that is whole in all other dimensions."""
    zero = indices.constant(0, start, start.parent)
    return [start if n == dimension else zero for n in range(rank)]


def _parameter_for(fusion: Instruction, value: Instruction) -> Instruction:
    """The parameter of a fusion that takes a value."""
    body = fusion.called[0]
    if value in fusion.operands:
        return body.parameters[fusion.operands.index(value)]
    number = len(fusion.operands)
    fusion.set_operands([*fusion.operands, value])
    return body.add(Opcode.PARAMETER, value.shape, name=f"param_{number}", payload=str(number))


def _drop_dead_parameters(fusion: Instruction) -> None:
    body: Computation = fusion.called[0]
    live = [p for p in body.parameters if p.users or p.is_root]
    fusion.set_operands([fusion.operands[p.parameter_number] for p in live])
    keep_parameters(body, live)


def _is_only_viewed(value: Instruction) -> bool:
    """Whether a value in a fusion is a parameter, or bitcasts of one."""
    while value.opcode is Opcode.BITCAST:
        value = value.operands[0]
    return value.opcode is Opcode.PARAMETER


def _view(value: Instruction, fusion: Instruction) -> Instruction:
    """The bitcasts of a parameter in a fusion, applied beside it.

    A new instruction, which can take over what the fusion has to wait for.
    """
    bitcasts: list[Instruction] = []
    while value.opcode is Opcode.BITCAST:
        bitcasts.append(value)
        value = value.operands[0]
    source = fusion.operands[value.parameter_number]
    if not bitcasts:
        return fusion.parent.add(Opcode.BITCAST, value.shape, [source])
    for bitcast in reversed(bitcasts):
        source = fusion.parent.add_clone(bitcast, [source])
    return source
