"""Programs with dots: dimensions of all roles in any order, operands that several share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random
from typing import NamedTuple

from pass_answers_lib.writer import Value, Writer

_TYPES = ("f32", "f32", "bf16", "f64", "s32")
_PRECISIONS = (
    "",
    "",
    "",
    "operand_precision={high,default}",
    "operand_precision={highest,highest}",
)
_METADATA = ("", "", 'metadata={op_name="jit(step)/dot"}')
MOST_BYTES = 1 << 20
_LARGE = 512
"""A size of which the square, in single precision, is above what XLA is told to merge."""


class Side(NamedTuple):
    """An operand of a dot, with the dimensions that the other one has, too, in their order."""

    value: Value
    batch: list[int]
    contracting: list[int]

    @property
    def free(self) -> list[int]:
        sizes, taken = self.value.sizes, {*self.batch, *self.contracting}
        return [size for d, size in enumerate(sizes) if d not in taken]


def _sizes(writer: Writer, counts: Sequence[int]) -> list[int]:
    return [writer.pick((1, 2, 2, 3, 3, 4, 5)) for _ in range(writer.pick(counts))]


def operand(
    writer: Writer,
    type_name: str,
    batch: Sequence[int],
    contracting: Sequence[int],
    free: Sequence[int],
    *,
    unsorted: float,
    odd_layouts: float = 0.25,
) -> Side:
    """A parameter with dimensions of these sizes, those of a role mostly neighbours.

    `unsorted`, `odd_layouts`: the shares of roles out of order, and of layouts by chance.
    """
    roles = {"batch": batch, "contracting": contracting, "free": free}
    blocks = []
    for role in writer.shuffled(tuple(roles)) if writer.chance(0.6) else roles:
        block = [(role, number) for number in range(len(roles[role]))]
        blocks.append(writer.shuffled(block) if writer.chance(unsorted) else block)
    places = [place for block in blocks for place in block]
    if writer.chance(0.2):
        places = writer.shuffled(places)
    order = None
    if writer.chance(odd_layouts):
        order = writer.shuffled(range(len(places)))
    value = writer.parameter(type_name, [roles[r][n] for r, n in places], order=order)
    numbers = {
        role: [places.index((role, n)) for n in range(len(sizes))] for role, sizes in roles.items()
    }
    return Side(value, numbers["batch"], numbers["contracting"])


def dot(writer: Writer, left: Side, right: Side, *attributes: str, type_name: str = "") -> Value:
    """A dot of two operands, whose result is of the left one\'s type unless one is given."""
    sizes = [left.value.sizes[d] for d in left.batch] + left.free + right.free
    lists = {
        f"{side}_{role}_dims": numbers
        for side, own in (("lhs", left), ("rhs", right))
        for role, numbers in (("batch", own.batch), ("contracting", own.contracting))
    }
    return writer.add(
        type_name or left.value.type,
        sizes,
        "dot",
        [left.value, right.value],
        *[f"{name}={{{','.join(map(str, n))}}}" for name, n in lists.items() if n],
        *attributes,
    )


