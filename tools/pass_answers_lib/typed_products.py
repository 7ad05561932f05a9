"""Programs with products of mixed types, of transposes, and of batches of one."""

from __future__ import annotations

from random import Random

from pass_answers_lib.dots import Side, dot, operand
from pass_answers_lib.writer import Value, Writer, listed

_MIXED = (
    *(("bf16", "bf16", "f32"), ("bf16", "f32", "f32"), ("f32", "bf16", "f32")),
    *(("s8", "s8", "s32"), ("s8", "s8", "s8"), ("s8", "u8", "s32"), ("s4", "s4", "s32")),
    *(("s8", "s32", "s32"), ("u8", "u8", "s32"), ("u8", "u8", "u32"), ("s16", "s16", "s64")),
    *(("f8e4m3fn", "f8e5m2", "f32"), ("f8e4m3fn", "f8e4m3fn", "bf16"), ("f16", "f16", "f16")),
    *(("f32", "f32", "f64"), ("bf16", "f16", "f32"), ("f32", "f32", "bf16"), ("f64", "f64", "f32")),
    *(("s32", "s32", "s8"), ("s32", "s32", "f32"), ("c64", "c64", "c64"), ("f16", "f16", "bf16")),
)
"""Types of left operand, right operand and result."""


def for_casts(dice: Random) -> str:
    """Dots and convolutions with operands and results of several types."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        left, right, result = writer.pick(_MIXED)
        if writer.chance(0.25):
            sizes = {"b": 2, "f": 3, "i": 3, "o": 2, "0": 4}
            labels = [writer.shuffled(letters) for letters in ("bf0", "io0", "bf0")]
            operands = [
                writer.parameter(kind, [sizes[letter] for letter in label])
                for kind, label in zip((left, right), labels, strict=False)
            ]
            found = {"b": 2, "f": 2, "0": 1}
            value = writer.add(
                result,
                [found[letter] for letter in labels[2]],
                "convolution",
                operands,
                "window={size=4}",
                f"dim_labels={'_'.join(map(''.join, labels[:2]))}->{''.join(labels[2])}",
            )
        else:
            batch, contracting = writer.pick(([], [], [2])), writer.pick(([3], [3], [2, 2], []))
            a, b = (
                operand(
                    *(writer, kind, batch, contracting, writer.pick(([2], []))),
                    unsorted=0.1,
                    odd_layouts=0,
                )
                for kind in (left, right)
            )
            value = dot(writer, a, b, type_name=result)
        if writer.chance(0.3):
            writer.add(value.type, value.sizes, "copy", [value])
    return writer.text()


def for_batches_of_one(dice: Random) -> str:
    """Dots with batch dimensions of size 1 among others."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        kind = writer.pick(("f32", "bf16", "s32", "c64"))
        batch = [writer.pick((1, 1, 2)) for _ in range(writer.pick((0, 1, 2, 3)))]
        contracting = writer.pick(([3], [3], [3], [1], [2, 2], []))
        result = "f32" if kind == "bf16" and writer.chance(0.3) else kind
        a, b = (
            _in_order(writer, kind, batch, contracting, writer.pick(([2], [1], [], [2, 3])))
            for _ in range(2)
        )
        precision = writer.pick(("", "operand_precision={high,default}"))
        dot(writer, a, b, precision, type_name=result)
    return writer.text()


def _in_order(
    writer: Writer, kind: str, batch: list[int], contracting: list[int], free: list[int]
) -> Side:
    """An operand whose batch dimensions come first, mostly, and the others in either order."""
    if writer.chance(0.15):
        return operand(writer, kind, batch, contracting, free, unsorted=0.4, odd_layouts=0)
    blocks = [contracting, free] if writer.chance(0.5) else [free, contracting]
    at = len(batch) + (0 if blocks[0] is contracting else len(free))
    value = writer.parameter(kind, [*batch, *blocks[0], *blocks[1]])
    return Side(value, [*range(len(batch))], [*range(at, at + len(contracting))])


def for_transposes(dice: Random) -> str:
    """Dots and convolutions of transposed operands, which others may read too."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        kind = writer.pick(("f32", "f32", "bf16", "f16"))
        if writer.chance(0.3):
            _convolution(writer, kind)
            continue
        batch, contracting = writer.pick(([], [], [3], [2, 3])), writer.pick(([64], [64], [8, 8]))
        sides = []
        for _ in range(2):
            own = _in_order(writer, kind, batch, contracting, writer.pick(([32], [32], [], [4, 8])))
            sides.append(_transposed(writer, own) if writer.chance(0.7) else own)
        dot(writer, sides[0], sides[1])
    return writer.text()


def _transpose(writer: Writer, value: Value, order: list[int]) -> Value:
    sizes = [value.sizes[d] for d in order]
    made = writer.add(value.type, sizes, "transpose", [value], f"dimensions={listed(order)}")
    if writer.chance(0.15):
        writer.add(made.type, made.sizes, "copy", [made])
    return made


def _transposed(writer: Writer, side: Side) -> Side:
    """An operand behind a transpose that mostly leaves batch dimensions where they are."""
    rank, fixed = len(side.value.sizes), len(side.batch)
    if writer.chance(0.75) and side.batch == [*range(fixed)]:
        order = [*range(fixed), *writer.shuffled(range(fixed, rank))]
    else:
        order = writer.shuffled(range(rank))
    made = _transpose(writer, side.value, order)
    return Side(made, *([order.index(d) for d in each] for each in (side.batch, side.contracting)))


def _convolution(writer: Writer, kind: str) -> None:
    """A convolution of which image, kernel or both are transposed."""
    sizes = ({"b": 2, "f": 3, "0": 5, "1": 4}, {"i": 3, "o": 2, "0": 3, "1": 2})
    labels, operands = [], []
    for letters in sizes:
        label = writer.shuffled(tuple(letters))
        value = writer.parameter(kind, [letters[letter] for letter in label])
        if writer.chance(0.6):
            order = writer.shuffled(range(4))
            value = _transpose(writer, value, order)
            label = [label[d] for d in order]
        labels.append("".join(label))
        operands.append(value)
    out = "".join(writer.shuffled("bf01"))
    found = {"b": 2, "f": 2, "0": 3, "1": 3}
    attributes = "window={size=3x2}", f"dim_labels={'_'.join(labels)}->{out}"
    writer.add(kind, [found[letter] for letter in out], "convolution", operands, *attributes)
