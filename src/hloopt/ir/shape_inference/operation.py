"""What the rules of shape inference read: an opcode applied to operand shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hloopt.diagnostics import HloVerifyError
from hloopt.ir import attribute_values
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape import Shape, compatible, format_shape

if TYPE_CHECKING:
    from hloopt.ir.shape_inference.callee import Callee


class Operation(NamedTuple):
    """An opcode, the shapes of its operands, its attributes as text and what it calls.

    `stated` is the result shape the text gives, None where it is left out; rules take from it
    what operands do not decide, such as the element type of a dot.
    """

    opcode: Opcode
    operands: Sequence[Shape]
    attributes: Mapping[str, str]
    called: Sequence[Callee]
    stated: Shape | None = None

    def attribute(self, name: str) -> str:
        """The text of a required attribute. Raises HloVerifyError when it is missing."""
        text = self.attributes.get(name)
        if text is None:
            raise HloVerifyError(f"attribute {name} is expected but not seen")
        assert text is not None
        return text

    def ints(self, name: str) -> tuple[int, ...]:
        """The integers of a required list attribute."""
        return attribute_values.parse_ints(self.attribute(name))

    def optional_ints(self, name: str) -> tuple[int, ...]:
        """The integers of a list attribute, none where it is left out."""
        text = self.attributes.get(name)
        return () if text is None else attribute_values.parse_ints(text)

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute; required unless it has a default."""
        if default is not None and name not in self.attributes:
            return default
        return attribute_values.parse_int(self.attribute(name))

    def flag(self, name: str) -> bool:
        """A boolean attribute, false where it is left out."""
        text = self.attributes.get(name)
        return text is not None and attribute_values.parse_bool(text)

    def dimension(self) -> int:
        """The one number in `dimensions={d}`."""
        dimensions = self.ints("dimensions")
        if len(dimensions) != 1:
            raise HloVerifyError(f"{self.opcode} takes exactly one dimension")
        return dimensions[0]

    def take_operands(self, count: int) -> Sequence[Shape]:
        """The operands, which must be `count`. Raises HloVerifyError."""
        if len(self.operands) != count:
            raise HloVerifyError(
                f"{self.opcode} expects {count} operands, but has {len(self.operands)} operands"
            )
        return self.operands

    def take_callees(self, count: int) -> Sequence[Callee]:
        """The called computations, which must be `count`. Raises HloVerifyError."""
        if len(self.called) != count:
            raise HloVerifyError(
                f"{self.opcode} calls {count} computations, but {len(self.called)} are given"
            )
        return self.called


def expect_array(shape: Shape, role: str) -> None:
    """Raise HloVerifyError unless `shape` is an array; `role` says what it is for."""
    if not shape.is_array or shape.is_buffer:
        raise HloVerifyError(f"Expected array argument for {role}, but got {show(shape)}.")


def show(*shapes: Shape) -> str:
    """Shapes as messages show them: without layouts, separated by commas."""
    if len(shapes) == 1:
        return format_shape(shapes[0], layout=False)
    return ", ".join(format_shape(shape, layout=False) for shape in shapes)


def show_type(shape: Shape) -> str:
    """An element type as XLA's messages spell it."""
    return shape.type_name.upper()


def agree(a: Shape, b: Shape, *, any_precision: bool = False) -> bool:
    """Whether two shapes can stand for each other, layouts and dynamism aside.

    An unbounded dimension goes with any size; with `any_precision` a floating-point type goes
    with any other. O(number of subshapes).
    """
    if compatible(a, b):
        return True
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x.is_tuple or y.is_tuple:
            if x.is_tuple != y.is_tuple or len(x.elements) != len(y.elements):
                return False
            stack += zip(x.elements, y.elements, strict=True)
        else:
            types_agree = same_kind(x, y) if any_precision else x.element_type is y.element_type
            if not types_agree or x.is_buffer != y.is_buffer:
                return False
            if not sizes_agree(x.dimensions, y.dimensions):
                return False
    return True


def sizes_agree(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether sizes are equal, an unbounded one going with any other."""
    return len(a) == len(b) and all(x == y or x < 0 or y < 0 for x, y in zip(a, b, strict=True))


def same_kind(a: Shape, b: Shape) -> bool:
    """Whether two element types are equal, or both floating-point."""
    x, y = a.element_type, b.element_type
    return x is y or (x is not None and y is not None and x.is_floating and y.is_floating)
