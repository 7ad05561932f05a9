"""The layout of values over the devices: what each device has, and how often each part is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from hloopt.ir.attributes.values.replica_groups import Mesh
from hloopt.ir.attributes.values.sharding_text import bare_sharding
from hloopt.ir.attributes.values.shards import Shards, whole
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.leaf_annotations import leaf_shardings
from hloopt.ir.shapes.leaf_shards import Told, leaf_shards, shardy_shardings
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.sharding.axes import in_axes


@dataclass(slots=True)
class Layout:
    """An array over the devices of a program."""

    shape: Shape
    """The array for all devices."""
    part: Shape
    """The largest part that a device has."""
    shards: Shards | None
    """None where the sharding does not tell the parts."""
    sharding: str
    """In axes of the mesh, or as XLA prints it without braces."""
    why_unknown: str = ""
    """Why the parts are not known."""

    @property
    def bytes_per_device(self) -> int:
        """Bytes of the part of a device, padding left out."""
        return shape_bytes(self.part)

    @property
    def copies(self) -> int:
        """The number of devices that have each part; 1 for what some devices do not have.

        O(devices).
        """
        if self.shards is None or None in self.shards.places:
            return 1
        parts = prod(self.shards.counts) * len(set(self.shards.groups))
        return len(self.shards.places) // parts

    @property
    def redundant_bytes(self) -> int:
        """Bytes that a device would save if copies were cut along the axes that repeat them."""
        return self.bytes_per_device - self.bytes_per_device // self.copies


def layouts_of(
    value: Instruction, devices: int, mesh: Mesh | None, *, is_part: bool, is_replicated: bool
) -> Iterator[tuple[int, Layout]]:
    """The arrays of a value by leaf number.

    `is_part`: shapes in the text are those of one device; `is_replicated`: a value without a
    sharding is replicated, else it is left out. O(leaves · devices).
    """
    given = leaf_shardings(value) or [""] * len(value.shape.leaves())
    texts = map(bare_sharding, given)
    told = leaf_shards(value, devices)
    for number, (leaf, own, text) in enumerate(zip(value.shape.leaves(), told, texts, strict=True)):
        if not leaf.is_array or (own is None and not is_replicated):
            continue
        yield number, _layout(leaf, own, text, devices, mesh, value, number, is_part=is_part)


def _layout(
    leaf: Shape,
    told: Told,
    text: str,
    devices: int,
    mesh: Mesh | None,
    value: Instruction,
    number: int,
    *,
    is_part: bool,
) -> Layout:
    if isinstance(told, str):
        return Layout(leaf, leaf, None, text, told)
    shards = whole(leaf.rank, devices) if told is None else told
    own_mesh = mesh
    shardy = shardy_shardings(value)
    if not text and shardy is not None:
        own_mesh = shardy[number].mesh
    named = in_axes(shards, own_mesh) if own_mesh is not None else None
    shown = named or text or "replicated"
    pairs = list(zip(leaf.dimensions, shards.counts, strict=True))
    if is_part:
        total = array_shape(leaf.type_name, tuple(n * k for n, k in pairs))
        return Layout(total, leaf, shards, shown)
    return Layout(leaf, array_shape(leaf.type_name, shards.part(leaf.dimensions)), shards, shown)


def picture(shards: Shards) -> list[list[str]]:
    """The devices of each part: rows along the first dimension that is cut, columns along the
    others. O(devices)."""
    cut = [dimension for dimension, count in enumerate(shards.counts) if count > 1]
    members: dict[tuple[int, ...], list[int]] = {}
    for device, place in enumerate(shards.places):
        if place is not None:
            members.setdefault(tuple(place[d] for d in cut), []).append(device)
    rows, *columns = [range(shards.counts[d]) for d in cut] or [range(1)]
    return [
        [ranges(members.get((row, *column) if cut else (), ())) for column in product(*columns)]
        for row in rows
    ]


def ranges(numbers: Sequence[int]) -> str:
    """`0-3,8`: rising numbers, those in a row as one."""
    parts: list[str] = []
    start = previous = None
    for number in [*sorted(numbers), None]:
        if previous is not None and number != previous + 1:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
            start = None
        start = number if start is None else start
        previous = number
    return ",".join(parts)
