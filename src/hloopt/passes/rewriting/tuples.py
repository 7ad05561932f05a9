"""Values that become tuples, lose elements, or are tuples no more, with what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.attributes.annotations import origin, origin_elements
from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.attributes.values.strings import split_dictionaries
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import element
from hloopt.passes.rewriting.replace import inherit, replace_instruction

_SYNTHETIC = "{[synthetic_call]}"


def wrap(instruction: Instruction) -> Instruction:
    """Let an instruction give a tuple of what it gives; returns the element its users now read.

    The instruction may need another operand or root for that, which is left to the caller.
    O(users).
    """
    whole = tuple_shape((instruction.shape,))
    instruction.set_shape(whole)
    value = element(instruction, 0)
    inherit(instruction, value)
    if "sharding" in instruction.attributes:
        instruction.set_attribute("sharding", f"{{{instruction.attributes['sharding']}}}")
    if tree := _origin_tree(instruction):
        instruction.set_attribute("origin", f"{{({tree[1:-1]})}}")
    instruction.replace_all_uses_with(value)
    return value


def unwrap(instruction: Instruction) -> None:
    """Let an instruction give the only element of the tuple it gives, and all users read that.

    The users are get-tuple-elements whose control dependencies can move to it. O(their users).
    """
    instruction.set_shape(instruction.shape.elements[0])
    if shardings := leaf_shardings(instruction):
        instruction.set_attribute("sharding", shardings[0])
    if tree := _origin_tree(instruction):
        instruction.set_attribute("origin", f"{{{''.join(origin_elements(tree) or ())}}}")
    for user in list(instruction.users):
        replace_instruction(user, instruction)


def keep_elements(instruction: Instruction, kept: Sequence[int]) -> None:
    """Let an instruction give a tuple of some elements of what it gives.

    Users are get-tuple-elements of these, and get their new indices. O(elements + users).
    """
    leaves = _leaf_numbers(instruction, kept)
    _keep_leaves(instruction, "sharding", leaf_shardings(instruction), leaves)
    _keep_leaves(instruction, "parameter_replication", _replication(instruction), leaves)
    if tree := _origin_tree(instruction):
        values = origin_elements(tree) or ()
        fits = len(values) == len(instruction.shape.elements)
        chosen = ", ".join(values[i] for i in kept) if fits else ""
        instruction.set_attribute("origin", f"{{({chosen})}}" if chosen else None)
    instruction.set_shape(tuple_shape(instruction.shape.elements[i] for i in kept))
    numbers = {old: str(new) for new, old in enumerate(kept)}
    for user in instruction.users:
        user.set_attribute("index", numbers[user.tuple_index])


def _origin_tree(instruction: Instruction) -> str | None:
    """The original value; None where there is none, or one that does not follow the shape."""
    tree = origin(instruction.attributes.get("origin", _SYNTHETIC))
    return None if tree == _SYNTHETIC else tree


def _leaf_numbers(instruction: Instruction, kept: Sequence[int]) -> list[int]:
    """The numbers of the leaves of some elements, among all leaves of a tuple."""
    ranges: list[range] = []
    start = 0
    for shape in instruction.shape.elements:
        ranges.append(range(start, start + len(shape.leaves())))
        start = ranges[-1].stop
    return [leaf for i in kept for leaf in ranges[i]]


def _keep_leaves(
    instruction: Instruction, name: str, parts: list[str] | None, leaves: Sequence[int]
) -> None:
    if parts is not None:
        chosen = ",".join(parts[leaf] for leaf in leaves)
        instruction.set_attribute(name, f"{{{chosen}}}" if chosen else None)


def leaf_shardings(instruction: Instruction) -> list[str] | None:
    """The shardings of a tuple's leaves; None where it has none, or one for all of them."""
    return split_dictionaries(canonical_sharding(instruction.attributes.get("sharding", "{}")))


def _replication(instruction: Instruction) -> list[str] | None:
    text = instruction.attributes.get("parameter_replication")
    return None if text is None else text.strip("{} ").split(",")
