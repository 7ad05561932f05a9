"""All-reduces in two halves: a reduce-scatter and an all-gather."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.pass_framework.base import (
    Bytes,
    ModulePass,
    PassContext,
    PassOptions,
    option,
    register,
)
from hloopt.passes.collectives.shards import with_dimension
from hloopt.passes.rewriting.replace import attributes_for_another_value, replace_instruction
from hloopt.passes.rewriting.selection import selected


@dataclass(frozen=True, slots=True)
class _Split:
    """The form in which an all-reduce is scattered."""

    shape: Shape
    """Its own, or an array of one dimension."""
    dimension: int
    devices: int
    """The devices of each group."""


@register("all-reduce-to-reduce-scatter", preserves="bits")
class AllReduceToReduceScatter(ModulePass):
    """Make a reduce-scatter and an all-gather of an all-reduce, so that each can be hidden alone.

    As many bytes cross the wires: a ring takes both steps for an all-reduce, too. The result is
    scattered along the most major dimension, by its layout, that the number of devices of a group
    divides. Where none is, bitcasts make one dimension of the array. Groups, reduction, annotations
    and control dependencies stay; where the all-reduce had a channel id, both halves get new ones.
    Each element is the reduction of the same values in the same order of devices, so no bit changes
    where the two kinds of collective reduce alike. XLA has no such pass: `all-reduce-splitter`
    splits by groups. O(devices) for each all-reduce, beside O(instructions).
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        names: tuple[str, ...] = option((), "names of the all-reduces to change; none: all")
        min_bytes: Bytes = option(0, "smaller all-reduces stay")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        grid = device_counts(module)
        channel_ids = unused_channel_ids(module)
        found = [
            instruction
            for instruction in module.instructions(Opcode.ALL_REDUCE)
            if not instruction.parent.is_fusion
        ]
        parts: dict[Computation, dict[Instruction, list[Instruction]]] = {}
        for reduced in selected(found, self.options.names, "all-reduce", context):
            split = self.split(reduced, grid)
            if isinstance(split, str):
                context.missed(reduced, split)
                continue
            among = counted(split.devices, "device")
            if context.apply(reduced, f"a reduce-scatter and an all-gather of {among}"):
                context.count("all-reduces split")
                parts.setdefault(reduced.parent, {})[reduced] = _halves(reduced, split, channel_ids)
        for computation, placed in parts.items():
            computation.splice(placed)
            for reduced, steps in placed.items():
                replace_instruction(reduced, steps[-1])
        return bool(parts)

    def split(self, reduced: Instruction, grid: Grid) -> _Split | str:
        """The form in which an all-reduce is scattered, or the reason why it stays. O(devices)."""
        if len(reduced.operands) != 1 or reduced.shape.is_tuple:
            return f"it has {counted(len(reduced.operands), 'operand')} and gives a tuple"
        if reduced.parent.is_asynchronous:
            return "it is wrapped by an async-start"
        if constrains_layout(reduced):
            return "it constrains its layout"
        shape = reduced.shape
        if not shape.dimensions:
            return "it is a scalar"
        if any(shape.dynamic) or not all(shape.dimensions):
            return "it has dynamic dimensions, or no elements"
        size = shape_bytes(shape)
        if size < self.options.min_bytes:
            return f"it has {counted(size, 'byte')}, and min_bytes is {self.options.min_bytes:,}"
        groups = device_groups(reduced, grid)
        devices = len(groups[0])
        if {len(group) for group in groups} != {devices}:
            return "its replica groups have different sizes"
        if devices == 1:
            return "each of its groups is one device"
        for dimension in reversed(shape.layout.minor_to_major):
            if shape.dimensions[dimension] % devices == 0:
                return _Split(shape, dimension, devices)
        elements = prod(shape.dimensions)
        if elements % devices or shape.layout.tiles:
            return (
                f"no dimension, nor {counted(elements, 'element')} without tiles, can be divided "
                f"among {counted(devices, 'device')}"
            )
        return _Split(_flat(shape, elements), 0, devices)


def _flat(shape: Shape, elements: int) -> Shape:
    """The array with its elements in one dimension, in their order in memory."""
    layout = shape.layout._replace(minor_to_major=(0,))
    return array_shape(shape.type_name, (elements,), layout=layout)


def _halves(reduced: Instruction, split: _Split, channel_ids: Iterator[int]) -> list[Instruction]:
    """The instructions that compute, last, what an all-reduce does."""
    computation, (value,) = reduced.parent, reduced.operands
    steps: list[Instruction] = []

    def bitcast(value: Instruction, shape: Shape) -> Instruction:
        if value.shape.dimensions == shape.dimensions:
            return value
        steps.append(computation.add(Opcode.BITCAST, shape, [value]))
        return steps[-1]

    def attributes() -> dict[str, str]:
        kept = attributes_for_another_value(reduced)
        if "channel_id" in kept:
            kept["channel_id"] = str(next(channel_ids))
        return {**kept, "dimensions": format_ints((split.dimension,))}

    size = split.shape.dimensions[split.dimension] // split.devices
    scattered = computation.add(
        Opcode.REDUCE_SCATTER,
        with_dimension(split.shape, split.dimension, size),
        [bitcast(value, split.shape)],
        attributes=attributes(),
        called=reduced.called,
    )
    gathered = computation.add(Opcode.ALL_GATHER, split.shape, [scattered], attributes=attributes())
    steps += [scattered, gathered]
    bitcast(gathered, reduced.shape)
    if "origin" in reduced.attributes:
        steps[-1].set_attribute("origin", reduced.attributes["origin"])
    for predecessor in reduced.control_predecessors:
        scattered.add_control_predecessor(predecessor)
    return steps
