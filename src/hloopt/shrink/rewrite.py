"""A copy of a module in which dimensions have other sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hloopt.ir.attributes.shapes import parse_shapes
from hloopt.ir.attributes.typed import padding_of, slices_of, window_of
from hloopt.ir.attributes.values import (
    format_ints,
    parse_ints,
)
from hloopt.ir.clone import clone_module
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import nest_values
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.entry_layout import format_entry_layout, parse_entry_layout
from hloopt.ir.shapes.shape import Shape
from hloopt.shrink.counters import CountedLoop
from hloopt.shrink.errors import explaining
from hloopt.shrink.facts import literal_elements
from hloopt.shrink.flow import Flow
from hloopt.shrink.new_sizes import NewSizes
from hloopt.shrink.sizes import KNOWN_TRIPS


def resized_module(flow: Flow, sizes: NewSizes) -> Module:
    """A copy of the flow's module with these sizes. O(instructions)."""
    module, computations = clone_module(flow.module)
    limits = {loop.called[1].root: counted for loop, counted in flow.facts.loops.items()}
    for original, computation in computations.items():
        copies = {copy.name: copy for copy in computation.instructions}
        resizing = _Resizing(flow, sizes, computation)
        for instruction in original.instructions:
            with explaining(instruction):
                resizing.resize(instruction, copies[instruction.name])
        if original.root in limits:
            resizing.limit(limits[original.root], computation.root)
        if resizing.inserted:
            computation.splice(resizing.inserted)
    if "entry_computation_layout" in module.attributes:
        with explaining(flow.module.entry.root):
            _resize_layout(module, flow, sizes)
    return module


def _resize_layout(module: Module, flow: Flow, sizes: NewSizes) -> None:
    parameters, result = parse_entry_layout(module.attributes["entry_computation_layout"])
    entry = flow.module.entry
    resized = [
        sizes.shape(shape, flow.values[parameter])
        for shape, parameter in zip(parameters, entry.parameters, strict=True)
    ]
    result = sizes.shape(result, flow.values[entry.root])
    module.set_attribute("entry_computation_layout", format_entry_layout(resized, result))