def _alone(
    dice: Random,
    *,
    batch: Sequence[int],
    contracting: Sequence[int],
    unsorted: float,
    odd_layouts: float = 0.25,
) -> str:
    """One to three dots, each with as many dimensions as drawn of the counts of a role."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2, 3))):
        kind = writer.pick(_TYPES)
        shared = _sizes(writer, batch), _sizes(writer, contracting)
        left, right = (
            operand(
                *(writer, kind, *shared, _sizes(writer, (0, 1, 1, 2))),
                unsorted=unsorted,
                odd_layouts=odd_layouts,
            )
            for _ in range(2)
        )
        before = ""
        if writer.chance(0.02):
            before = writer.control(writer.parameter("f32", ()))
        dot(writer, left, right, writer.pick(_PRECISIONS), writer.pick(_METADATA), before)
    return writer.text()


def for_sorter(dice: Random) -> str:
    """Dots with contracting dimensions in and out of order."""
    counts = (0, 1, 2, 2, 2, 2, 2, 2, 2, 3)
    return _alone(dice, batch=(0, 0, 1), contracting=counts, unsorted=0.7, odd_layouts=0.08)


def for_dimension_merger(dice: Random) -> str:
    """Dots with batch dimensions that are neighbours, and that are not."""
    return _alone(dice, batch=(0, 1, 2, 2, 2, 3), contracting=(0, 1, 1, 2), unsorted=0.15)


def for_decomposer(dice: Random) -> str:
    """Dots that are in canonical form, and that are not."""
    counts = (0, 1, 1, 2)
    return _alone(dice, batch=counts, contracting=counts, unsorted=0.3, odd_layouts=0)


def for_normalizer(dice: Random) -> str:
    """Dots without contracting dimensions, and with them."""
    return _alone(dice, batch=(0, 0, 1, 2), contracting=(0, 0, 0, 1), unsorted=0.3)


# -- dots that share an operand -------------------------------------------------------------------


def for_merger(dice: Random) -> str:
    """Dots of one operand: mostly alike but for one size, else with any dimensions in any order."""
    return _alike(Writer(dice)) if dice.random() < 0.97 else _unlike(Writer(dice))


def _alike(writer: Writer) -> str:
    """Pairs of dots whose other operands differ in one free dimension, larger ones first."""
    for _ in range(writer.pick((1, 1, 2, 3))):
        _pair(writer)
    return writer.text()


def _pair(writer: Writer) -> None:
    kind = writer.pick(_TYPES)
    batch = [writer.pick((2, 3, 5)) for _ in range(writer.pick((0, 0, 1, 2)))]
    contracting, free = [writer.pick((2, 3, 5))], [writer.pick((2, 3, 5))]
    if writer.chance(0.15):
        contracting, free = [_LARGE], [_LARGE]
    sizes = sorted(writer.dice.choices((2, 4, 8, 16), k=2), reverse=True)
    shared = operand(writer, kind, batch, contracting, free, unsorted=0)
    places, is_left = _places(writer, len(batch)), writer.chance(0.6)
    precision = writer.pick(_PRECISIONS)
    if writer.chance(0.015):
        sizes.append(2)
    results: list[Value] = []
    for size in sizes:
        other = _placed(writer, kind, [*batch, *contracting, size], places)
        if results and writer.chance(0.1):
            other = _later(writer, other, writer.pick(results))
        attributes = [precision, writer.pick(_METADATA)]
        if writer.chance(0.06):
            attributes[0] = writer.pick(_PRECISIONS)
        if writer.chance(0.04):
            attributes.append(writer.control(writer.parameter("f32", ())))
        type_name = "f32" if kind == "bf16" and writer.chance(0.1) else ""
        sides = (shared, other) if is_left else (other, shared)
        results.append(dot(writer, *sides, *attributes, type_name=type_name))


def _places(writer: Writer, batch: int) -> list[int]:
    """An order of batch dimensions, a contracting one and a free one."""
    return [*range(batch), *writer.shuffled((batch, batch + 1))]


def _placed(writer: Writer, type_name: str, sizes: Sequence[int], places: Sequence[int]) -> Side:
    """A parameter with batch dimensions, a contracting one and a free one in an order."""
    value = writer.parameter(type_name, [sizes[place] for place in places])
    at = [places.index(number) for number in range(len(sizes))]
    return Side(value, at[:-2], at[-2:-1])


def _unlike(writer: Writer) -> str:
    """Dots of an operand as it is and rearranged, with others of any dimensions, and consumers."""
    kind = writer.pick(_TYPES)
    batch, contracting = _sizes(writer, (0, 0, 1, 1, 2)), _sizes(writer, (0, 1, 1, 1, 2))
    shared = operand(writer, kind, batch, contracting, _sizes(writer, (0, 1, 2)), unsorted=0.2)
    is_left = writer.chance(0.7)
    results: list[Value] = []
    for _ in range(writer.pick((2, 2, 3, 4, 5))):
        own = _rearranged(writer, shared) if writer.chance(0.3) else shared
        sizes = own.value.sizes
        batch, contracting = ([sizes[d] for d in each] for each in (own.batch, own.contracting))
        is_narrow = kind in ("bf16", "f32") and writer.chance(0.05)
        source = "s4" if is_narrow else kind
        other = operand(
            *(writer, source, batch, contracting, _sizes(writer, (0, 1, 1, 2))), unsorted=0.2
        )
        if is_narrow:
            wide = writer.add(
                kind, other.value.sizes, "convert", [other.value], order=other.value.order
            )
            other = other._replace(value=wide)
        if results and writer.chance(0.12):
            other = _later(writer, other, writer.pick(results))
        sides = (own, other) if writer.chance(0.85) == is_left else (other, own)
        results.append(dot(writer, *sides))
        if writer.chance(0.4):
            _consumers(writer, results[-1])
    return writer.text()


def _later(writer: Writer, side: Side, earlier: Value) -> Side:
    """An operand with an element of an earlier result added to it."""
    value = side.value
    bounds = ", ".join("[0:1]" for _ in earlier.sizes)
    first = writer.add(
        earlier.type, [1] * len(earlier.sizes), "slice", [earlier], f"slice={{{bounds}}}"
    )
    scalar = writer.add(earlier.type, (), "reshape", [first])
    if earlier.type != value.type:
        scalar = writer.add(value.type, (), "convert", [scalar])
    spread = writer.broadcast(scalar, value.sizes)
    total = writer.add(value.type, value.sizes, "add", [value, spread], order=value.order)
    return side._replace(value=total)


def _rearranged(writer: Writer, side: Side) -> Side:
    """The shared operand behind a transpose, or a reshape that joins, splits or pads dimensions."""
    value, rank = side.value, len(side.value.sizes)
    if not rank:
        return side
    if writer.chance(0.5):
        places = writer.shuffled(range(rank))
        sizes = [value.sizes[d] for d in places]
        listed = f"dimensions={{{','.join(map(str, places))}}}"
        new = writer.add(value.type, sizes, "transpose", [value], listed)
        return Side(
            new, [places.index(d) for d in side.batch], [places.index(d) for d in side.contracting]
        )
    place = writer.dice.randrange(rank + 1)
    sizes = [*value.sizes[:place], 1, *value.sizes[place:]]

    def moved(numbers: list[int]) -> list[int]:
        return [d + (d >= place) for d in numbers]

    new = writer.add(value.type, sizes, "reshape", [value])
    return Side(new, moved(side.batch), moved(side.contracting))


def _consumers(writer: Writer, value: Value) -> None:
    """A transpose or a reshape of a result, or both."""
    for opcode in writer.pick((("transpose",), ("reshape",), ("transpose", "reshape"))):
        if opcode == "transpose":
            places = writer.shuffled(range(len(value.sizes)))
            listed = f"dimensions={{{','.join(map(str, places))}}}"
            sizes = [value.sizes[d] for d in places]
            value = writer.add(value.type, sizes, "transpose", [value], listed)
        else:
            sizes = writer.pick(([prod(value.sizes)], [1, *value.sizes], _joined(value.sizes)))
            value = writer.add(value.type, sizes, "reshape", [value])


def _joined(sizes: Sequence[int]) -> list[int]:
    return [prod(sizes[:2]), *sizes[2:]]
