"""Selecting between two values of any shape."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import layout_in_order
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.tuples import element, make_tuple


def why_no_select(shape: Shape) -> str | None:
    """The reason why `select_between` cannot make a value of the shape, or None where it can.
    O(subshapes)."""
    for leaf in shape.leaves():
        # Two arrays with a dynamic dimension may have different sizes, which select does not allow.
        if not leaf.is_token and (not leaf.is_array or leaf.is_dynamic or leaf.is_buffer):
            return f"it gives {leaf.text}, which select cannot"
    return None


def select_between(
    predicate: Instruction, on_true: Instruction, on_false: Instruction
) -> Instruction:
    """A new value of the shape of both, leaf by leaf that of `on_true` if `predicate`, a scalar.

    Arrays are selected; tokens are joined. O(subshapes).
    """
    computation = predicate.parent
    masks: dict[Shape, Instruction] = {}

    def leaf(shape: Shape, choices: list[Instruction]) -> Instruction:
        if shape.is_token:
            return computation.add(Opcode.AFTER_ALL, shape, choices)
        return computation.add(Opcode.SELECT, shape, [mask(shape), *choices])

    def mask(shape: Shape) -> Instruction:
        if shape.is_scalar:
            return predicate
        layout = layout_in_order(shape.layout.minor_to_major)
        wanted = array_shape("pred", shape.dimensions, layout=layout)
        if wanted not in masks:
            masks[wanted] = computation.add(
                Opcode.BROADCAST, wanted, [predicate], attributes={"dimensions": "{}"}
            )
        return masks[wanted]

    # Tuples before their elements, so that backwards all elements are there to be packed.
    pairs = [(on_true, on_false)]
    first_child: list[int] = []
    for pair in pairs:
        first_child.append(len(pairs))
        count = len(pair[0].shape.elements)
        pairs += [(element(pair[0], i), element(pair[1], i)) for i in range(count)]
    values: list[Instruction] = []
    for (yes, no), start in zip(reversed(pairs), reversed(first_child), strict=True):
        shape = yes.shape
        if not shape.is_tuple:
            values.append(leaf(shape, [yes, no]))
            continue
        end = len(pairs) - 1 - start
        elements = [values[end - i] for i in range(len(shape.elements))]
        values.append(make_tuple(computation, elements))
    return values[-1]
