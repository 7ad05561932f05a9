"""Rules for reduce-window."""

from __future__ import annotations

from hloopt.ir.attributes.typed import padding_of, window_of
from hloopt.ir.attributes.values import PaddingDimension, Window, WindowDimension
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import array_shape
from hloopt.passes.rewriting.rules.build import format_window
from hloopt.passes.rewriting.rules.constants import converted, splat_of, splat_value
from hloopt.passes.rewriting.rules.pattern import op, scalar_constant
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.reductions.reducers import (
    is_neutral,
    may_repeat,
    operation_of,
)
from hloopt.passes.simplification.algsimp.signatures import is_rank_0

_SEEN_THROUGH = (Opcode.RESHAPE, Opcode.BITCAST, Opcode.CONVERT, Opcode.SLICE, Opcode.COPY)
_LEAST_SHARE = 10


@rule(op("reduce-window", "x", "init"), floats="finite", signature=is_rank_0)
def window_of_scalar(m: AlgsimpMatch) -> Result:
    """A reduce-window of a rank-0 value, from a value that its reducer ignores → that."""
    if m.root.shape.is_tuple:
        return None
    if not is_neutral(m.root.called[0], m.init):
        return Missed("its reducer may not ignore the initial value")
    return m.if_compatible(m.x)


@rule(op("reduce-window", "x", scalar_constant(0).named("init")), floats="rounding")
def running_sum_of_constant(m: AlgsimpMatch) -> Result:
    """A running sum, from 0, of one constant C everywhere → broadcast(C)·convert(iota + 1)."""
    shape = m.root.shape
    if shape.is_tuple or operation_of(m.root.called[0]) is not Opcode.ADD:
        return None
    dimension = _running(m)
    if dimension is None or shape.type_name == "pred":
        return None
    value = _constant_above(m, m.x)
    if value is None:
        return None
    build = m.build
    wide = "s64" if shape.type_name == "s64" else "s32"
    counted = array_shape(wide, shape.dimensions, layout=shape.layout)
    places = build.make(
        "add", build.iota(counted, dimension), build.splat(1, counted), shape=counted
    )
    factor = build.convert(places, shape.type_name)
    return build.make("multiply", build.fill(value, shape), factor, shape=shape)


def _running(m: AlgsimpMatch) -> int | None:
    """The dimension of a running reduction from the front; None where the window is another."""
    found: int | None = None
    sizes = m.x.shape.dimensions
    for d, row in enumerate(window_of(m.root).dimensions):
        if row.stride != 1 or row.lhs_dilate != 1 or row.rhs_dilate != 1 or row.reversal:
            return None
        if row.size == 1 and not row.pad_low and not row.pad_high:
            continue
        if found is not None or row.size != sizes[d] or row.pad_high or row.pad_low != sizes[d] - 1:
            return None
        found = d
    return found


def _constant_above(m: AlgsimpMatch, x: Instruction) -> Instruction | None:
    """A rank-0 value that all elements of x have, if that is known to be a constant."""
    types: list[str] = []
    while x.opcode in _SEEN_THROUGH or x.opcode is Opcode.BROADCAST:
        below = x.operands[0]
        if x.opcode is Opcode.CONVERT:
            types.append(x.shape.type_name)
        elif below.shape.element_type is not x.shape.element_type:
            return None
        x = below
    found = splat_of(x) if x.opcode is Opcode.CONSTANT else None
    for type_name in reversed(types):
        found = None if found is None else converted(found, array_shape(type_name))
    return None if found is None else m.build.scalar(found, m.root.shape)


@rule(op("reduce-window", "x", "init"), floats="rounding")
def window_of_ones(m: AlgsimpMatch) -> Result:
    """A reduce-window by single elements → the operation on x and the initial value, padded where
    the window pads."""
    opcode = operation_of(m.root.called[0])
    if m.root.shape.is_tuple or opcode not in (Opcode.ADD, Opcode.MINIMUM, Opcode.MAXIMUM):
        return None
    rows = window_of(m.root).dimensions
    if any((r.size, r.stride, r.lhs_dilate, r.rhs_dilate, r.reversal) != (1, 1, 1, 1, 0)
           for r in rows):  # fmt: skip
        return None
    result = m.build.make(opcode, m.x, m.build.fill(m.init, m.x.shape), shape=m.x.shape)
    if any(r.pad_low or r.pad_high for r in rows):
        padding = [PaddingDimension(r.pad_low, r.pad_high) for r in rows]
        return m.build.pad(result, m.init, padding, m.root.shape)
    return result


@rule(op("reduce-window", "x", "init"), floats="rounding",
      option="enable_window_reduce_to_reduce_replacement")  # fmt: skip
