"""Shardings as data: how many parts an array is cut into, and which of them each device has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from hloopt.ir.attributes.values.numbers import split_ints
from hloopt.ir.attributes.values.replica_groups import (
    IotaTile,
    Mesh,
    SubAxis,
    parse_axes,
    parse_iota_tile,
    parse_mesh,
    row_major_strides,
)
from hloopt.ir.attributes.values.tokens import compact
from hloopt.patterns import pattern

Place = tuple[int, ...]
"""The number of a part along each dimension."""


class Shards(NamedTuple):
    """The parts of an array, and who has them.

    An array of N elements in k parts has parts of ceil(N / k) elements; the last ones may be
    shorter or empty.
    """

    counts: Place
    """Parts along each dimension."""
    places: tuple[Place | None, ...]
    """The part that each device has; None where it has none."""
    groups: tuple[int, ...]
    """The manual subgroup of each device: each of them has an array of its own."""

    @property
    def is_whole(self) -> bool:
        """Whether every device has all of one array."""
        return prod(self.counts) == 1 and None not in self.places and len(set(self.groups)) == 1

    def part(self, dimensions: Sequence[int]) -> Place:
        """The dimensions of a part of an array."""
        return tuple(-(-n // k) for n, k in zip(dimensions, self.counts, strict=True))


def whole(rank: int, devices: int) -> Shards:
    """All of an array on every device."""
    place = (0,) * rank
    return Shards((1,) * rank, (place,) * devices, (0,) * devices)


def separate(rank: int, devices: int) -> Shards:
    """An array of its own on every device."""
    return whole(rank, devices)._replace(groups=tuple(range(devices)))


@lru_cache(4096)
def shards_of(sharding: str, rank: int, devices: int) -> Shards | str:
    """The parts of one array on so many devices, by a sharding as XLA prints it.

    A text where the parts do not tell: why not. O(devices).
    """
    if sharding.startswith("{replicated"):
        return whole(rank, devices)
    if sharding.startswith("{manual"):
        return separate(rank, devices)
    if maximal := _MAXIMAL.match(sharding):
        return _on_one(int(maximal[1]), rank, devices)
    if sharding.startswith("{mesh["):
        return _of_mesh_text(compact(sharding), rank, devices)
    tile = _TILE.match(sharding)
    if tile is None:
        return f"sharding={sharding} does not say which part a device has"
    return _of_tile(tile[1], tile[2], sharding, rank, devices)


_MAXIMAL = pattern(r"\{maximal(?: device=|_mesh\[device_id=)(\d+)")
_TILE = pattern(r"\{devices=\[([\d,]+)\](<=[^ }]+|[\d,]+)")
_SUBGROUPS = pattern(r"last_tile_dims=\{([a-z_, ]*)\}")


def _on_one(device: int, rank: int, devices: int) -> Shards:
    place = (0,) * rank
    return Shards(
        (1,) * rank, tuple(place if d == device else None for d in range(devices)), (0,) * devices
    )


def _of_tile(dimensions: str, order: str, sharding: str, rank: int, devices: int) -> Shards | str:
    sizes = split_ints(dimensions)
    named = _SUBGROUPS.search(sharding)
    kinds = [kind.strip() for kind in named[1].split(",")] if named else []
    if "last_tile_dim_replicate" in sharding:
        kinds = ["replicated"]
    if len(sizes) - len(kinds) != rank:
        return f"sharding={sharding} is not one of {rank} dimensions"
    if unknown := set(kinds) - {"replicated", "manual"}:
        return f"sharding={sharding} has a subgroup that is {min(unknown)}"
    if order.startswith("<="):
        listed = parse_iota_tile(f"[{dimensions}]{order}").devices()
    else:
        listed = list(split_ints(order))
    strides = row_major_strides(sizes)
    manual = [rank + d for d, kind in enumerate(kinds) if kind == "manual"]
    places: list[Place | None] = [None] * devices
    groups = [0] * devices
    for position, device in enumerate(listed):
        if device >= devices:
            return f"sharding={sharding} names device {device} of {devices}"
        index = [position // stride % size for size, stride in zip(sizes, strides, strict=True)]
        places[device] = tuple(index[:rank])
        groups[device] = _number([(index[d], sizes[d]) for d in manual])
    return Shards(sizes[:rank], tuple(places), tuple(groups))


def _number(digits: Sequence[tuple[int, int]]) -> int:
    """The number that digits, each with its base, make up."""
    number = 0
    for digit, base in digits:
        number = number * base + digit
    return number


# -- meshes ---------------------------------------------------------------------------------------

_MESH = pattern(
    r"\{mesh\[([^\]]*)\](?:,device_ids=\(([^()]*(?:\([^()]*\))?)\))?,"
    r"(?:(replicated|manual|unreduced\S*)|\[((?:\{[^{}]*\},?)*)\])(.*)\}"
)
_ENTRY = pattern(r"\{([^{}]*)\}")
_ROLE = pattern(r"(manual|unreduced)(?:=[a-z]*)?=?\{([^{}]*)\}")


def _of_mesh_text(dense: str, rank: int, devices: int) -> Shards | str:
    match = _MESH.match(dense)
    if match is None:
        return f"sharding={dense} does not say which part a device has"
    axes, ids, short, entries, rest = match.groups()
    mesh = parse_mesh(axes, ids, dense)
    roles = dict(_ROLE.findall(rest))
    if (short or "").startswith("unreduced") or "unreduced" in roles:
        return f"sharding={dense} leaves sums unreduced"
    if short == "manual":
        return separate(rank, devices)
    if short == "replicated" or not entries:
        dimensions: list[tuple[SubAxis, ...]] = [()] * rank
    else:
        dimensions = [_axes_of(entry, mesh, dense) for entry in _ENTRY.findall(entries)]
    if len(dimensions) != rank:
        return f"sharding={dense} is not one of {rank} dimensions"
    manual = _axes_of(roles.get("manual", ""), mesh, dense)
    return mesh_shards(mesh, dimensions, devices, manual)


def _axes_of(entry: str, mesh: Mesh, text: str) -> tuple[SubAxis, ...]:
    return parse_axes(entry.rstrip("?").rstrip(","), mesh, text)


def mesh_shards(
    mesh: Mesh,
    dimensions: Sequence[Sequence[SubAxis]],
    devices: int,
    manual: Sequence[SubAxis] = (),
) -> Shards | str:
    """The parts of an array whose dimensions are cut along axes of a mesh.

    Each combination of the `manual` axes has an array of its own. O(devices).
    """
    sizes = dict(mesh.axes)
    counts = tuple(prod(axis.size or sizes[axis.axis] for axis in axes) for axes in dimensions)
    places: list[Place | None] = [None] * devices
    groups = [0] * devices
    for device, coordinates in mesh_coordinates(mesh).items():
        if device >= devices:
            return f"{mesh.text} has device {device}, there are {devices}"
        places[device] = tuple(_index(axes, coordinates, sizes) for axes in dimensions)
        groups[device] = _index(manual, coordinates, sizes)
    return Shards(counts, tuple(places), tuple(groups))


def mesh_coordinates(mesh: Mesh) -> dict[int, dict[str, int]]:
    """The coordinates of each device along the axes of a mesh, in the order of the mesh."""
    strides = row_major_strides(tuple(size for _, size in mesh.axes))
    if isinstance(mesh.devices, IotaTile):
        order: Sequence[int] = mesh.devices.devices()
    else:
        order = mesh.devices or range(mesh.device_count)
    return {
        device: {
            name: position // stride % size
            for (name, size), stride in zip(mesh.axes, strides, strict=True)
        }
        for position, device in enumerate(order)
    }


def _index(axes: Sequence[SubAxis], coordinates: dict[str, int], sizes: dict[str, int]) -> int:
    """The number of a part along a dimension that is cut along axes, the first one outermost."""
    digits = []
    for axis, before, part in axes:
        size, coordinate = sizes[axis], coordinates[axis]
        if part:
            inner = size // (before * part)
            digits.append((coordinate // inner % part, part))
        else:
            digits.append((coordinate, size))
    return _number(digits)
