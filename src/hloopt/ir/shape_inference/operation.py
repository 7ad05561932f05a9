"""An operation as the rules of shape inference read it: an opcode applied to operand shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes import values as attribute_values
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, format_shape

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
