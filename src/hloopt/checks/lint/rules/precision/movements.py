"""The rule about kernels that only change a layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import NamedTuple

from hloopt.checks.lint.costs import runs_text, work_bytes
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.needs import not_scheduled
from hloopt.checks.lint.readers import behind_bitcasts, readers
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import Alias, parse_aliasing, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.options import Bytes, option

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCopyOptions(RuleOptions):
    """Options of `layout-copy`."""

    size: Bytes = option(_MIB, "the least bytes moved in all runs that are worth a finding")


class _Movement(NamedTuple):
    """An order of blocks of elements: an array of `sizes`, major first, that is transposed."""

    sizes: tuple[int, ...]
    """Of the blocks of the operand."""
    order: tuple[int, ...]
    """The blocks of the operand, as they follow each other in the result."""


@rule("HLL303", "layout-copy", not_scheduled, options=LayoutCopyOptions)
def layout_copy(view: View, options: LayoutCopyOptions) -> Iterator[Finding]:
    """Kernels that only move elements for a product, an argument or a result. O(instructions)."""
    for computation in view.subject.module.computations.values():
        if view.facts.is_in_fusion(computation):
            continue
        for instruction in computation.instructions:
            movement = _movement_of(instruction)
            if movement is None:
                continue
            moved = work_bytes(view, instruction)
            reason, related = _why_needless(instruction, movement)
            if related is not None and moved >= options.size:
                yield Finding(
                    f"%{instruction.name} only changes the order of dimensions in memory: {reason}"
                    f"{runs_text(view, instruction)}",
                    instruction,
                    Impact(moved=moved),
                    related=(related,),
                )


def _why_needless(instruction: Instruction, movement: _Movement) -> tuple[str, Instruction | None]:
    """The reason why a movement could be left out, and for whom it is made; None if it could
    not."""
    entry = instruction.parent.module.entry
    source = behind_bitcasts(instruction.operands[0])
    read_by = list(readers(instruction))
    is_alone = list(readers(source)) == [instruction]
    if source.opcode is Opcode.PARAMETER and source.parent is entry:
        if is_alone and not _is_aliased_argument(source):
            return f"argument %{source.name} could have this layout", source
        return "", None
    if _is_only_result(instruction, read_by):
        is_result = not _is_aliased_result(entry.root, instruction)
        return ("the result could have the layout before", entry.root) if is_result else ("", None)
    if read_by and all(_takes(reader, instruction, movement) for reader in read_by):
        return f"%{read_by[0].name} could read its operand as it lies", read_by[0]
    if is_alone and _writes(source, movement):
        return f"%{source.name} could write its result in this order", source
    return "", None


def _is_only_result(value: Instruction, read_by: Sequence[Instruction]) -> bool:
    """Whether a value is a result of the program, and nothing else reads it."""
    if value.parent is not value.parent.module.entry:
        return False
    if not read_by:
        return value.is_root
    return all(r.is_root and r.opcode in (Opcode.TUPLE, Opcode.BITCAST) for r in read_by)


def _is_aliased_argument(parameter: Instruction) -> bool:
    """Whether an output lies where an argument does: both have one layout."""
    aliases = _aliases(parameter)
    return any(alias.parameter == parameter.parameter_number for alias in aliases)


def _is_aliased_result(root: Instruction, value: Instruction) -> bool:
    """Whether a result, in the root of the entry, lies where an argument does."""
    numbers = [n for n, part in enumerate(root.operands) if behind_bitcasts(part) is value]
    outputs = {(n,) for n in numbers} if root.opcode is Opcode.TUPLE else {()}
    return any(alias.output_index in outputs for alias in _aliases(root))


def _aliases(instruction: Instruction) -> Sequence[Alias]:
    attributes = instruction.parent.module.attributes
    return parse_aliasing(attributes.get("input_output_alias", "{}"))


# -- what moves -----------------------------------------------------------------------------------

_STILL = frozenset((Opcode.PARAMETER, Opcode.BITCAST))


def _movement_of(instruction: Instruction) -> _Movement | None:
    """The movement that a transpose, a copy, or a fusion of one is; None for others."""
    moving = instruction
    if instruction.opcode is Opcode.FUSION:
        body = instruction.called[0].instructions
        movers = [i for i in body if i.opcode not in _STILL]
        if len(movers) != 1 or len(instruction.operands) != 1:
            return None
        moving = movers[0]
    if moving.opcode not in (Opcode.TRANSPOSE, Opcode.COPY) or not moving.shape.is_array:
        return None
    operand, result = moving.operands[0].shape, moving.shape
    if operand.is_dynamic or operand.layout.memory_space != result.layout.memory_space:
        return None
    dimensions = dimensions_of(moving) if moving.opcode is Opcode.TRANSPOSE else range(result.rank)
    return _movement(operand, result, dimensions)


def _movement(operand: Shape, result: Shape, dimensions: Sequence[int]) -> _Movement | None:
    """The movement of elements in memory: dimension i of the result is `dimensions[i]`.

    Dimensions of size 1 do not count, and such that stay side by side are one block.
    """
    places = {d: place for place, d in enumerate(_major_to_minor(operand))}
    order = [places[dimensions[d]] for d in _major_to_minor(result) if result.dimensions[d] > 1]
    sizes = [operand.dimensions[d] for d in _major_to_minor(operand)]
    blocks: list[list[int]] = []
    rank = {place: number for number, place in enumerate(sorted(order))}
    for place in order:
        if blocks and rank[place] == rank[blocks[-1][-1]] + 1:
            blocks[-1].append(place)
        else:
            blocks.append([place])
    if len(blocks) < 2:
        return None
    ranked = sorted(blocks)
    return _Movement(
        tuple(prod(sizes[place] for place in block) for block in ranked),
        tuple(ranked.index(block) for block in blocks),
    )


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    return tuple(reversed(shape.layout.minor_to_major))


# -- products -------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Dimensions side by side of one role in a product."""

    role: str
    """`batch`, `contracted` or `free`; of results `lhs` and `rhs` in place of the last two."""
    size: int


