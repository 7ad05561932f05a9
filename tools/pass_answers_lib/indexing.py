"""Programs that read and write at positions: gathers, scatters, dynamic slices."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from pass_answers_lib.writer import Value, Writer, listed

_TYPES = ("f32", "f32", "bf16", "s32", "u8", "pred", "c64", "f8e5m2", "s4")
_INDICES = ("s32", "s32", "s32", "u32", "s64", "u8", "s8")


class _Places(NamedTuple):
    """Where windows of an array lie, and how the indices say so."""

    array: tuple[int, ...]
    """Sizes of the array."""
    windows: tuple[int, ...]
    dropped: list[int]
    """Dimensions of windows, of size 1, that stand nowhere else."""
    indexed: list[int]
    batching: list[int]
    indices: tuple[int, ...]
    """Sizes of the indices."""
    indices_batching: list[int]
    vector_dimension: int
    is_sorted: bool

    @property
    def kept(self) -> list[int]:
        """Dimensions of windows that others have, too."""
        return [d for d in range(len(self.array)) if d not in (*self.dropped, *self.batching)]

    @property
    def counts(self) -> list[int]:
        """Sizes of the indices without the index vector."""
        return [size for d, size in enumerate(self.indices) if d != self.vector_dimension]


def _places(writer: Writer, batching_share: float) -> _Places:
    rank = writer.pick((0, *(1,) * 4, *(2,) * 6, *(3,) * 4))
    array = tuple(writer.pick((1, 2, 3, 4, 70)) for _ in range(rank))
    batching = [d for d in range(rank) if writer.chance(batching_share)]
    indexed = [d for d in writer.shuffled(range(rank)) if d not in batching]
    if writer.chance(0.4):
        indexed = indexed[: writer.dice.randint(0, len(indexed))]
    windows = [
        1 if d in batching or writer.chance(0.4) else writer.dice.randint(1, size)
        for d, size in enumerate(array)
    ]
    if writer.chance(0.15):
        windows = [1 if d in batching else size for d, size in enumerate(array)]
    if rank and writer.chance(0.06) and not batching:
        windows[writer.dice.randrange(rank)] = 0
    dropped = [
        d
        for d, size in enumerate(windows)
        if size == 1 and d not in batching and writer.chance(0.6)
    ]
    counts = [writer.pick((1, 2, 5)) for _ in range(writer.pick((0, 1, 1, 2)))]
    if writer.chance(0.05) and counts:
        counts[0] = 0
    batching_at = []
    for d in writer.shuffled(batching):
        batching_at.append((d, len(counts)))
        counts.append(array[d])
    order = writer.shuffled(range(len(counts)))
    counts = [counts[d] for d in order]
    vector = writer.dice.randint(0, len(counts)) if writer.chance(0.5) else len(counts)
    sizes = [*counts[:vector], len(indexed), *counts[vector:]]
    if len(indexed) == 1 and vector == len(counts) and writer.chance(0.5):
        sizes.pop()  # it is implicit
    found = {d: order.index(at) for d, at in batching_at}
    numbers = [found[d] + (found[d] >= vector) for d in batching]
    return _Places(
        *(array, tuple(windows), dropped, indexed, batching, tuple(sizes), numbers, vector),
        writer.chance(0.2),
    )


def _interleaved(
    writer: Writer, counts: Sequence[int], windows: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Sizes of counts and windows together, each in its order, and the places of the windows."""
    rank = len(counts) + len(windows)
    if writer.chance(0.4):
        at = list(range(len(counts), rank))
    else:
        at = sorted(writer.dice.sample(range(rank), len(windows)))
    rest, own = iter(counts), iter(windows)
    return [next(own) if d in at else next(rest) for d in range(rank)], at


def _gathers(dice: Random, batching: float) -> str:
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        places = _places(writer, batching)
        kept = [places.windows[d] for d in places.kept]
        sizes, offsets = _interleaved(writer, places.counts, kept)
        kind = writer.pick(_TYPES)
        operands = [
            writer.parameter(kind, places.array),
            writer.parameter(writer.pick(_INDICES), places.indices),
        ]
        result = writer.add(
            kind,
            sizes,
            "gather",
            operands,
            f"offset_dims={listed(offsets)}",
            f"collapsed_slice_dims={listed(places.dropped)}",
            f"start_index_map={listed(places.indexed)}",
            *_batching(places, "operand", "start_indices"),
            f"index_vector_dim={places.vector_dimension}",
            f"slice_sizes={listed(places.windows)}",
            "indices_are_sorted=true" if places.is_sorted else "",
        )
        if writer.chance(0.2):
            writer.add(kind, sizes, "copy", [result])
    return writer.text()


