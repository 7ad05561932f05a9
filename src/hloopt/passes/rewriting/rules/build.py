"""Making instructions in the place of another: shapes are inferred, layouts follow operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hloopt.ir.attributes.values import PaddingDimension, Slice, Window, format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference import infer_shape
from hloopt.ir.shapes.layout import default_layout
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.passes.rewriting.rules.constants import Scalar, scalar_text


class MustStay(Exception):
    """Something new is wanted in the place of an instruction whose control dependencies keep it."""


class Builder:
    """Makes the instructions of one rewrite, in the computation of the one that is replaced.

    `made` lists them. Where `only_existing` is set, making raises MustStay.
    """

    def __init__(
        self,
        computation: Computation,
        *,
        only_existing: bool = False,
        reducers: dict[tuple[str, str], Computation] | None = None,
    ) -> None:
        self.computation = computation
        self.only_existing = only_existing
        self.made: list[Instruction] = []
        self._reducers = {} if reducers is None else reducers

    def make(
        self,
        opcode: Opcode | str,
        *operands: Instruction,
        shape: Shape | None = None,
        called: tuple[Computation, ...] = (),
        payload: str = "",
        attributes: Mapping[str, str] | None = None,
    ) -> Instruction:
        """An instruction; its shape is inferred where it is not given."""
        if self.only_existing:
            raise MustStay
        kind = opcode if isinstance(opcode, Opcode) else Opcode(opcode)
        given = dict(attributes or {})
        if shape is None:
            shape = infer_shape(kind, [o.shape for o in operands], given, called)
        made = self.computation.add(
            kind, shape, operands, attributes=given, called=called, payload=payload
        )
        self.made.append(made)
        return made

    def clone(
        self, original: Instruction, operands: Iterable[Instruction], shape: Shape | None = None
    ) -> Instruction:
        """A copy with other operands and, if given, another shape; all attributes are kept."""
        if self.only_existing:
            raise MustStay
        made = self.computation.add_clone(original, operands)
        if shape is not None:
            made.shape = shape
        if "sharding" in made.attributes or "origin" in made.attributes:
            for name in ("sharding", "origin"):
                made.set_attribute(name, None)
        self.made.append(made)
        return made

    # -- values -------------------------------------------------------------------------------

    def scalar(self, value: Scalar, like: Shape) -> Instruction:
        """A rank-0 constant with the element type of `like`."""
        shape = array_shape(like.type_name)
        return self.make(Opcode.CONSTANT, shape=shape, payload=scalar_text(value, shape))

    def splat(self, value: Scalar, shape: Shape) -> Instruction:
        """An array of this shape with one value everywhere: a constant or a broadcast of one."""
        return self.fill(self.scalar(value, shape), shape)

    def fill(self, scalar: Instruction, shape: Shape) -> Instruction:
        """A rank-0 value, broadcast to a shape unless that has rank 0."""
        if not shape.dimensions:
            return scalar
        return self.broadcast(scalar, (), shape.with_element_type(scalar.shape.type_name))

    def iota(self, shape: Shape, dimension: int) -> Instruction:
        """An iota along a dimension."""
        return self.make(Opcode.IOTA, shape=shape, attributes={"iota_dimension": str(dimension)})

    # -- elementwise --------------------------------------------------------------------------

    def unary(self, opcode: Opcode | str, operand: Instruction) -> Instruction:
        return self.make(opcode, operand)

    def binary(self, opcode: Opcode | str, a: Instruction, b: Instruction) -> Instruction:
        return self.make(opcode, a, b)

    def add(self, a: Instruction, b: Instruction) -> Instruction:
        return self.make(Opcode.ADD, a, b)

    def subtract(self, a: Instruction, b: Instruction) -> Instruction:
        return self.make(Opcode.SUBTRACT, a, b)

    def multiply(self, a: Instruction, b: Instruction) -> Instruction:
        return self.make(Opcode.MULTIPLY, a, b)

    def divide(self, a: Instruction, b: Instruction) -> Instruction:
        return self.make(Opcode.DIVIDE, a, b)

    def compare(self, direction: str, a: Instruction, b: Instruction) -> Instruction:
        return self.make(Opcode.COMPARE, a, b, attributes={"direction": direction})

    def select(
        self, predicate: Instruction, on_true: Instruction, on_false: Instruction
    ) -> Instruction:
        return self.make(Opcode.SELECT, predicate, on_true, on_false)

    def convert(self, operand: Instruction, type_name: str) -> Instruction:
        """`operand` converted to an element type; itself where it has that."""
        if operand.shape.type_name == type_name:
            return operand
        layout = operand.shape.layout._replace(element_bits=0)
        shape = operand.shape.with_layout(layout).with_element_type(type_name)
        return self.make(Opcode.CONVERT, operand, shape=shape)

    # -- rearranging --------------------------------------------------------------------------

    def broadcast(
        self, operand: Instruction, dimensions: Iterable[int], shape: Shape
    ) -> Instruction:
        """A broadcast; dimension i of the operand becomes `dimensions[i]` of the result."""
        return self.make(
            Opcode.BROADCAST, operand, shape=shape,
            attributes={"dimensions": format_ints(dimensions)},
        )  # fmt: skip

    def reshape(self, operand: Instruction, sizes: Sequence[int] | Shape) -> Instruction:
        """A reshape to these sizes, or to a shape."""
        shape = sizes if isinstance(sizes, Shape) else sized(operand.shape, sizes)
        return self.make(Opcode.RESHAPE, operand, shape=shape)

    def bitcast(self, operand: Instruction, shape: Shape) -> Instruction:
        return self.make(Opcode.BITCAST, operand, shape=shape)

    def transpose(
        self, operand: Instruction, order: Iterable[int], shape: Shape | None = None
    ) -> Instruction:
        """A transpose: dimension i of the result is `order[i]` of the operand."""
        dimensions = tuple(order)
        if shape is None:
            shape = sized(operand.shape, [operand.shape.dimensions[d] for d in dimensions])
        return self.make(
            Opcode.TRANSPOSE, operand, shape=shape,
            attributes={"dimensions": format_ints(dimensions)},
        )  # fmt: skip

    def reverse(self, operand: Instruction, dimensions: Iterable[int]) -> Instruction:
        return self.make(
            Opcode.REVERSE, operand, attributes={"dimensions": format_ints(dimensions)}
        )

    def slice(
        self, operand: Instruction, slices: Sequence[Slice], shape: Shape | None = None
    ) -> Instruction:
        """A slice; start, limit and stride of each dimension."""
        if shape is None:
            sizes = [max(0, -(-(s.limit - s.start) // s.stride)) for s in slices]
            shape = _keeping_layout(operand.shape, sizes)
        return self.make(
            Opcode.SLICE, operand, shape=shape, attributes={"slice": format_slices(slices)}
        )

    def pad(
        self,
        operand: Instruction,
        padding_value: Instruction,
        padding: Sequence[PaddingDimension],
        shape: Shape | None = None,
    ) -> Instruction:
        attributes = {"padding": format_padding(padding)}
        if shape is None:
            inferred = infer_shape(Opcode.PAD, [operand.shape, padding_value.shape], attributes)
            shape = _keeping_layout(operand.shape, inferred.dimensions)
        return self.make(Opcode.PAD, operand, padding_value, shape=shape, attributes=attributes)

    def concatenate(
        self, operands: Sequence[Instruction], dimension: int, shape: Shape | None = None
    ) -> Instruction:
        return self.make(
            Opcode.CONCATENATE, *operands, shape=shape,
            attributes={"dimensions": f"{{{dimension}}}"},
        )  # fmt: skip

    def dynamic_slice(
        self, operand: Instruction, offsets: Sequence[Instruction], sizes: Sequence[int],
        shape: Shape | None = None,
    ) -> Instruction:  # fmt: skip
        return self.make(
            Opcode.DYNAMIC_SLICE, operand, *offsets,
            shape=shape or _keeping_layout(operand.shape, sizes),
            attributes={"dynamic_slice_sizes": format_ints(sizes)},
        )  # fmt: skip

    def dynamic_update_slice(
        self, operand: Instruction, update: Instruction, offsets: Sequence[Instruction]
    ) -> Instruction:
        return self.make(
            Opcode.DYNAMIC_UPDATE_SLICE, operand, update, *offsets, shape=operand.shape
        )

    # -- combining ----------------------------------------------------------------------------

    def reduce(
        self,
        operand: Instruction,
        init: Instruction,
        dimensions: Iterable[int],
        reducer: Computation,
        shape: Shape | None = None,
    ) -> Instruction:
        removed = tuple(dimensions)
        if shape is None:
            kept = [s for d, s in enumerate(operand.shape.dimensions) if d not in removed]
            shape = sized(operand.shape, kept)
        return self.make(
            Opcode.REDUCE, operand, init, shape=shape, called=(reducer,),
            attributes={"dimensions": format_ints(removed)},
        )  # fmt: skip

    def scalar_computation(self, opcode: Opcode | str, type_name: str) -> Computation:
        """A computation that applies an opcode to two scalars of an element type, made once."""
        if self.only_existing:
            raise MustStay
        key = (Opcode(opcode).value, type_name)
        known = self._reducers.get(key)
        if known is not None:
            return known
        shape = array_shape(type_name)
        made = self.computation.module.add_computation(f"scalar_{key[0]}")
        a, b = (made.add(Opcode.PARAMETER, shape, payload=str(n)) for n in range(2))
        made.set_root(made.add(Opcode(opcode), shape, [a, b]))
        self._reducers[key] = made
        return made


def sized(shape: Shape, sizes: Sequence[int]) -> Shape:
    """The element type of a shape with other sizes, in the default layout."""
    return array_shape(shape.type_name, tuple(sizes))


def _keeping_layout(shape: Shape, sizes: Sequence[int]) -> Shape:
    """A shape with other sizes of as many dimensions, in the layout that it has."""
    layout = shape.layout
    if layout.tiles or layout.splits:
        layout = default_layout(len(sizes))
    return array_shape(shape.type_name, tuple(sizes), layout=layout)


def format_slices(slices: Iterable[Slice]) -> str:
    """The text of the attribute `slice`."""
    parts = [
        f"[{s.start}:{s.limit}]" if s.stride == 1 else f"[{s.start}:{s.limit}:{s.stride}]"
        for s in slices
    ]
    return f"{{{', '.join(parts)}}}"


def format_padding(padding: Iterable[PaddingDimension]) -> str:
    """The text of the attribute `padding`."""
    return "x".join(
        f"{p.low}_{p.high}_{p.interior}" if p.interior else f"{p.low}_{p.high}" for p in padding
    )


def format_window(window: Window) -> str:
    """The text of the attribute `window`; parts at their default are left out."""
    rows = window.dimensions
    if not rows:
        return "{}"
    parts = [f"size={_by_x(r.size for r in rows)}"]
    if any(r.stride != 1 for r in rows):
        parts.append(f"stride={_by_x(r.stride for r in rows)}")
    if any(r.pad_low or r.pad_high for r in rows):
        parts.append("pad=" + "x".join(f"{r.pad_low}_{r.pad_high}" for r in rows))
    if any(r.lhs_dilate != 1 for r in rows):
        parts.append(f"lhs_dilate={_by_x(r.lhs_dilate for r in rows)}")
    if any(r.rhs_dilate != 1 for r in rows):
        parts.append(f"rhs_dilate={_by_x(r.rhs_dilate for r in rows)}")
    if any(r.reversal for r in rows):
        parts.append(f"rhs_reversal={_by_x(r.reversal for r in rows)}")
    return f"{{{' '.join(parts)}}}"


def _by_x(numbers: Iterable[int]) -> str:
    return "x".join(map(str, numbers))