def window_to_reduce(m: AlgsimpMatch) -> Result:
    """A reduce-window over whole dimensions → reshape(reduce)."""
    shape = m.root.shape
    if shape.is_tuple:
        return None
    removed: list[int] = []
    for d, row in enumerate(window_of(m.root).dimensions):
        if row != WindowDimension(row.size, reversal=row.reversal):
            return None
        if row.size == 1:
            continue
        if shape.dimensions[d] != 1:
            return None
        removed.append(d)
    if not removed:
        return None
    result = m.build.reduce(m.x, m.init, removed, m.root.called[0])
    return m.build.reshape(result, shape)


@rule(op("reduce-window", op(("pad", "convert")).named("operand"), "init"))
def fold_pad_into_window(m: AlgsimpMatch) -> Result:
    """reduce-window(pad(x)) → reduce-window(x) that pads itself, where the padding value is the
    initial value and may be combined any number of times: a window leaves out its own padding; also
    below a convert."""
    pad, is_converted = m.operand, m.operand.opcode is Opcode.CONVERT
    if is_converted:
        (pad,) = m.operand.operands
    if pad.opcode is not Opcode.PAD or m.root.shape.is_tuple:
        return None
    x, value = pad.operands
    if not _same_value(value, m.init, is_converted=is_converted):
        return Missed(f"%{value.name} is not known to be the initial value")
    if not may_repeat(m.root.called[0], value):
        return Missed(f"%{value.name} is combined once for each padded element")
    rows, padding = window_of(m.root).dimensions, padding_of(pad)
    if any(p.low < 0 or p.high < 0 for p in padding):
        return Missed(f"%{pad.name} has negative padding")
    if any(p.interior and r.lhs_dilate != 1 for p, r in zip(padding, rows, strict=True)):
        return Missed("there are interior padding and base dilation")
    if is_converted and not _is_worth(x, m.root, padding):
        return Missed(f"%{pad.name} adds too little")
    source = m.build.clone(m.operand, [x], x.shape.with_element_type(m.operand.shape.type_name)) \
        if is_converted else x  # fmt: skip
    spread = _centres(m, source, padding)
    if spread is not None:
        return spread
    new = [
        r._replace(
            pad_low=r.pad_low + p.low * r.lhs_dilate,
            pad_high=r.pad_high + p.high * r.lhs_dilate,
            lhs_dilate=r.lhs_dilate * (p.interior + 1),
        )
        for r, p in zip(rows, padding, strict=True)
    ]
    made = m.build.clone(m.root, [source, m.init], m.root.shape)
    made.set_attribute("window", format_window(Window(tuple(new))))
    return made


def _same_value(value: Instruction, init: Instruction, *, is_converted: bool) -> bool:
    if value is init:
        return True
    own, found, shape = splat_value(value), splat_value(init), init.shape
    if is_converted and init.opcode is Opcode.CONVERT:
        found = splat_value(init.operands[0])
        found = None if found is None else converted(found, shape)
    if is_converted and own is not None:
        own = converted(own, shape)
    return own is not None and own == found and str(own) == str(found)  # 0 is not -0


def _is_worth(x: Instruction, root: Instruction, padding: tuple[PaddingDimension, ...]) -> bool:
    """Whether a window along one dimension is padded by at least a tenth of that."""
    rows = window_of(root).dimensions
    wide = [d for d, row in enumerate(rows) if row.size != 1]
    if len(wide) != 1:
        return True
    (d,) = wide
    added = padding[d].low + padding[d].high
    return added * _LEAST_SHARE >= x.shape.dimensions[d]


def _centres(
    m: AlgsimpMatch, source: Instruction, padding: tuple[PaddingDimension, ...]
) -> Instruction | None:
    """The broadcast that a window is which always covers the one element of a padded dimension."""
    rows = window_of(m.root).dimensions
    if not is_neutral(m.root.called[0], m.init):
        return None
    spread: list[int] = []
    for d, (row, p) in enumerate(zip(rows, padding, strict=True)):
        if row != WindowDimension(row.size, reversal=row.reversal):
            return None
        if row.size == 1 and p == PaddingDimension():
            continue
        if source.shape.dimensions[d] != 1 or p.low != p.high or p.interior or row.size <= p.low:
            return None
        spread.append(d)
    if not spread:
        return None
    kept = [d for d in range(len(rows)) if d not in spread]
    small = m.build.reshape(source, [source.shape.dimensions[d] for d in kept])
    return m.build.broadcast(small, kept, m.root.shape)


RULES = (
    window_of_scalar,
    running_sum_of_constant,
    window_of_ones,
    window_to_reduce,
    fold_pad_into_window,
)
