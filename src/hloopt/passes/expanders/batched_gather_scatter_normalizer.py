"""Write batching dimensions of gathers and scatters as further indices."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.expanders.index_loops import holding
from hloopt.passes.expanders.indices import ints, reshaped, resized, set_ints, vector_dimension
from hloopt.passes.rewriting.rules import EDITED, Match, Missed, Result, RulePass, op, rule
from hloopt.passes.simplification.algsimp.shapes import is_sorted

_GATHER = ("operand_batching_dims", "start_indices_batching_dims", "start_index_map",
           "collapsed_slice_dims")  # fmt: skip
_SCATTER = ("input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims",
            "inserted_window_dims")  # fmt: skip


@rule(op("gather"), moves_control=True)
def normalize_gather(match: Match) -> Result:
    """gather(x, i) with batching dimensions -> gather(x, concatenate(iotas, i))."""
    return _normalize(match, 1, _GATHER)


@rule(op("scatter"), moves_control=True)
def normalize_scatter(match: Match) -> Result:
    """scatter(x, i, u) with batching dimensions -> scatter(x, concatenate(iotas, i), u)."""
    return _normalize(match, len(match.root.operands) // 2, _SCATTER)


def _normalize(match: Match, number: int, names: tuple[str, str, str, str]) -> Result:
    """Edit a gather or scatter whose operand `number` has the indices."""
    root = match.root
    batching, of_indices, indexed, dropped = (ints(root, name) for name in names)
    if not batching:
        return None
    if set(batching) & set(indexed):
        return Missed("a batching dimension of it has an index as well")
    vector = vector_dimension(root)
    indices = _with_iotas(match, root.operands[number], vector, of_indices)
    new_map = (*batching, *indexed)
    root.replace_operand(number, indices)
    set_ints(root, {names[2]: new_map, names[3]: sorted((*batching, *dropped))})
    for name in names[:2]:
        root.set_attribute(name, None)
    if not (is_sorted(of_indices) and is_sorted(new_map)):
        root.set_attribute("indices_are_sorted", None)
    return EDITED


def _with_iotas(
    match: Match, indices: Instruction, vector: int, batching: tuple[int, ...]
) -> Instruction:
    """Indices that begin with their position in each batching dimension."""
    build = match.build
    if vector == indices.shape.rank:
        indices = reshaped(build, indices, (*indices.shape.dimensions, 1))
    sizes = list(indices.shape.dimensions)
    indices = holding(build, indices, max(sizes[d] for d in batching))
    sizes[vector] = 1
    iotas = [build.iota(resized(indices.shape, sizes), d) for d in batching]
    sizes[vector] = len(iotas) + indices.shape.dimensions[vector]
    return build.concatenate([*iotas, indices], vector, resized(indices.shape, sizes))


@register(
    "batched-gather-scatter-normalizer",
    preserves="bits",
    xla=XlaPass(
        "BatchedGatherScatterNormalizer", "xla/service/batched_gather_scatter_normalizer.h"
    ),
)
class BatchedGatherScatterNormalizer(RulePass):
    """Let gathers and scatters index their batching dimensions: indices get iotas in front.

    The dimensions become collapsed, or inserted, ones. Indices of a type that does not hold the
    size of a batching dimension are converted to s32, or s64. They count as sorted only where they
    did and the dimensions are in order. Gathers whose batching dimensions are indexed stay. Linear
    in the number of instructions.
    """

    rules = (normalize_gather, normalize_scatter)
    max_sweeps = 1
