"""Programs of elementwise operations: chains of conversions, logistic functions."""

from __future__ import annotations

from random import Random

from pass_answers_lib.writer import Writer

_FLOATS = ("f32", "bf16", "f16", "f64", "f8e4m3fn", "f8e5m2")
_SIZES = ((), (4,), (2, 3), (2, 1, 3))


def for_conversions(dice: Random) -> str:
    """Conversions one behind the other, with what else reads them, and what stands between."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 2))):
        sizes = writer.pick(_SIZES)
        value = writer.parameter(writer.pick((*_FLOATS, "s32")), sizes)
        for _ in range(writer.pick((1, 2, 2, 3, 4))):
            choices = [kind for kind in (*_FLOATS, "s32") if kind != value.type]
            value = writer.add(writer.pick(choices), sizes, "convert", [value])
            if writer.chance(0.15):
                writer.add(value.type, sizes, "negate", [value])
            if writer.chance(0.15):
                value = writer.add(value.type, sizes, "abs", [value])
    return writer.text()


def for_logistic(dice: Random) -> str:
    """Logistic functions of several types, and what reads them."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 2, 3))):
        sizes = writer.pick(_SIZES)
        order = writer.shuffled(range(len(sizes))) if writer.chance(0.3) else None
        kind = writer.pick(("f32", "bf16", "f16", "f64", "c64"))
        value = writer.parameter(kind, sizes, order=order)
        opcode = "logistic" if writer.chance(0.7) else writer.pick(("tanh", "exponential"))
        metadata = writer.pick(("", 'metadata={op_name="jit(step)/logistic"}'))
        value = writer.add(kind, sizes, opcode, [value], metadata, order=order)
        if writer.chance(0.5):
            writer.add(kind, sizes, "negate", [value], order=order)
    return writer.text()


_WIDTHS = {
    4: ("s4", "u4"),
    8: ("s8", "u8", "f8e5m2", "f8e4m3fn", "pred"),
    16: ("bf16", "f16", "s16", "u16"),
    32: ("f32", "s32", "u32"),
    64: ("f64", "s64", "u64"),
}


def for_bitcasts(dice: Random) -> str:
    """Bitcast-converts between types of any two widths."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 2))):
        own, other = (writer.pick(tuple(_WIDTHS)) for _ in range(2))
        sizes = writer.pick(((), (2,), (1,), (3, 2), (0,), (2, 1, 3)))
        ratio = max(own, other) // min(own, other)
        wide, narrow = sizes, (*sizes, ratio) if ratio > 1 else sizes
        shapes = (wide, narrow) if own > other else (narrow, wide)
        value = writer.parameter(writer.pick(_WIDTHS[own]), shapes[0])
        value = writer.add(writer.pick(_WIDTHS[other]), shapes[1], "bitcast-convert", [value])
        if writer.chance(0.2):
            writer.add(value.type, value.sizes, "copy", [value])
    return writer.text()
