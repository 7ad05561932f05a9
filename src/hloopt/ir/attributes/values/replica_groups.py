"""Replica groups: which devices take part together in a collective.

The text has three forms, and printing keeps the form: lists of devices, an iota tile
`[2,4]<=[4,2]T(1,0)`, and axes of a mesh `mesh['a'=2,'b'=4] {'a'}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import NamedTuple

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.values.numbers import (
    format_int_lists,
    parse_int,
    parse_int_lists,
    split_ints,
)
from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern

Groups = tuple[tuple[int, ...], ...]
MOST_DEVICES = 1 << 16
"""The most devices a program is run on; each takes memory of its own. A formula of groups that
stands for more is not written out."""


class IotaTile(NamedTuple):
    """0, 1, 2, … reshaped to `reshape`, transposed by `permutation`, reshaped to `dimensions`."""

    dimensions: tuple[int, ...]
    reshape: tuple[int, ...]
    permutation: tuple[int, ...]

    def devices(self) -> list[int]:
        """The devices in row-major order of the tile. O(devices)."""
        strides = row_major_strides(self.reshape)
        return walk([(self.reshape[d], strides[d]) for d in self.permutation])

    @property
    def text(self) -> str:
        dimensions, reshape, permutation = (
            ",".join(map(str, numbers))
            for numbers in (self.dimensions, self.reshape, self.permutation)
        )
        transpose = f"T({permutation})" if len(self.reshape) > 1 else ""
        return f"[{dimensions}]<=[{reshape}]{transpose}"


class SubAxis(NamedTuple):
    """An axis of a mesh, or the part of `size` that has `pre_size` before it; 0 for the whole."""

    axis: str
    pre_size: int = 0
    size: int = 0

    @property
    def text(self) -> str:
        return f"'{self.axis}'" + (f":({self.pre_size}){self.size}" if self.size else "")


class Mesh(NamedTuple):
    """Named axes with their sizes; `devices` is empty where they count up from 0."""

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...] | IotaTile = ()

    @property
    def device_count(self) -> int:
        return prod(size for _, size in self.axes)

    @property
    def text(self) -> str:
        axes = ",".join(f"'{name}'={size}" for name, size in self.axes)
        match self.devices:
            case IotaTile(_, reshape, permutation):
                numbers = ",".join(map(str, reshape)), ",".join(map(str, permutation))
                order = f", device_ids=([{numbers[0]}]T({numbers[1]}))"
            case ():
                order = ""
            case devices:
                order = f", device_ids=({','.join(map(str, devices))})"
        return f"mesh[{axes}]{order}"


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Groups of devices in the form they were written in.

    Of `explicit`, `tile` and `mesh` the one that belongs to the form is set. No groups at all
    stand for one group of every device, whose number the module knows.
    """

    explicit: Groups = ()
    tile: IotaTile | None = None
    mesh: Mesh | None = None
    mesh_axes: tuple[SubAxis, ...] = ()
    _expanded: list[Groups] = field(default_factory=list, compare=False, repr=False)

    @property
    def group_count(self) -> int:
        """The number of groups there are; 0 for the one group of every device."""
        if self.tile:
            return self.tile.dimensions[0]
        if self.mesh:
            return self.mesh.device_count // self.group_size
        return len(self.explicit)

    @property
    def group_size(self) -> int:
        """Devices in the largest group; 0 for the one group of every device."""
        if self.tile:
            return self.tile.dimensions[1]
        if self.mesh:
            sizes = dict(self.mesh.axes)
            return prod(axis.size or sizes[axis.axis] for axis in self.mesh_axes)
        return max(map(len, self.explicit), default=0)

    @property
    def named_count(self) -> int:
        """The number of devices the groups name; 0 for the one group of every device. O(groups)."""
        return sum(map(len, self.explicit)) or self.group_count * self.group_size

    def lists(self) -> Groups:
        """The devices of every group. O(devices) the first time."""
        if not self._expanded:
            self._expanded.append(self._expand())
        return self._expanded[0]

    def _expand(self) -> Groups:
        if self.tile:
            devices = self.tile.devices()
        elif self.mesh:
            devices = _mesh_order(self.mesh, self.mesh_axes)
        else:
            return self.explicit
        size = self.group_size
        return tuple(tuple(devices[i : i + size]) for i in range(0, len(devices), size))

    @property
    def text(self) -> str:
        """The groups as XLA prints them."""
        if self.tile:
            return self.tile.text
        if self.mesh:
            return f"{self.mesh.text} {{{','.join(axis.text for axis in self.mesh_axes)}}}"
        return format_int_lists(self.explicit)


def row_major_strides(sizes: tuple[int, ...]) -> list[int]:
    """The distances between neighbours of each dimension when the last one is dense."""
    return [prod(sizes[d + 1 :]) for d in range(len(sizes))]