class _Resizing:
    """Resizes the instructions of one computation."""

    def __init__(self, flow: Flow, sizes: NewSizes, computation: Computation) -> None:
        self.flow = flow
        self.sizes = sizes
        self.computation = computation
        self.inserted: dict[Instruction, list[Instruction]] = {}
        """The instructions that have to come right before an instruction."""

    def resize(self, original: Instruction, copy: Instruction) -> None:
        """Give the copy of an instruction its new sizes, in its shape and its attributes."""
        shape = self.sizes.shape(original.shape, self.flow.values[original])
        rewrite = _REWRITES.get(original.opcode)
        if rewrite is not None:
            rewrite(self, original, copy, shape)
        if shape is not original.shape:
            copy.set_shape(shape)

    def scaled(self, original: Instruction, dimension: int, offset: int) -> int:
        """An offset that is a whole number of blocks, by the new size of these."""
        block = self.flow.blocks.get((original, dimension))
        if block is None or block.size == 0:
            return offset
        return offset // block.size * self.sizes.size(block)

    def constant(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        if shape is original.shape:
            return
        elements = literal_elements(original.payload, original.shape)
        assert elements is not None, "its sizes stay"
        values = np.array(elements).reshape(original.shape.dimensions)
        kept = values[tuple(slice(size) for size in shape.dimensions)]
        copy.set_payload(nest_values([str(v) for v in kept.flat], shape.dimensions))

    def slice(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        operand = original.operands[0]
        whole = self.sizes.of(self.flow.of(operand))
        slices = []
        for d, (start, limit, stride) in enumerate(slices_of(original)):
            if (original, d) in self.flow.blocks:
                start = self.scaled(original, d, start)
                limit = start + shape.dimensions[d]
            elif original.shape.dimensions[d] == 1 and stride == 1:
                start = self.sizes.moved(self.flow.of(operand)[d], start)
                limit = start + 1
            else:  # every so many up to the end
                limit += whole[d] - operand.shape.dimensions[d]
            slices.append(f"[{start}:{limit}:{stride}]" if stride != 1 else f"[{start}:{limit}]")
        copy.set_attribute("slice", f"{{{', '.join(slices)}}}")

    def pad(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        texts = []
        for d, one in enumerate(padding_of(original)):
            low, high = (self.scaled(original, d, amount) for amount in (one.low, one.high))
            texts.append(f"{low}_{high}_{one.interior}" if one.interior else f"{low}_{high}")
        copy.set_attribute("padding", "x".join(texts))

    def gather(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        operand = original.operands[0]
        old = parse_ints(original.attributes["slice_sizes"])
        new = [
            after if size == before else size
            for size, before, after in zip(
                old, operand.shape.dimensions, self.sizes.of(self.flow.of(operand)), strict=True
            )
        ]
        copy.set_attribute("slice_sizes", format_ints(new))

    def reduce_window(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        window = window_of(original).dimensions
        if not any((original, d) in self.flow.windows for d in range(len(window))):
            return
        sizes, strides, pads = [], [], []
        for d, one in enumerate(window):
            factor = self.flow.windows.get((original, d))
            size = one.size if factor is None else self.sizes.size(factor)
            sizes.append(str(size))
            strides.append(str(size if factor is not None and one.stride > 1 else one.stride))
            low, high = one.pad_low, one.pad_high
            if factor is not None:
                low, high = (size - 1 if amount else 0 for amount in (low, high))
            pads.append(f"{low}_{high}")
        text = f"size={'x'.join(sizes)} stride={'x'.join(strides)} pad={'x'.join(pads)}"
        for name, dilations in (
            ("lhs_dilate", [one.lhs_dilate for one in window]),
            ("rhs_dilate", [one.rhs_dilate for one in window]),
            ("rhs_reversal", [one.reversal for one in window]),
        ):
            text += f" {name}={'x'.join(map(str, dilations))}"
        copy.set_attribute("window", f"{{{text}}}")

    def topk(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        copy.set_attribute("k", str(shape.leaves()[0].dimensions[-1]))

    def custom_call(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        constraints = original.attributes.get("operand_layout_constraints")
        if constraints is not None:
            shapes = [
                self.sizes.shape(constraint, self.flow.values[operand])
                for constraint, operand in zip(
                    parse_shapes(constraints), original.operands, strict=True
                )
            ]
            texts = ", ".join(resized.text for resized in shapes)
            copy.set_attribute("operand_layout_constraints", f"{{{texts}}}")

    def dynamic_slice(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        copy.set_attribute("dynamic_slice_sizes", format_ints(shape.dimensions))
        self._scale_offsets(original, copy, first=1)

    def dynamic_update_slice(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        self._scale_offsets(original, copy, first=2)

    def _scale_offsets(self, original: Instruction, copy: Instruction, first: int) -> None:
        for number, offset in enumerate(original.operands[first:], first):
            block = self.flow.blocks.get((original, number - first))
            counter = self.flow.facts.of(offset).counter
            old = copy.operands[number]
            if block is not None and (new := self.sizes.size(block)) != block.size:
                count = self._compute(copy, Opcode.DIVIDE, old, block.size)
                copy.replace_operand(number, self._compute(copy, Opcode.MULTIPLY, count, new))
            elif counter is not None and counter.step < 0:
                fewer = counter.trips.size - self.sizes.size(counter.trips)
                if fewer:
                    copy.replace_operand(number, self._compute(copy, Opcode.SUBTRACT, old, fewer))

    def trips(self, original: Instruction, copy: Instruction, shape: Shape) -> None:
        loop = self.flow.facts.loops.get(original)
        config = original.attributes.get("backend_config")
        if loop is None or config is None:
            return
        trips = self.sizes.size(loop.trips)
        if trips != loop.trips.size:
            new = KNOWN_TRIPS.sub(lambda known: f"{known[1]}{trips}{known[3]}", config)
            copy.set_attribute("backend_config", new)

    def limit(self, loop: CountedLoop, condition: Instruction) -> None:
        """Let the condition's root compare the counter with the new number of trips."""
        trips = self.sizes.size(loop.trips)
        if trips != loop.trips.size:
            shape = condition.operands[1].shape
            limit = self.computation.add(Opcode.CONSTANT, shape, payload=str(trips))
            self.inserted.setdefault(condition, []).append(limit)
            condition.replace_operand(1, limit)

    def _compute(
        self, user: Instruction, opcode: Opcode, value: Instruction, constant: int
    ) -> Instruction:
        """`opcode` of a scalar and a number, right before `user`."""
        added = self.computation.add(Opcode.CONSTANT, value.shape, payload=str(constant))
        result = self.computation.add(opcode, value.shape, [value, added])
        self.inserted.setdefault(user, []).extend((added, result))
        return result


_Rewrite = Callable[[_Resizing, Instruction, Instruction, Shape], None]
_REWRITES: dict[Opcode, _Rewrite] = {
    Opcode.CONSTANT: _Resizing.constant,
    Opcode.SLICE: _Resizing.slice,
    Opcode.PAD: _Resizing.pad,
    Opcode.GATHER: _Resizing.gather,
    Opcode.REDUCE_WINDOW: _Resizing.reduce_window,
    Opcode.TOPK: _Resizing.topk,
    Opcode.CUSTOM_CALL: _Resizing.custom_call,
    Opcode.WHILE: _Resizing.trips,
    Opcode.DYNAMIC_SLICE: _Resizing.dynamic_slice,
    Opcode.DYNAMIC_UPDATE_SLICE: _Resizing.dynamic_update_slice,
}
