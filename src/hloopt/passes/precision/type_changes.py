"""Values and shapes in another element type."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.shapes.shape import fold as fold_shape
from hloopt.ir.tuples import make_tuple, read_element


def leaf_types(shape: Shape, known: dict[Shape, frozenset[str]]) -> frozenset[str]:
    """The names of the element types of a shape's leaves. O(1) for what is in `known`."""
    found = known.get(shape)
    if found is None:
        found = fold_shape(shape, _own_type, _types_of_all, known)
    return found


def _own_type(leaf: Shape) -> frozenset[str]:
    return frozenset((leaf.type_name,))


def _types_of_all(elements: list[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*elements)


def with_type(shape: Shape, source: str, target: str) -> Shape:
    """A shape whose leaves of type `source` are of type `target`. O(number of subshapes).

    Layouts stay, but for elements that share bytes: those of whole bytes do not.
    """
    if shape.is_array:  # most are
        return _leaf_with_type(shape, source, target)
    return fold_shape(shape, lambda leaf: _leaf_with_type(leaf, source, target), tuple_shape, {})


def _leaf_with_type(leaf: Shape, source: str, target: str) -> Shape:
    if leaf.type_name != source:
        return leaf
    changed = leaf.with_element_type(target)
    if changed.layout.element_bits and ELEMENT_TYPES[target].bits >= 8:
        return changed.with_layout(changed.layout._replace(element_bits=0))
    return changed


def converted(value: Instruction, shape: Shape) -> Instruction:
    """A value of another shape that differs in element types: one convert per leaf that does.

    A tuple is taken apart for that, whole, and put together again. O(number of subshapes).
    """
    if value.shape is shape:
        return value
    if not shape.is_tuple:
        return value.parent.add(Opcode.CONVERT, shape, [value])
    indices = [index for index, _ in shape.subshapes()]
    parts: dict[tuple[int, ...], Instruction] = {(): value}
    for index in indices[1:]:
        parts[index] = read_element(parts[index[:-1]], index[-1])
    for index, part in reversed(shape.subshapes()):
        if part.is_tuple:
            elements = [parts[*index, number] for number in range(len(part.elements))]
            parts[index] = make_tuple(value.parent, elements)
        elif parts[index].shape is not part:
            parts[index] = value.parent.add(Opcode.CONVERT, part, [parts[index]])
    return parts[()]
