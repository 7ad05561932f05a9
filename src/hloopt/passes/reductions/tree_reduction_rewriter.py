"""Reduce in two steps: windows first, then what they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import Window
from hloopt.ir.attributes.values.windows import WindowDimension
from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.reductions.repeated_init import may_be_repeated
from hloopt.passes.rewriting.rules import EDITED, Match, Missed, Result, RulePass, op, rule
from hloopt.passes.rewriting.rules.build import format_window


@rule(op("reduce", "x", "init"), floats="finite", moves_control=True)
def reduce_windows_first(match: Match) -> Result:
    """reduce(x) -> reduce(reduce-window(x)), with windows of limited size."""
    root, x, init, most = match.root, match.x, match.init, match.options.reduce_window_size
    if not root.shape.is_array:
        return None
    reduced = dimensions_of(root)
    sizes = x.shape.dimensions
    if all(sizes[d] <= most for d in reduced):
        return None
    wanted = match.options.filter
    if wanted is not None and not wanted(root):
        return Missed("filter leaves it out")
    if not may_be_repeated(root.called[0], init):
        return Missed(f"%{init.name} would be combined with each window")
    rows = [
        _same(size, most) if d in reduced else WindowDimension() for d, size in enumerate(sizes)
    ]
    windows = match.build.make(
        "reduce-window", x, init, called=root.called,
        attributes={"window": format_window(Window(tuple(rows)))},
    )  # fmt: skip
    root.replace_operand(0, windows)
    return EDITED


@register(
    "tree-reduction-rewriter",
    preserves="rounding",
    xla=XlaPass(
        "TreeReductionRewriter", "xla/hlo/transforms/simplifiers/tree_reduction_rewriter.h"
    ),
)
class TreeReductionRewriter(RulePass):
    """Reduce long dimensions in two steps, which rounds less than one long sum.

    A reduce of one operand with a reduced dimension larger than `reduce_window_size` takes what a
    reduce-window gives, whose windows lie side by side in these dimensions, padded alike on both
    sides. One level per run. The initial value has to be one that may be combined with each
    window: 0 for a sum, any for a maximum; others stay, other than in XLA. Linear in the number of
    instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        reduce_window_size: int = option(32, "the largest window in each dimension")
        filter: Callable[[Instruction], bool] | None = option(None, "which reduces may change")

    options: Options
    rules = (reduce_windows_first,)
    max_sweeps = 1


def _same(size: int, most: int) -> WindowDimension:
    """Windows side by side that cover a dimension, with padding shared by both ends."""
    window = max(min(size, most), 1)
    padding = max(-(-size // window) * window - size, 0)
    return WindowDimension(window, window, padding // 2, padding - padding // 2)
