"""Write bitcast-converts between element types of different widths as shifts."""

from __future__ import annotations

from hloopt.ir.attributes.values import Slice
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.pass_framework.base import XlaPass, register
from hloopt.passes.rewriting.rules import Builder, Match, Missed, Result, RulePass, op, rule

_WIDEST = 64


@rule(op("bitcast-convert", "x"), moves_control=True)
def expand(match: Match) -> Result:
    """Split wide values by shifts and masks; put narrow ones together by shifts and ors."""
    old, new = _storage_bits(match.x.shape), _storage_bits(match.root.shape)
    if old == new:
        return None
    if max(old, new) > _WIDEST:
        return Missed(f"no unsigned type has {max(old, new)} bits")
    if old > new:
        return _split(match.build, match.x, match.root.shape, new)
    return _join(match.build, match.x, match.root.shape, old, new)


@register(
    "bitcast-dtypes-expander",
    preserves="bits",
    xla=XlaPass("BitcastDtypesExpander", "xla/hlo/transforms/expanders/bitcast_dtypes_expander.h"),
)
class BitcastDtypesExpander(RulePass):
    """Replace bitcast-converts between element types of different widths by shifts of integers.

    To a narrower type each value is repeated along a new last dimension, shifted right by its
    position there and masked. To a wider one the values of the last dimension are taken by strided
    slices, shifted left by their positions and or'ed together. Converts between types of one width
    stay, and those of complex types of 128 bits. Linear in the number of instructions.
    """

    rules = (expand,)
    max_sweeps = 1


def _storage_bits(shape: Shape) -> int:
    """The bits that one element takes up: a truth value has a byte."""
    kind = shape.element_type
    assert kind is not None
    return 8 if kind.kind == "pred" else kind.bits


def _split(build: Builder, x: Instruction, result: Shape, width: int) -> Instruction:
    kept = tuple(range(x.shape.rank))
    repeated = build.broadcast(x, kept, array_shape(x.shape.type_name, result.dimensions))
    bits = _as_unsigned(build, repeated)
    shape = bits.shape
    positions = build.multiply(build.splat(width, shape), build.iota(shape, x.shape.rank))
    moved = build.binary("shift-right-logical", bits, positions)
    masked = build.binary("and", moved, build.splat((1 << width) - 1, shape))
    return _as_type(build, build.convert(masked, f"u{width}"), result)


def _join(build: Builder, x: Instruction, result: Shape, old: int, new: int) -> Instruction:
    factor = new // old
    sizes = x.shape.dimensions
    values = x if len(sizes) == 1 else build.reshape(x, (*sizes[:-2], sizes[-2] * sizes[-1]))
    *outer, last = values.shape.dimensions
    joined: Instruction | None = None
    for position in range(factor):
        start = min(position, last)
        limit = max(last - factor + position + 1, start)
        part = build.slice(
            values, [*[Slice(0, size, 1) for size in outer], Slice(start, limit, factor)]
        )
        wide = build.convert(_as_unsigned(build, part), f"u{new}")
        if joined is None:
            joined = wide
            continue
        moved = build.binary("shift-left", wide, build.splat(position * old, wide.shape))
        joined = build.binary("or", joined, moved)
    assert joined is not None
    if len(sizes) == 1:
        joined = build.reshape(joined, ())
    return _as_type(build, joined, result)


def _as_unsigned(build: Builder, value: Instruction) -> Instruction:
    return _bitcast(build, value, f"u{_storage_bits(value.shape)}")


def _as_type(build: Builder, value: Instruction, result: Shape) -> Instruction:
    """Unsigned integers as the type of the result, which is as wide."""
    if result.type_name == "pred":
        return build.convert(value, "pred")
    return _bitcast(build, value, result.type_name)


def _bitcast(build: Builder, value: Instruction, type_name: str) -> Instruction:
    if value.shape.type_name == type_name:
        return value
    return build.make(
        "bitcast-convert", value, shape=array_shape(type_name, value.shape.dimensions)
    )
