"""Transposing slices in loops in the place of whole arrays before them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from hloopt.analysis.dataflow.slots import Index
from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.attributes.values.numbers import format_ints, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.pass_framework.base import ModulePass, PassContext, register
from hloopt.passes.control_flow.transpose_sinking.views import (
    Dimensions,
    NotSunk,
    Read,
    Views,
    transposed_dimensions,
)
from hloopt.passes.memory_space.places import Places, with_leaves
from hloopt.passes.rewriting.replace import forget_value, hand_value_on, replace_instruction
from hloopt.passes.rewriting.slice_places import forget_slices
from hloopt.passes.simplification.dce import remove_unreachable, unreachable_computations

_Value = TypeVar("_Value", int, Instruction)


@register("while-loop-transpose-sinking", preserves="bits")
class WhileLoopTransposeSinking(ModulePass):
    """Transpose the slices that loops take of an array, in the place of the array before them.

    Weights of scanned layers often lie in memory with the layers in another dimension than the
    first. They are transposed before the loops, and the copy takes as much memory as the weights
    for as long as the loops run. Where these only take slices of it, by dynamic-slices in fusions
    or outside of them, they take them from the array as it was, and each slice is transposed: there
    is no copy, and no more bytes are moved where each slice is taken once. Loops that take slices
    again, or in each trip of a loop around them, transpose them again: that may be more bytes than
    the copy. The array may go through tuples, optimization barriers, bitcasts that only number its
    dimensions otherwise, and loops that hand it on.

    It is transposed as before where something else takes it, custom fusions too, or more than half
    of it at once, where it is a result, has control dependencies, or has a sharding, of its
    dimensions. What is said of the origin of values that hold it goes. Refuses scheduled modules
    that have arrays to change. XLA has no such pass. Linear in the module, and in all that hands
    on what is transposed.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        unreachable = unreachable_computations(module)
        sinking, ways = _Sinking(), Places()
        waiting = deque(module.instructions())
        sunk = 0
        while waiting:
            transpose = waiting.pop()
            views = _sinkable(transpose, ways, context)
            if views is None:
                continue
            if module.is_scheduled:
                raise PassRefused(
                    "slices are transposed in place of arrays before there is a schedule",
                    help="run hlo-descheduler before it",
                )
            size = shape_bytes(transpose.shape)
            if not context.apply(transpose, _words(views)):
                break
            waiting.extendleft(sinking.sink(views))
            sunk += 1
            context.count("bytes not transposed before loops", size)
        if sunk:
            sinking.finish()
            context.count("transposes sunk into loops", sunk)
            remove_unreachable(module, unreachable)
        return sunk > 0


def _sinkable(transpose: Instruction, ways: Places, context: PassContext) -> Views | None:
    """A transposed array of which loops take slices; None where that is not all."""
    dimensions = transposed_dimensions(transpose)
    if dimensions is None:
        return None
    views = Views(transpose, ways)
    try:
        views.follow(dimensions)
    except NotSunk as reason:
        if views.loops:
            context.missed(transpose, f"transposed as before: {reason}")
        return None
    return views if views.loops and views.reads else None


def _words(views: Views) -> str:
    """A remark on what is transposed instead."""
    loops = ", ".join(f"%{loop.name}" for loop in views.loops)
    return f"transposed slice by slice: {counted(len(views.reads), 'slice')} in {loops}"


class _Sinking:
    """Letting all take slices of arrays as they were; tuples get their shapes at the end."""

    def __init__(self) -> None:
        self._leaves: dict[Instruction, dict[Index, Shape]] = {}
        self._fusions: dict[Instruction, None] = {}

    def sink(self, views: Views) -> list[Instruction]:
        """The transposes of slices in place of that of an array. O(places and slices)."""
        shape = views.source.shape
        made = [_transpose_slice(read, shape) for read in views.reads]
        for instruction, path in views.places:
            if instruction is views.transpose or instruction in views.bitcasts:
                continue
            forget_value(instruction)
            if path:
                self._leaves.setdefault(instruction, {})[path] = shape
            else:
                instruction.set_shape(shape)
        self._fusions |= views.fusions
        for view in (*views.bitcasts, views.transpose):
            view.replace_all_uses_with(view.operands[0])
            view.parent.remove(view)
        return made

    def finish(self) -> None:
        """Give each tuple that holds such arrays its shape. O(their elements + fusions)."""
        forget_slices(self._fusions)
        for instruction, leaves in self._leaves.items():
            instruction.set_shape(with_leaves(instruction.shape, leaves))


def _transpose_slice(read: Read, shape: Shape) -> Instruction:
    """Take a slice from the array as it was, and transpose it."""
    slicing, dimensions = read.slicing, read.dimensions
    sizes = _as_it_was(parse_ints(slicing.attributes["dynamic_slice_sizes"]), dimensions)
    taken = slicing.parent.add(
        Opcode.DYNAMIC_SLICE,
        array_shape(shape.type_name, tuple(sizes), layout=shape.layout),
        [slicing.operands[0], *_as_it_was(slicing.operands[1:], dimensions)],
        attributes={"dynamic_slice_sizes": format_ints(sizes)},
    )
    turned = _turned(taken, slicing.shape, dimensions)
    hand_value_on(slicing, turned)
    replace_instruction(slicing, turned)
    return turned


def _turned(piece: Instruction, shape: Shape, dimensions: Dimensions) -> Instruction:
    """A slice as a view has it: in a layout alone, it is a copy."""
    if dimensions == tuple(range(shape.rank)):
        return piece.parent.add(Opcode.COPY, shape, [piece])
    order = {"dimensions": format_ints(dimensions)}
    return piece.parent.add(Opcode.TRANSPOSE, shape, [piece], attributes=order)


def _as_it_was(values: Sequence[_Value], dimensions: Dimensions) -> list[_Value]:
    """The values for the dimensions of a view, in the order of those of the array as it was."""
    found = dict(zip(dimensions, values, strict=True))
    return [found[number] for number in range(len(dimensions))]