def walk(dimensions: list[tuple[int, int]]) -> list[int]:
    """The offsets visited by nested loops over (size, stride), the last one innermost."""
    offsets = [0]
    for size, stride in dimensions:
        offsets = [base + step * stride for base, step in product(offsets, range(size))]
    return offsets


def _mesh_order(mesh: Mesh, grouped: tuple[SubAxis, ...]) -> list[int]:
    """The devices of a mesh, those that differ only in the `grouped` axes side by side."""
    strides = row_major_strides(tuple(size for _, size in mesh.axes))
    inner: dict[SubAxis, tuple[int, int]] = {}
    outer: list[tuple[int, int]] = []
    for (name, size), stride in zip(mesh.axes, strides, strict=True):
        done = 1
        for part in sorted((a for a in grouped if a.axis == name), key=lambda a: a.pre_size):
            pre, length = part.pre_size or 1, part.size or size
            outer.append((pre // done, stride * (size // pre)))
            done = pre * length
            inner[part] = (length, stride * (size // done))
        outer.append((size // done, stride))
    positions = walk(outer + [inner[axis] for axis in grouped])
    if isinstance(mesh.devices, IotaTile):
        devices = mesh.devices.devices()
    elif mesh.devices:
        devices = list(mesh.devices)
    else:
        return positions
    return [devices[position] for position in positions]


# -- reading --------------------------------------------------------------------------------------

_AROUND_ARROW = pattern(r" ?(<=|T(?=\()) ?")
AXES = r"[^\[\]]*"
"""The axes of a mesh, as far as brackets tell."""
DEVICE_IDS = r"[^()]*(?:\([^()]*\))?"
_MESH = pattern(rf"mesh\[({AXES})\](?:,device_ids=\(({DEVICE_IDS})\))?\{{([^{{}}]*)\}}")
_MESH_AXIS = pattern(r"(?:'([^']+)'|\"([^\"]+)\")=(\d+)")
_MESH_IOTA = pattern(r"\[(\d+(?:,\d+)*)\](?:T\((\d+(?:,\d+)*)\))?")
_SUB_AXIS = pattern(r"(?:'([^']+)'|\"([^\"]+)\")(?::\((\d+)\)(\d+))?")


@memoized
def parse_replica_groups(text: str) -> ReplicaGroups:
    """`{{0,1},{2,3}}`, `[2,2]<=[4]`, `[2,2]<=[2,2]T(1,0)` or `mesh['a'=2,'b'=2] {'a'}`."""
    dense = _without_blanks(text)
    if dense.startswith("{"):
        return ReplicaGroups(explicit=parse_int_lists(dense))
    if dense.startswith("mesh"):
        return _parse_mesh_groups(dense, text)
    tile = parse_iota_tile(dense)
    if len(tile.dimensions) != 2:
        raise malformed("replica groups [groups,size]<=[shape]", text)
    return ReplicaGroups(tile=tile)


def _are_numbers(text: str) -> bool:
    """Whether `text` is `1,0`."""
    return text.isascii() and all(map(str.isdecimal, text.split(",")))


def _without_blanks(text: str) -> str:
    dense = compact(text)
    return _AROUND_ARROW.sub(r"\1", dense) if " " in dense else dense


@memoized
def parse_iota_tile(text: str) -> IotaTile:
    """`[2,4]<=[4,2]T(1,0)`."""
    sizes, arrow, formula = _without_blanks(text).partition("]<=[")
    shape, transpose, permutation = formula.partition("]T(")
    parts = [sizes[1:], shape if transpose else formula[:-1]]
    if transpose:
        parts.append(permutation[:-1])
    is_closed = formula[-1:] == (")" if transpose else "]")
    if not (arrow and sizes[:1] == "[" and is_closed and all(map(_are_numbers, parts))):
        raise malformed("devices [dimensions]<=[shape]T(permutation)", text)
    dimensions, reshape, *order = map(split_ints, parts)
    if bool(order) == (len(reshape) == 1):
        raise HloSyntaxError(f"'{text}' needs T(…) exactly when it reshapes to several dimensions")
    tile = IotaTile(dimensions, reshape, order[0] if order else (0,))
    _check_tile(tile, text)
    return _simplified(tile)


def _simplified(tile: IotaTile) -> IotaTile:
    """The same devices with the fewest reshaped dimensions, as XLA keeps them."""
    kept = [d for d, size in enumerate(tile.reshape) if size != 1]
    runs: list[list[int]] = []  # of dimensions that stay neighbours
    for d in (kept.index(d) for d in tile.permutation if d in kept):
        if runs and runs[-1][-1] + 1 == d:
            runs[-1].append(d)
        else:
            runs.append([d])
    order = sorted(range(len(runs)), key=lambda run: runs[run][0])
    reshape = tuple(prod(tile.reshape[kept[d]] for d in runs[run]) for run in order)
    permutation = tuple(order.index(run) for run in range(len(runs)))
    return IotaTile(tile.dimensions, reshape or (1,), permutation or (0,))


def _check_tile(tile: IotaTile, text: str) -> None:
    if sorted(tile.permutation) != list(range(len(tile.reshape))):
        raise HloSyntaxError(f"T(…) in '{text}' is not a permutation of the dimensions")
    if prod(tile.dimensions) != prod(tile.reshape):
        raise HloSyntaxError(
            f"'{text}' has {prod(tile.dimensions)} places for {prod(tile.reshape)} devices"
        )
    if prod(tile.dimensions) < 1:
        raise HloSyntaxError(f"'{text}' has no devices")


def _parse_mesh_groups(dense: str, text: str) -> ReplicaGroups:
    match = _MESH.fullmatch(dense)
    if match is None:
        raise malformed("replica groups mesh['axis'=size,…] {'axis',…}", text)
    mesh = parse_mesh(match[1], match[2], text)
    axes = parse_axes(match[3], mesh, text)
    groups = ReplicaGroups(mesh=mesh, mesh_axes=axes)
    if groups.group_size < 2:
        raise HloSyntaxError(f"the groups of '{text}' need more than one device")
    return groups


def parse_mesh(axes: str, device_ids: str | None, text: str) -> Mesh:
    """The mesh of `'a'=2,'b'=4` and perhaps of device ids; `text` is what messages show."""
    found: dict[str, int] = {}
    for part in axes.split(",") if axes else ():
        axis = _MESH_AXIS.fullmatch(part)
        if axis is None:
            raise malformed("mesh axes", text)
        name = axis[1] or axis[2]
        if name in found:
            raise HloSyntaxError(f"the mesh of '{text}' has the axis '{name}' twice")
        found[name] = _count(axis[3], text)
    sizes = tuple(found.items())
    return Mesh(sizes, _mesh_devices(device_ids, sizes, text))


def _count(digits: str, text: str) -> int:
    """The number of a mesh; XLA dies of one that a signed integer of 64 bits cannot hold."""
    number = parse_int(digits)
    if number < 0:
        raise HloSyntaxError(f"the number {digits} in '{text}' does not fit into 63 bits")
    return number


def parse_axes(axes: str, mesh: Mesh, text: str) -> tuple[SubAxis, ...]:
    """Axes `'a','b':(1)2` of a mesh; `text` is what messages show."""
    return tuple(parse_sub_axis(axis, mesh, text) for axis in axes.split(",") if axes)


def parse_sub_axis(axis: str, mesh: Mesh, text: str) -> SubAxis:
    """`'a'` or `'a':(2)4`; a name can be its number in the mesh."""
    match = _SUB_AXIS.fullmatch(axis)
    if match is None:
        raise malformed("an axis of a mesh", text)
    names = [name for name, _ in mesh.axes]
    name = match[1] or match[2]
    if name not in names and name.isdecimal() and len(name) < 9 and int(name) < len(names):
        name = names[int(name)]
    if name not in names:
        raise HloSyntaxError(f"the mesh of '{text}' has no axis '{name}'")
    if match[3] is None:
        return SubAxis(name)
    whole, before, size = dict(mesh.axes)[name], parse_int(match[3]), parse_int(match[4])
    if before < 1 or size < 2 or whole % (before * size) or size == whole:
        raise HloSyntaxError(f"'{name}':({before}){size} is not a part of the axis in '{text}'")
    return SubAxis(name, before, size)


def _mesh_devices(
    ids: str | None, axes: tuple[tuple[str, int], ...], text: str
) -> tuple[int, ...] | IotaTile:
    if ids is None:
        return ()
    count = prod(size for _, size in axes)
    iota = _MESH_IOTA.fullmatch(ids)
    if iota:
        reshape = split_ints(iota[1])
        if (iota[2] is None) != (len(reshape) == 1):
            raise malformed("device_ids=([sizes]T(order))", text)
        tile = IotaTile((count,), reshape, split_ints(iota[2] or "0"))
        _check_tile(tile, text)
        tile = _simplified(tile)
        return tile if len(tile.reshape) > 1 else ()
    if not re.fullmatch(r"\d+(?:,\d+)*", ids):
        raise malformed("device_ids=(…)", text)
    devices = tuple(_count(number, text) for number in ids.split(","))
    if len(devices) != count:
        raise HloSyntaxError(f"'{text}' has {len(devices)} device_ids for {count} devices")
    return devices if devices != tuple(range(count)) else ()
