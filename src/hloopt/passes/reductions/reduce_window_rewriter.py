"""Scans that are written as windows as long as the array, in two levels."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.attributes.typed import window_of
from hloopt.ir.attributes.values import Window
from hloopt.ir.attributes.values.windows import WindowDimension
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.reductions.repeated_init import may_be_repeated
from hloopt.passes.reductions.two_level_scan import Scan, in_order, two_level_scan
from hloopt.passes.rewriting.rules import Match, Missed, Result, RulePass, op, rule
from hloopt.passes.rewriting.rules.build import format_window


@rule(op("reduce-window", "x", "init"), floats="rounding", moves_control=True)
def scan_in_two_levels(match: Match) -> Result:
    """A window of the full length, padded on one side, is a scan: by rows, then over rows."""
    root, x, init, length = match.root, match.x, match.init, match.options.base_length
    scan = _scan(match.root)
    if not length or scan is None or x.shape.dimensions[scan.dimension] <= length:
        return None
    if not may_be_repeated(root.called[0], init):
        return Missed(f"%{init.name} would be combined with each row")
    return two_level_scan(match.build, x, scan, length)


@rule(op("reduce-window"), moves_control=True)
def in_two_dimensions(match: Match) -> Result:
    """reduce-window(x…) -> reshape(reduce-window(reshape(x)…)), where arrays have one dimension."""
    root, build = match.root, match.build
    number = len(root.operands) // 2
    arrays, inits = root.operands[:number], root.operands[number:]
    if arrays[0].shape.rank != 1:
        return None
    columns = [build.reshape(array, _column(array.shape)) for array in arrays]
    if root.shape.is_array:
        made = build.clone(root, [*columns, *inits], _column(root.shape))
    else:
        shape = tuple_shape([_column(element) for element in root.shape.elements])
        made = build.clone(root, [*columns, *inits], shape)
    (row,) = window_of(root).dimensions
    made.set_attribute("window", format_window(Window((row, WindowDimension()))))
    if root.shape.is_array:
        return build.reshape(made, root.shape)
    results = []
    for place, element in enumerate(root.shape.elements):
        column = build.make(
            "get-tuple-element", made,
            shape=made.shape.elements[place], attributes={"index": str(place)},
        )  # fmt: skip
        results.append(build.reshape(column, element))
    return build.make("tuple", *results)


@register(
    "reduce-window-rewriter",
    preserves="rounding",
    xla=XlaPass("ReduceWindowRewriter", "xla/hlo/transforms/simplifiers/reduce_window_rewriter.h"),
)
class ReduceWindowRewriter(RulePass):
    """Compute scans that are written as reduce-windows in two levels.

    Such a reduce-window has one window dimension as long as the array, longer than `base_length`,
    padded on one side only. Its elements are put into rows of `base_length`, rows are scanned, and
    combined with the scan of all rows before them, which may be done in two levels in its turn.
    The initial value has to be one that may be combined with each row: 0 for a sum, any for a
    maximum; others stay, other than in XLA, and so do scans of several arrays. All other windows
    over arrays of one dimension get a second one of size 1. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        base_length: int = option(16, "the length of rows; 0: leave scans as they are")

    options: Options
    rules = (scan_in_two_levels, in_two_dimensions)


def _scan(root: Instruction) -> Scan | None:
    """The scan that a reduce-window of one array is."""
    x, init = root.operands
    rows = window_of(root).dimensions
    wide = [d for d, row in enumerate(rows) if row != WindowDimension()]
    if len(wide) != 1:
        return None
    (dimension,) = wide
    row, size = rows[dimension], x.shape.dimensions[dimension]
    if row != WindowDimension(row.size, 1, row.pad_low, row.pad_high) or row.size != size:
        return None
    padding = max(row.pad_low, row.pad_high)
    if min(row.pad_low, row.pad_high) or padding not in (size - 1, size):
        return None
    return Scan(
        dimension, root.called[0], init,
        is_reverse=row.pad_high > 0, is_exclusive=padding == size,
    )  # fmt: skip


def _column(shape: Shape) -> Shape:
    """A shape of one dimension with a second one of size 1, the major-most one of the layout."""
    return in_order(shape, (*shape.dimensions, 1), (0, 1))
