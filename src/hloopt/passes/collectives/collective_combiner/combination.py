"""Making one collective of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hloopt.ir.attributes.frontend_attributes import frontend_attributes
from hloopt.ir.attributes.values import (
    OpMetadata,
    format_frontend_attributes,
    format_metadata,
    parse_ints,
    parse_metadata,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.ir.tuples import read_element
from hloopt.passes.rewriting.replace import attributes_for_another_value, replace_instruction


def combine(members: Sequence[Instruction]) -> Instruction:
    """Replace collectives with one operand each by elements of one with all their operands.

    They agree on all but operands, shapes and dimensions, and do not depend on each other.
    Where their dimensions differ, the combined one works on the most frequent, and bitcasts swap
    it with theirs: the layouts follow, so that nothing moves in memory. O(members + their uses).
    """
    first = members[0]
    computation = first.parent
    dimension = _common_dimension(members)
    operands, shapes = [], []
    for member in members:
        operand, shape = member.operands[0], member.shape
        own = _dimension(member)
        if own != dimension:
            swapped = _swapped(operand.shape, own, dimension)
            operand = computation.add(Opcode.BITCAST, swapped, [operand])
            shape = _swapped(shape, own, dimension)
        operands.append(operand)
        shapes.append(shape)
    attributes = attributes_for_another_value(first)
    if "dimensions" in attributes:
        attributes["dimensions"] = f"{{{dimension}}}"
    attributes |= _merged_annotations(members)
    combined = computation.add(
        first.opcode, tuple_shape(shapes), operands, attributes=attributes, called=first.called
    )
    for index, (member, shape) in enumerate(zip(members, shapes, strict=True)):
        element = read_element(combined, index)
        if shape is not member.shape:
            element = computation.add(Opcode.BITCAST, member.shape, [element])
        replace_instruction(member, element)
    return combined


def _dimension(collective: Instruction) -> int:
    """The dimension that a collective gathers or scatters; 0 for an all-reduce, which has none."""
    return parse_ints(collective.attributes.get("dimensions", "{0}"))[0]


def _common_dimension(members: Sequence[Instruction]) -> int:
    """The most frequent dimension of the members, the lowest of equally frequent ones.

    0 where some member does not have that many dimensions.
    """
    found = Counter(map(_dimension, members))
    dimension = min(found, key=lambda d: (-found[d], d))
    return dimension if all(dimension < member.shape.rank for member in members) else 0


def _swapped(shape: Shape, a: int, b: int) -> Shape:
    """The array with two dimensions swapped, and the same place in memory for each element."""
    swap = {a: b, b: a}
    order = [swap.get(d, d) for d in range(shape.rank)]
    minor_to_major = tuple(order[d] for d in shape.layout.minor_to_major)
    return array_shape(
        shape.type_name,
        tuple(shape.dimensions[d] for d in order),
        tuple(shape.dynamic[d] for d in order),
        shape.layout._replace(minor_to_major=minor_to_major),
        shape.is_buffer,
    )


def _merged_annotations(members: Sequence[Instruction]) -> dict[str, str]:
    """The annotations of the combined collective: those of its first member are not enough."""
    merged = {}
    if metadata := _merged_metadata(members):
        merged["metadata"] = metadata
    if notes := _merged_notes(map(frontend_attributes, members)):
        merged["frontend_attributes"] = format_frontend_attributes(notes)
    shardings = [member.attributes.get("sharding") for member in members]
    if any(shardings):
        merged["sharding"] = f"{{{', '.join(sharding or _NONE for sharding in shardings)}}}"
    return merged


_NONE = "{replicated}"
"""In a tuple of shardings, as XLA has it: for an element without one."""


def _merged_notes(notes: Iterable[dict[str, str]]) -> dict[str, str]:
    """Frontend attributes of all, the different values of one sorted and separated by commas."""
    values: dict[str, set[str]] = {}
    for note in notes:
        for key, value in note.items():
            values.setdefault(key, set()).add(value)
    return {key: ",".join(sorted(found)) for key, found in values.items()}


def _merged_metadata(members: Sequence[Instruction]) -> str | None:
    """The names of all members as `common/path/(a:b)`, and where their sources are."""
    found = [parse_metadata(member.attributes.get("metadata", "{}")) for member in members]
    sources = [f"{m.source_file}:{m.source_line}" for m in found if m.source_file]
    return format_metadata(
        OpMetadata(
            op_type=found[0].op_type,
            op_name=_merged_names([m.op_name for m in found if m.op_name]),
            source_file=",".join(sources),
        )
    )


def _merged_names(names: Sequence[str]) -> str:
    if len(set(names)) < 2:
        return names[0] if names else ""
    paths = [name.split("/") for name in names]
    shared = 0
    last = min(map(len, paths)) - 1  # of the shortest path, which keeps at least one name
    while shared < last and len({path[shared] for path in paths}) == 1:
        shared += 1
    rests = ":".join("/".join(path[shared:]) for path in paths)
    return "/".join([*paths[0][:shared], f"({rests})"])
