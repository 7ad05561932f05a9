"""Instructions that run once for all trips of a loop: each with a dimension more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import SUNK
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.passes.collectives.collective_pipeliner.copies import constant_zero
from hloopt.passes.collectives.collective_pipeliner.moves import sliced_dimension
from hloopt.passes.collectives.collective_pipeliner.options import is_custom_call
from hloopt.passes.collectives.collective_pipeliner.sink_rules import SHAPE_ONLY
from hloopt.passes.rewriting.slice_places import forget_slices


def stacked_shape(shape: Shape, trips: int) -> Shape:
    """The shape of the values of all trips, the trips in the first and outermost dimension."""
    layout = shape.layout
    order = (*(dimension + 1 for dimension in layout.minor_to_major), 0)
    return array_shape(
        shape.type_name, (trips, *shape.dimensions), (), layout._replace(minor_to_major=order)
    )


class Batch:
    """Runs instructions of a loop's body after the loop, for all trips at once.

    `stacked` and `same` are what stands for values of the body: those of all trips, or one that
    all trips have.
    """

    def __init__(
        self,
        after: Computation,
        trips: int,
        stacked: Mapping[Instruction, Instruction],
        same: Mapping[Instruction, Instruction],
    ) -> None:
        self._after = after
        self._trips = trips
        self._stacked = dict(stacked)
        self._same = dict(same)

    def stack(self, value: Instruction, stacked: Instruction) -> None:
        """Let `stacked` be what all trips gave."""
        self._stacked[value] = stacked

    def add(self, value: Instruction) -> Instruction:
        """A value of the body for all trips, made of what was added or given before."""
        if value in self._stacked:
            return self._stacked[value]
        if value in self._same:
            return self._same[value]
        is_same = value.opcode is not Opcode.BROADCAST and all(
            o in self._same for o in value.operands
        )
        if is_same:
            operands = [self._same[o] for o in value.operands]
            self._same[value] = self._after.add_clone(value, operands)
            return self._same[value]
        self._stacked[value] = self._batched(value)
        return self._stacked[value]

    def _batched(self, value: Instruction) -> Instruction:
        opcode = value.opcode
        if opcode is Opcode.CUSTOM_CALL:
            return self._custom_call(value)
        if opcode in SHAPE_ONLY:
            return self._make(value, list(map(self.all_trips, value.operands)), {})
        return _RULES[opcode](self, value)

    def all_trips(self, value: Instruction) -> Instruction:
        """The values of all trips, stacked; a value that is the same in all is broadcast."""
        if value not in self._stacked:
            dimensions = format_ints(range(1, value.shape.rank + 1))
            self._stacked[value] = self._after.add(
                Opcode.BROADCAST,
                stacked_shape(value.shape, self._trips),
                [self._same[value]],
                attributes={"dimensions": dimensions},
            )
        return self._stacked[value]

    def _make(
        self,
        value: Instruction,
        operands: Sequence[Instruction],
        attributes: Mapping[str, str],
    ) -> Instruction:
        made = self._after.add_clone(value, operands)
        made.set_shape(stacked_shape(value.shape, self._trips))
        forget_slices((made,))
        for name, text in attributes.items():
            made.set_attribute(name, text)
        made.set_attribute("sharding", None)
        return made

    def _first_stacked(self, value: Instruction) -> list[Instruction]:
        """The operands: the first of all trips, the others as all trips have them."""
        first, *others = value.operands
        return [self.all_trips(first), *(self._same[o] for o in others)]

    # -- opcode by opcode -------------------------------------------------------------------

    def _shift_dimensions(self, value: Instruction) -> Instruction:
        """The stacked form of an operation whose `dimensions` all move by one."""
        return self._make(
            value,
            list(map(self.all_trips, value.operands)),
            {"dimensions": format_ints(d + 1 for d in dimensions_of(value))},
        )

    def _reduce(self, value: Instruction) -> Instruction:
        dimensions = format_ints(d + 1 for d in dimensions_of(value))
        return self._make(value, self._first_stacked(value), {"dimensions": dimensions})

    def _transpose(self, value: Instruction) -> Instruction:
        order = (0, *(d + 1 for d in dimensions_of(value)))
        operands = [self.all_trips(value.operands[0])]
        return self._make(value, operands, {"dimensions": format_ints(order)})

    def _broadcast(self, value: Instruction) -> Instruction:
        (operand,) = value.operands
        dimensions = [d + 1 for d in dimensions_of(value)]
        if operand in self._same:
            operands = [self._same[operand]]
        else:
            operands = [self._stacked[operand]]
            dimensions.insert(0, 0)
        return self._make(value, operands, {"dimensions": format_ints(dimensions)})

    def _slice(self, value: Instruction) -> Instruction:
        parts = value.attributes["slice"].strip()[1:]
        text = f"{{[0:{self._trips}], {parts}"
        return self._make(value, [self.all_trips(value.operands[0])], {"slice": text})

    def _pad(self, value: Instruction) -> Instruction:
        padding = f"0_0x{value.attributes['padding'].strip()}"
        return self._make(value, self._first_stacked(value), {"padding": padding})

    def _dynamic_slice(self, value: Instruction) -> Instruction:
        operand, *offsets = self._first_stacked(value)
        zero = constant_zero(self._after, offsets[0].shape)
        sizes = (self._trips, *value.shape.dimensions)
        return self._make(
            value, [operand, zero, *offsets], {"dynamic_slice_sizes": format_ints(sizes)}
        )

    def _custom_call(self, value: Instruction) -> Instruction:
        operands = list(map(self.all_trips, value.operands))
        if is_custom_call(value, SUNK):
            return operands[0]
        constraint = value.attributes.get("operand_layout_constraints")
        if constraint is None:
            return self._make(value, operands, {})
        from hloopt.ir.shapes.shape_parser import scan_shape

        (inner,) = scan_shape(f"({constraint.strip()[1:-1]})", 0)[0].elements
        outer = stacked_shape(inner, self._trips)
        return self._make(value, operands, {"operand_layout_constraints": f"{{{outer.text}}}"})

    def _inner_store(self, value: Instruction) -> Instruction:
        """A store into part of each trip's value: a scatter, as the place may differ."""
        buffer, update, *offsets = value.operands
        dimension = sliced_dimension(value)
        assert dimension is not None, "checked before"
        trips, after = self._trips, self._after
        kind = offsets[dimension].shape.type_name
        column = array_shape(kind, (trips, 1))
        numbers = after.add(Opcode.IOTA, column, attributes={"iota_dimension": "0"})
        places = after.add(Opcode.RESHAPE, column, [self.all_trips(offsets[dimension])])
        indices = after.add(
            Opcode.CONCATENATE,
            array_shape(kind, (trips, 2)),
            [numbers, places],
            attributes={"dimensions": "{1}"},
        )
        stacked = self.all_trips(update)
        sizes = [s for d, s in enumerate(stacked.shape.dimensions) if d != dimension + 1]
        updates = after.add(
            Opcode.RESHAPE, array_shape(update.shape.type_name, tuple(sizes)), [stacked]
        )
        scattered = format_ints((0, dimension + 1))
        return after.add(
            Opcode.SCATTER,
            stacked_shape(value.shape, trips),
            [self.all_trips(buffer), indices, updates],
            attributes={
                "update_window_dims": format_ints(range(1, len(sizes))),
                "inserted_window_dims": scattered,
                "scatter_dims_to_operand_dims": scattered,
                "index_vector_dim": "1",
                "indices_are_sorted": "true",
                "unique_indices": "true",
            },
            called=(_second(after, array_shape(value.shape.type_name)),),
        )


def _second(beside: Computation, scalar: Shape) -> Computation:
    """A new computation that gives its second parameter."""
    choice = beside.module.add_computation("overwrite")
    choice.add(Opcode.PARAMETER, scalar, name="old", payload="0")
    choice.set_root(choice.add(Opcode.PARAMETER, scalar, name="new", payload="1"))
    return choice


_RULES: dict[Opcode, Callable[[Batch, Instruction], Instruction]] = {
    Opcode.ALL_GATHER: Batch._shift_dimensions,
    Opcode.ALL_TO_ALL: Batch._shift_dimensions,
    Opcode.BROADCAST: Batch._broadcast,
    Opcode.CONCATENATE: Batch._shift_dimensions,
    Opcode.DYNAMIC_SLICE: Batch._dynamic_slice,
    Opcode.DYNAMIC_UPDATE_SLICE: Batch._inner_store,
    Opcode.PAD: Batch._pad,
    Opcode.REDUCE: Batch._reduce,
    Opcode.REDUCE_SCATTER: Batch._shift_dimensions,
    Opcode.SLICE: Batch._slice,
    Opcode.TRANSPOSE: Batch._transpose,
}