def _batching(places: _Places, array: str, indices: str) -> list[str]:
    if not places.batching:
        return []
    return [
        f"{array}_batching_dims={listed(places.batching)}",
        f"{indices}_batching_dims={listed(places.indices_batching)}",
    ]


def _scatters(dice: Random, batching: float) -> str:
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        places = _places(writer, batching)
        while places.counts and not places.array:  # XLA fails where scalars get several updates
            places = _places(writer, batching)
        kept = [places.windows[d] for d in places.kept]
        sizes, windows = _interleaved(writer, places.counts, kept)
        kind = writer.pick(_TYPES)
        number = writer.pick((1, 1, 1, 2))
        kinds = [kind, *("s32" for _ in range(number - 1))]
        arrays = [writer.parameter(each, places.array) for each in kinds]
        indices = writer.parameter(writer.pick(_INDICES), places.indices)
        updates = [writer.parameter(each, sizes) for each in kinds]
        attributes = [
            f"update_window_dims={listed(windows)}",
            f"inserted_window_dims={listed(places.dropped)}",
            f"scatter_dims_to_operand_dims={listed(places.indexed)}",
            *_batching(places, "input", "scatter_indices"),
            f"index_vector_dim={places.vector_dimension}",
            "indices_are_sorted=true" if places.is_sorted else "",
            "unique_indices=true" if writer.chance(0.2) else "",
            f"to_apply={_combine(writer, kinds)}",
        ]
        operands = [*arrays, indices, *updates]
        if number == 1:
            writer.add(kind, places.array, "scatter", operands, *attributes)
        else:
            writer.several(arrays, "scatter", operands, *attributes)
    return writer.text()


def _combine(writer: Writer, kinds: Sequence[str]) -> str:
    """A computation of old and new values: their sum, their maximum, or one of them."""
    inner = Writer(writer.dice)
    old, new = ([inner.parameter(kind, ()) for kind in kinds] for _ in range(2))
    opcode = writer.pick(("add", "add", "new", "old", "first"))
    results = []
    for kind, one, other in zip(kinds, old, new, strict=True):
        if opcode in ("new", "old"):
            results.append(other if opcode == "new" else one)
        else:
            sides = [one, other] if opcode == "add" else [other, one]
            results.append(inner.add(kind, (), "or" if kind == "pred" else "add", sides))
    name = f"combine.{len(writer.computations)}"
    writer.computations.append(inner.finish(name, results, is_tuple=len(kinds) > 1))
    return name


def for_gathers(dice: Random) -> str:
    """Gathers of windows at any places, of scalars and of nothing among them."""
    return _gathers(dice, 0.0)


def for_scatters(dice: Random) -> str:
    """Scatters of windows to any places, of one array or two."""
    return _scatters(dice, 0.0)


def for_batching(dice: Random) -> str:
    """Gathers and scatters with batching dimensions."""
    return (_gathers if dice.random() < 0.5 else _scatters)(dice, 0.5)


# -- indices of slices ----------------------------------------------------------------------------


def for_index_vectors(dice: Random) -> str:
    """Dynamic slices and updates whose indices are one vector, or scalars."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 2, 3))):
        kind, rank = writer.pick(_TYPES), writer.pick((0, 1, 2, 2, 3))
        sizes = [writer.pick((1, 2, 3, 5)) for _ in range(rank)]
        part = [writer.dice.randint(1, size) for size in sizes]
        order = writer.order(rank, 0.2)
        array = writer.parameter(kind, sizes, order=order)
        type_name = writer.pick(_INDICES)
        if writer.chance(0.7):
            indices = [writer.parameter(type_name, (rank,))]
        else:
            indices = [writer.parameter(type_name, ()) for _ in range(rank)]
        if writer.chance(0.5):
            operands = [array, *indices]
            sliced = f"dynamic_slice_sizes={listed(part)}"
            value = writer.add(kind, part, "dynamic-slice", operands, sliced, order=order)
        else:
            update = writer.parameter(kind, part)
            operands = [array, update, *indices]
            value = writer.add(kind, sizes, "dynamic-update-slice", operands, order=order)
        if writer.chance(0.3):
            writer.add(kind, value.sizes, "copy", [value], order=value.order)
    return writer.text()


def for_broadcasts(dice: Random) -> str:
    """Broadcasts of dimensions in any order."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 2))):
        kind, rank = writer.pick(_TYPES), writer.pick((0, 1, 2, 2, 3, 3))
        sizes = [writer.pick((0, 1, 2, 3, 4)) for _ in range(rank + writer.pick((0, 1, 2)))]
        at = writer.dice.sample(range(len(sizes)), rank)
        value = writer.parameter(kind, [sizes[d] for d in at], order=writer.order(rank, 0.4))
        if writer.chance(0.2):
            value = writer.add(kind, value.sizes, "copy", [value], order=value.order)
        order = writer.order(len(sizes), 0.4)
        writer.add(kind, sizes, "broadcast", [value], f"dimensions={listed(at)}", order=order)
    return writer.text()


