"""Find top-k in sorts of which only the first elements are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from hloopt.ir.attributes.typed import dimensions_of, slices_of
from hloopt.ir.attributes.values import Slice
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import array_shape, tuple_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.expanders.descending_order import is_descending
from hloopt.passes.rewriting.replace import inherit, replace_instruction
from hloopt.passes.rewriting.rules import EDITED, Builder, Match, Missed, Result, RulePass, op, rule


@rule(op("sort"), floats="finite")
def first_of_sorted(match: Match) -> Result:
    """slice(sort(x, iota)) -> TopK(x), along one dimension, by descending values."""
    sort, build = match.root, match.build
    (dimension,) = dimensions_of(sort)
    slices = _slices(sort)
    if slices is None:
        return None
    if reason := _why_not(sort, dimension):
        return Missed(reason)
    found = {_first(piece, dimension) for pieces in slices for piece in pieces}
    if None in found or len(found) != 1:
        return Missed("not just its first elements, and as many of them, are read")
    wanted = match.options.is_profitable_to_convert
    if wanted is not None and not wanted(sort):
        return Missed("is_profitable_to_convert leaves it out")
    (k,) = found
    assert k is not None
    results = _topk(build, sort, dimension, k)
    for pieces, result in zip(slices, results, strict=False):
        for piece in pieces:
            match.touched += [o for o in piece.operands if o is not sort]
            replace_instruction(piece, result)
    return EDITED


@register(
    "topk-rewriter",
    preserves="finite",
    xla=XlaPass("TopkRewriter", "xla/service/topk_rewriter.h"),
)
class TopkRewriter(RulePass):
    """Replace sorts of which only the first k elements are read by custom calls `TopK`.

    The sort is by descending values, in the total order or, where NaN does not count, by a plain
    comparison; it is stable, or sorts positions along, an s32 iota. All that reads it are slices of
    its first k elements. The custom call takes one or two dimensions, the sorted one last: the
    operand is transposed and reshaped for that. `topk-decomposer` does the opposite. Linear in the
    number of instructions and the size of comparators.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        is_profitable_to_convert: Callable[[Instruction], bool] | None = option(
            None, "which sorts are replaced"
        )

    options: Options
    rules = (first_of_sorted,)
    max_sweeps = 1


def _why_not(sort: Instruction, dimension: int) -> str | None:
    if len(sort.operands) > 2:
        return "it sorts more along than positions"
    for iota in sort.operands[1:]:
        is_iota = iota.opcode is Opcode.IOTA and iota.shape.type_name == "s32"
        if not is_iota or iota.attributes["iota_dimension"] != str(dimension):
            return f"%{iota.name}, which it sorts along, is no s32 iota of its dimension"
    if len(sort.operands) == 1 and sort.attributes.get("is_stable") != "true":
        return "it is not stable, and sorts no positions along"
    if not is_descending(sort.called[0]):
        return f"%{sort.called[0].name} is not known to order by descending values"
    return None


def _slices(sort: Instruction) -> list[list[Instruction]] | None:
    """The slices of each result of a sort; None where something else reads it, or nothing does."""
    if sort.is_root or not sort.users:
        return None
    results: list[list[Instruction]] = [[] for _ in sort.operands]
    if sort.shape.is_array:
        results[0] = list(sort.users)
    for user in sort.users if sort.shape.is_tuple else ():
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT or user.is_root:
            return None
        results[user.tuple_index] += user.users
    pieces = [piece for found in results for piece in found]
    are_slices = all(piece.opcode is Opcode.SLICE for piece in pieces)
    return results if pieces and are_slices else None


def _first(piece: Instruction, dimension: int) -> int | None:
    """How many elements a slice takes from the start of a dimension, and all of the others."""
    sizes = piece.operands[0].shape.dimensions
    for number, (part, size) in enumerate(zip(slices_of(piece), sizes, strict=True)):
        limit = part.limit if number == dimension else size
        if part != Slice(0, limit, 1):
            return None
    return slices_of(piece)[dimension].limit


def _topk(build: Builder, sort: Instruction, dimension: int, k: int) -> list[Instruction]:
    """Values and positions of the first k elements, as the slices of the sort give them."""
    x = sort.operands[0]
    rank = x.shape.rank
    order = [*[d for d in range(rank) if d != dimension], dimension]
    moved = x if dimension == rank - 1 else build.transpose(x, order)
    *outer, size = moved.shape.dimensions
    flat = moved if rank <= 2 else build.reshape(moved, (prod(outer), size))
    sizes = (*flat.shape.dimensions[:-1], k)
    shapes = [array_shape(kind, sizes) for kind in (x.shape.type_name, "s32")]
    call = build.make(
        "custom-call", flat, shape=tuple_shape(shapes), called=sort.called,
        attributes={"custom_call_target": '"TopK"'},
    )  # fmt: skip
    inherit(sort, call)
    results = []
    for number, shape in enumerate(shapes):
        result = build.make(
            "get-tuple-element", call, shape=shape, attributes={"index": str(number)}
        )
        inherit(sort, result)
        if rank > 2:
            result = build.reshape(result, (*outer, k))
        if dimension != rank - 1:
            result = build.transpose(result, [order.index(d) for d in range(rank)])
        results.append(result)
    return results
