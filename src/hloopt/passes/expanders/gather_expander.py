"""Write gathers as loops over their indices, or as broadcasts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Literal

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.expanders.index_loops import (
    MOST_TRIPS,
    BatchPositions,
    counted_loop,
    holding,
    index_vector,
    operand_index,
    row_start,
    scalars,
    vector_of,
    vector_rows,
)
from hloopt.passes.expanders.indices import (
    index_sizes,
    ints,
    places_of_windows,
    resized,
    transposed,
    vector_dimension,
)
from hloopt.passes.rewriting.rules import Builder, Match, Missed, Result, RulePass, op, rule


@rule(op("gather", "x", "indices"), moves_control=True)
def expand(match: Match) -> Result:
    """gather(x, i) -> a loop of dynamic-slices of x, or broadcast(reshape(x))."""
    root, x, indices = match.root, match.x, match.indices
    if not root.shape.element_count():
        return Missed("its result is empty")
    is_whole = ints(root, "slice_sizes") == x.shape.dimensions
    count = prod(index_sizes(indices.shape, vector_dimension(root)))
    if match.options.mode == "eliminate_simple_gathers" and not is_whole and count != 1:
        return Missed(
            f"it has {counted(count, 'index', 'indices')}, and the mode is eliminate_simple_gathers"
        )
    if is_whole:
        return _broadcast(match.build, root)
    if set(ints(root, "operand_batching_dims")) & set(ints(root, "start_index_map")):
        return Missed("a batching dimension of it has an index as well")
    if count > MOST_TRIPS:
        raise PassRefused(
            f"more than {MOST_TRIPS} gather indices are not supported: %{root.name} has {count}",
            span=root.parent.module.span_of(root),
        )
    return _loop(match.build, root, count)


def _dropped(gather: Instruction) -> set[int]:
    """The dimensions of the operand that the result does not have."""
    return {*ints(gather, "collapsed_slice_dims"), *ints(gather, "operand_batching_dims")}


def _broadcast(build: Builder, gather: Instruction) -> Instruction:
    """Broadcast the only window there is to every index."""
    x, dropped = gather.operands[0], _dropped(gather)
    kept = [size for d, size in enumerate(x.shape.dimensions) if d not in dropped]
    if 0 in x.shape.dimensions:
        return build.splat(0, gather.shape)
    window = build.reshape(x, resized(x.shape, kept))
    made = build.broadcast(window, ints(gather, "offset_dims"), gather.shape)
    if "metadata" in gather.attributes:
        window.set_attribute("metadata", gather.attributes["metadata"])
    return made


def _loop(build: Builder, gather: Instruction, count: int) -> Instruction:
    x, indices = gather.operands
    vector, sizes = vector_dimension(gather), ints(gather, "slice_sizes")
    dropped = _dropped(gather)
    kept = [size for d, size in enumerate(sizes) if d not in dropped]
    batching = ints(gather, "start_indices_batching_dims")
    positions = BatchPositions(
        indices.shape, vector, ints(gather, "operand_batching_dims"), batching
    )
    outer = index_sizes(indices.shape, vector)
    largest = max((indices.shape.dimensions[d] for d in batching), default=0)
    rows = _rows(build, holding(build, indices, largest), vector, count)
    start = build.splat(0, array_shape(x.shape.type_name, (count, *kept)))
    step = partial(_step, gather=gather, positions=positions, kept=kept)
    result = counted_loop(build, count, [x, rows, start], step, gather)[2]
    result = build.reshape(result, resized(x.shape, (*outer, *kept)))
    return transposed(build, result, places_of_windows(gather, len(outer), len(kept)))


def _rows(build: Builder, indices: Instruction, vector: int, count: int) -> Instruction:
    """The indices as [N, vector], or as [N] where the vector is implicit."""
    shape = indices.shape
    if vector == shape.rank:
        return build.reshape(indices, resized(shape, (count,)))
    return vector_rows(build, indices, vector, count)


def _step(
    build: Builder,
    counter: Instruction,
    state: list[Instruction],
    gather: Instruction,
    positions: BatchPositions,
    kept: list[int],
) -> list[Instruction]:
    """Put the window of one index into the result."""
    x, rows, result = state
    found = positions.make(build, counter, rows.shape.type_name)
    trip = vector_of(build, counter)
    where = operand_index(
        build,
        index_vector(build, trip, rows),
        ints(gather, "start_index_map"),
        found,
        x.shape.rank,
    )
    window = build.dynamic_slice(x, scalars(build, where), ints(gather, "slice_sizes"))
    window = build.reshape(build.reshape(window, kept), (1, *kept))
    start = scalars(build, row_start(build, trip, result.shape.rank))
    return [x, rows, build.dynamic_update_slice(result, window, start)]


@register(
    "gather-expander",
    preserves="bits",
    xla=XlaPass("GatherExpander", "xla/service/gather_expander.h"),
)
class GatherExpander(RulePass):
    """Write gathers as while loops over their indices, or as broadcasts of the operand.

    Each trip slices one window out of the operand and puts it into a result of one row per index;
    afterwards rows become the dimensions that the indices had, and window dimensions move to their
    place. Where windows are as large as the operand, it is reshaped and broadcast. By default only
    gathers of one index, and these, are rewritten. Empty results stay. Linear in the number of
    instructions. Refuses more than 2147483647 indices.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        mode: Literal["eliminate_simple_gathers", "eliminate_all_gathers"] = option(
            "eliminate_simple_gathers", "gathers of one index or of all of the operand, or all"
        )

    options: Options
    rules = (expand,)
    max_sweeps = 1