# -- sizes that are computed ----------------------------------------------------------------------


def for_sizes(dice: Random) -> str:
    """Concatenates, slices, reshapes and converts that may undo one another."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 2, 3))):
        kind = writer.pick(("s32", "s32", "f32", "u8"))
        writer.pick((_joined, _joined, _spread, _reshaped, _converted))(writer, kind)
    return writer.text()


def _concatenate(writer: Writer, values: Sequence[Value], place: int) -> Value:
    sizes = list(values[0].sizes)
    sizes[place] = sum(value.sizes[place] for value in values)
    return writer.add(values[0].type, sizes, "concatenate", values, f"dimensions={{{place}}}")


def _joined(writer: Writer, kind: str) -> None:
    """A concatenate of arrays and concatenates, and perhaps parts of it."""
    rank = writer.pick((1, 1, 1, 2))
    place = writer.dice.randrange(rank)
    parts = []
    for _ in range(writer.pick((1, 2, 3))):
        sizes = [2] * rank
        own = [writer.parameter(kind, sizes) for _ in range(writer.pick((1, 1, 2, 3)))]
        if rank == 1 and writer.chance(0.6):
            own = [writer.parameter(kind, (writer.pick((1, 1, 2)),)) for _ in own]
        nested = place if writer.chance(0.85) else writer.dice.randrange(rank)
        joined = own[0]
        if len(own) > 1 and (nested == place or rank == 1 or len(own) == 1):
            joined = _concatenate(writer, own, nested)
            if writer.chance(0.2):
                joined = _concatenate(writer, [joined, own[0]], nested)
        parts.append(joined)
    value = _concatenate(writer, parts, place)
    for _ in range(writer.pick((0, 1, 2))):
        start = writer.dice.randrange(value.sizes[0])
        end = writer.dice.randint(start + 1, value.sizes[0])
        if rank == 1 and writer.chance(0.7):
            number = writer.dice.randrange(len(parts))
            start = sum(part.sizes[0] for part in parts[:number])
            end = start + parts[number].sizes[0]
        stride = writer.pick((1, 1, 1, 2))
        bounds = [f"[{start}:{end}:{stride}]", *("[0:2]" for _ in range(rank - 1))]
        if rank == 2 and place == 1:
            bounds = [f"[{start}:{end}:{stride}]", f"[0:{value.sizes[1]}]"]
        sizes = [-(-(end - start) // stride), *value.sizes[1:]]
        if rank == 2:
            bounds[1] = f"[0:{value.sizes[1]}]"
        writer.add(kind, sizes, "slice", [value], f"slice={{{', '.join(bounds)}}}")


def _spread(writer: Writer, kind: str) -> None:
    """A reshape of a broadcast."""
    scalar = writer.parameter(kind, writer.pick(((), (), (1,))))
    sizes = writer.pick(((1,), (1,), (1, 1)))
    at = listed(range(len(scalar.sizes)))
    value = writer.add(kind, sizes, "broadcast", [scalar], f"dimensions={at}")
    writer.add(kind, writer.pick(((), (), (1, 1, 1))), "reshape", [value])


def _reshaped(writer: Writer, kind: str) -> None:
    """Reshapes one after the other, most of them between two shapes."""
    shapes = writer.pick((((1,), ()), ((2, 3), (6,)), ((2, 3), (3, 2)), ((4,), (4,))))
    value = writer.parameter(kind, shapes[0], order=writer.order(len(shapes[0]), 0.3))
    for _ in range(writer.pick((1, 2, 2, 3, 4))):
        sizes = writer.pick(shapes)
        value = writer.add(kind, sizes, "reshape", [value], order=writer.order(len(sizes), 0.2))
        if writer.chance(0.2):
            writer.add(kind, sizes, "copy", [value], order=value.order)


def _converted(writer: Writer, kind: str) -> None:
    """Converts, to the type that was there among them."""
    value = writer.parameter(kind, (2, 3), order=writer.order(2, 0.3))
    for _ in range(writer.pick((1, 2, 3))):
        order = value.order if writer.chance(0.8) else writer.order(2, 1)
        kind = kind if writer.chance(0.6) else writer.pick(("s32", "f32"))
        value = writer.add(kind, (2, 3), "convert", [value], order=order)
