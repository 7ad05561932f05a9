"""The devices of a sharding's tiles, in one order of its subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from hloopt.ir.attributes.values.replica_groups import IotaTile, row_major_strides, walk

SUBGROUPS = ("maximal", "manual", "unreduced", "replicated")
"""The roles of the last dimensions of a tile, in XLA's order."""

_MOST_DEVICES = 1 << 20  # a larger assignment keeps the form it is written in


class Tiles(NamedTuple):
    """Tile dimensions, those of `subgroups` last, and the device of each tile."""

    dimensions: tuple[int, ...]
    devices: IotaTile | tuple[int, ...]
    subgroups: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        dimensions = ",".join(map(str, self.dimensions))
        if isinstance(self.devices, IotaTile):
            return f"devices={self.devices._replace(dimensions=self.dimensions).text}"
        return f"devices=[{dimensions}]{','.join(map(str, self.devices))}"

    @property
    def tile_count(self) -> int:
        """Tiles the array is cut into, subgroups aside."""
        return prod(self.dimensions[: len(self.dimensions) - len(self.subgroups)])


def normalized(tiles: Tiles) -> Tiles:
    """`tiles` as XLA keeps them: subgroups in order, equal kinds merged, none of one device.

    The devices of a replicated subgroup count up. O(devices), or O(1) if nothing has to move.
    """
    rank = len(tiles.dimensions) - len(tiles.subgroups)
    sizes = tiles.dimensions[rank:]
    order = sorted(
        (d for d, size in enumerate(sizes) if size != 1),
        key=lambda d: SUBGROUPS.index(tiles.subgroups[d]),
    )
    merged: dict[str, int] = {}
    for d in order:
        merged[tiles.subgroups[d]] = merged.get(tiles.subgroups[d], 1) * sizes[d]
    dimensions = (*tiles.dimensions[:rank], *merged.values())
    is_replicated = "replicated" in merged
    if not 0 < prod(dimensions) <= _MOST_DEVICES or not (is_replicated or order != sorted(order)):
        return Tiles(dimensions, tiles.devices, tuple(merged))
    strides = row_major_strides(tiles.dimensions)
    axes = [*range(rank), *(rank + d for d in order)]
    offsets = walk([(tiles.dimensions[axis], strides[axis]) for axis in axes])
    before = _listed(tiles.devices)
    devices = [before[offset] for offset in offsets]
    if is_replicated:
        devices = _sorted_groups(devices, merged["replicated"])
    kept: IotaTile | tuple[int, ...] | None = tuple(devices)
    if devices == before:
        kept = tiles.devices
    elif isinstance(tiles.devices, IotaTile):
        kept = iota_of(devices) or kept
    assert kept is not None
    return Tiles(dimensions, kept, tuple(merged))


def _listed(devices: IotaTile | tuple[int, ...]) -> list[int]:
    return devices.devices() if isinstance(devices, IotaTile) else list(devices)


def _sorted_groups(devices: list[int], size: int) -> list[int]:
    """Each run of `size` devices in ascending order."""
    groups = (sorted(devices[i : i + size]) for i in range(0, len(devices), size))
    return [device for group in groups for device in group]


def iota_of(devices: Sequence[int]) -> IotaTile | None:
    """The reshaped and transposed 0, 1, 2, … that lists `devices`, if there is one. O(devices)."""
    count = len(devices)
    loops: list[tuple[int, int]] = []  # (size, stride), innermost first
    block = 1
    while block < count:
        stride = devices[block] - devices[0]
        size = 2
        while size * block < count and devices[size * block] - devices[0] == size * stride:
            size += 1
        loops.append((size, stride))
        block *= size
    loops.reverse()
    order = sorted(range(len(loops)), key=lambda loop: -loops[loop][1])
    reshape = tuple(loops[loop][0] for loop in order)
    if [loops[loop][1] for loop in order] != row_major_strides(reshape):
        return None
    if walk(loops) != list(devices):
        return None
    permutation = tuple(order.index(loop) for loop in range(len(loops)))
    return IotaTile((count,), reshape or (1,), permutation or (0,))