def _takes(product: Instruction, moved: Instruction, movement: _Movement) -> bool:
    """Whether a product can read its operand without a movement, wherever it reads that."""
    dot = _dot_in(product)
    if dot is None:
        return False
    order = [movement.sizes[block] for block in movement.order]
    places = [movement.order.index(block) for block in range(len(order))]
    numbers = {n for n, part in enumerate(product.operands) if behind_bitcasts(part) is moved}
    reads = 0
    for side, operand in zip(("lhs", "rhs"), dot.operands, strict=True):
        value = behind_bitcasts(operand)
        if dot is product:
            is_read = value is moved
        else:
            is_read = value.opcode is Opcode.PARAMETER and value.parameter_number in numbers
        if is_read and not _is_matrix(_operand_groups(dot, side), order, places):
            return False
        reads += is_read
    return reads == _uses_of_operands(product, dot, numbers)


def _uses_of_operands(product: Instruction, dot: Instruction, numbers: set[int]) -> int:
    """The number of times that anything in a product uses some of its operands."""
    if dot is product:
        return len(numbers)
    parameters = [product.called[0].parameters[number] for number in numbers]
    uses = (use for p in parameters for use in readers(p))
    return sum(sum(behind_bitcasts(o) in parameters for o in use.operands) for use in uses)


def _writes(product: Instruction, movement: _Movement) -> bool:
    """Whether a product can write its result in the order after a movement."""
    dot = _dot_in(product)
    if dot is None or not _is_written_by(product, dot):
        return False
    return _is_matrix(_result_groups(dot), list(movement.sizes), list(movement.order))


def _is_written_by(product: Instruction, dot: Instruction) -> bool:
    """Whether what a product writes are the elements of its dot, in their order."""
    value = product if product is dot else product.called[0].root
    while value.opcode in (Opcode.BITCAST, Opcode.CONVERT):
        value = value.operands[0]
    return value is dot


def _dot_in(product: Instruction) -> Instruction | None:
    """The one dot that an instruction is, or that it fuses."""
    if product.opcode is Opcode.DOT:
        return product
    if product.opcode is not Opcode.FUSION:
        return None
    dots = [i for i in product.called[0].instructions if i.opcode is Opcode.DOT]
    return dots[0] if len(dots) == 1 else None


def _operand_groups(dot: Instruction, side: str) -> list[_Group]:
    """The roles of the dimensions of an operand as it lies in memory, major first."""
    roles = dict.fromkeys(_numbers(dot, f"{side}_batch_dims"), "batch")
    roles |= dict.fromkeys(_numbers(dot, f"{side}_contracting_dims"), "contracted")
    return _grouped(dot.operands[side == "rhs"].shape, roles, "free")


def _result_groups(dot: Instruction) -> list[_Group]:
    batch = len(_numbers(dot, "lhs_batch_dims"))
    taken = batch + len(_numbers(dot, "lhs_contracting_dims"))
    of_lhs = batch + dot.operands[0].shape.rank - taken
    roles = dict.fromkeys(range(batch), "batch") | dict.fromkeys(range(batch, of_lhs), "lhs")
    return _grouped(dot.shape, roles, "rhs")


def _numbers(dot: Instruction, name: str) -> tuple[int, ...]:
    return tuple(parse_ints(dot.attributes.get(name, "{}")))


def _grouped(shape: Shape, roles: Mapping[int, str], other: str) -> list[_Group]:
    return [
        _Group(roles.get(d, other), shape.dimensions[d])
        for d in _major_to_minor(shape)
        if shape.dimensions[d] > 1
    ]


def _is_matrix(groups: Sequence[_Group], sizes: Sequence[int], order: Sequence[int]) -> bool:
    """Whether groups lie as a product takes them after blocks of `sizes` come in an `order`.

    Each role has to be one run of elements, its dimensions in the order they had, and the batch
    must not vary fastest: that is what the products of libraries take.
    """
    pieces = _pieces(groups, sizes)
    if pieces is None:
        return False
    moved = [piece for block in order for piece in pieces[block]]
    roles = [groups[number].role for number, _ in moved]
    runs = [role for role, after in pairwise((*roles, "")) if role != after]
    if len(set(runs)) != len(runs) or runs[-1:] == ["batch"]:
        return False
    return all(a < b for (a, b), one, other in _neighbours(moved, roles) if one == other)


def _neighbours(
    moved: Sequence[tuple[int, int]], roles: Sequence[str]
) -> Iterable[tuple[tuple[tuple[int, int], tuple[int, int]], str, str]]:
    return zip(pairwise(moved), roles, roles[1:], strict=False)


def _pieces(groups: Sequence[_Group], sizes: Sequence[int]) -> list[list[tuple[int, int]]] | None:
    """By block the parts of groups in it: the number of the group, and of the part within.

    None where a block ends within a dimension that does not divide so.
    """
    ends = list(accumulate(sizes, mul))
    bounds = list(accumulate((group.size for group in groups), mul))
    if not bounds or not ends or ends[-1] != bounds[-1]:
        return None
    cuts = sorted({*ends, *bounds})
    if any(after % before for before, after in pairwise(cuts)):
        return None
    found: list[list[tuple[int, int]]] = [[] for _ in sizes]
    for number, cut in enumerate(cuts):
        block = next(i for i, end in enumerate(ends) if cut <= end)
        group = next(i for i, end in enumerate(bounds) if cut <= end)
        found[block].append((group, number))
    return found
