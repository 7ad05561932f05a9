"""Shardings and groups of devices in the axis names of a mesh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, permutations
from math import prod

from hloopt.diagnostics import HloError, counted
from hloopt.ir.attributes.values.replica_groups import Mesh
from hloopt.ir.attributes.values.shards import Shards, mesh_coordinates
from hloopt.patterns import pattern

_AXIS = pattern(r"\s*'?\"?([\w.\-]+?)'?\"?\s*=\s*(\d{1,9})\s*")
_MOST_AXES = 6


def parse_mesh_option(text: str, devices: int) -> Mesh:
    """The mesh of `dp=2,tp=4`, whose devices are numbered in row-major order.

    Raises HloError for what is none, or one of another number of devices.
    """
    axes: dict[str, int] = {}
    for part in text.split(","):
        match = _AXIS.fullmatch(part)
        if match is None or match[1] in axes or not int(match[2]):
            raise HloError(
                f"'{text}' is not a mesh", help="name each axis once, with its size: dp=2,tp=4"
            )
        axes[match[1]] = int(match[2])
    mesh = Mesh(tuple(axes.items()))
    if mesh.device_count != devices:
        raise HloError(
            f"the mesh {text} has {counted(mesh.device_count, 'device')}, "
            f"the program is for {devices}"
        )
    return mesh


Axes = tuple[tuple[str, ...], ...]
"""The axes along which each dimension is cut."""


def in_axes(shards: Shards, mesh: Mesh) -> str | None:
    """A sharding as `[{dp}, {}, {tp}]`; None where the axes of the mesh do not tell it."""
    axes = dimension_axes(shards, mesh)
    if axes is None:
        return None
    text = axes_text(axes)
    return text if len(set(shards.groups)) == 1 else f"{text} manual"


def axes_text(axes: Axes) -> str:
    """`[{dp}, {}, {tp, sp}]`."""
    entries = ["{" + ", ".join(own) + "}" for own in axes]
    return f"[{', '.join(entries)}]"


@lru_cache(4096)
def dimension_axes(shards: Shards, mesh: Mesh) -> Axes | None:
    """The axes along which each dimension is cut, the outermost first; None where none tell.

    O(devices · sequences of axes), once.
    """
    coordinates = _coordinates(mesh)
    if None in shards.places or len(shards.places) != len(coordinates):
        return None
    entries = []
    for dimension, count in enumerate(shards.counts):
        places = [place[dimension] for place in shards.places if place is not None]
        axes = _axes_of(places, count, mesh, coordinates)
        if axes is None:
            return None
        entries.append(axes)
    return tuple(entries)


def _coordinates(mesh: Mesh) -> list[dict[str, int]]:
    """The coordinates of each device, by its number."""
    found = mesh_coordinates(mesh)
    return [found[device] for device in sorted(found)]


def _axes_of(
    places: Sequence[int], count: int, mesh: Mesh, coordinates: Sequence[dict[str, int]]
) -> tuple[str, ...] | None:
    for axes in _sequences(mesh, count):
        sizes = dict(mesh.axes)
        numbers = []
        for own in coordinates:
            number = 0
            for axis in axes:
                number = number * sizes[axis] + own[axis]
            numbers.append(number)
        if numbers == list(places):
            return axes
    return None


def _sequences(mesh: Mesh, count: int) -> Iterator[tuple[str, ...]]:
    """Sequences of axes that cut a dimension into `count` parts."""
    sizes = {name: size for name, size in mesh.axes[:_MOST_AXES] if size > 1}
    if count == 1:
        yield ()
        return
    for length in range(1, len(sizes) + 1):
        for axes in permutations(sizes, length):
            if prod(sizes[axis] for axis in axes) == count:
                yield axes


def axes_of_groups(groups: Sequence[Sequence[int]], mesh: Mesh) -> tuple[str, ...]:
    """The axes along which the devices of groups differ; empty where groups are not all such."""
    coordinates = _coordinates(mesh)
    if any(not 0 <= device < len(coordinates) for group in groups for device in group):
        return ()
    sizes = dict(mesh.axes)
    wanted = {frozenset(group) for group in groups}
    differing = {
        axis
        for group in groups
        for axis in sizes
        if len({coordinates[device][axis] for device in group}) > 1
    }
    for length in range(1, len(differing) + 1):
        for axes in combinations([axis for axis in sizes if axis in differing], length):
            if _groups_along(axes, coordinates) == wanted:
                return axes
    return tuple(axis for axis in sizes if axis in differing)


def _groups_along(
    axes: Sequence[str], coordinates: Sequence[dict[str, int]]
) -> set[frozenset[int]]:
    groups: dict[tuple[int, ...], set[int]] = {}
    for device, own in enumerate(coordinates):
        key = tuple(value for axis, value in own.items() if axis not in axes)
        groups.setdefault(key, set()).add(device)
    return {frozenset(group) for group in groups.values()}
