"""Meshes and replica groups as messages."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.values.replica_groups import (
    IotaTile,
    Mesh,
    ReplicaGroups,
    SubAxis,
    parse_replica_groups,
)
from hloopt.patterns import pattern

_AXIS_NAME = pattern(r"[^'\"{}\[\],\x00-\x1f\x7f]+")
"""The names of axes that text can have."""


def read_replica_groups(proto: Any) -> str:
    """The groups of a collective, in the form they have in the HloInstructionProto."""
    match proto.WhichOneof("replica_group_list"):
        case "iota_collective_device_list":
            found = proto.iota_collective_device_list
            dimensions = (found.num_replica_groups, found.num_devices_per_group)
            reshape = tuple(found.iota_reshape_dims)
            return IotaTile(dimensions, reshape, tuple(found.iota_transpose_perm)).text
        case "mesh_axes_replica_group_list":
            found = proto.mesh_axes_replica_group_list
            mesh = read_mesh(found.mesh)
            return ReplicaGroups(mesh=mesh, mesh_axes=read_axes(found.axes, mesh)).text
        case "collective_device_list":
            groups = proto.collective_device_list.replica_groups
        case _:
            groups = proto.replica_groups  # as XLA wrote them until 2024
    return ReplicaGroups(explicit=tuple(tuple(group.replica_ids) for group in groups)).text


def write_replica_groups(proto: Any, text: str) -> None:
    groups = parse_replica_groups(text)
    if groups.tile:
        target = proto.iota_collective_device_list
        target.num_replica_groups, target.num_devices_per_group = groups.tile.dimensions
        target.iota_reshape_dims.extend(groups.tile.reshape)
        target.iota_transpose_perm.extend(groups.tile.permutation)
    elif groups.mesh:
        target = proto.mesh_axes_replica_group_list
        write_mesh(target.mesh, groups.mesh)
        write_axes(target.axes, groups.mesh_axes, groups.mesh)
    else:
        proto.collective_device_list.SetInParent()
        for group in groups.explicit:
            proto.collective_device_list.replica_groups.add(replica_ids=group)


def read_mesh(proto: Any) -> Mesh:
    """The mesh in a MeshProto. Raises HloSyntaxError."""
    axes = tuple((axis.name, axis.size) for axis in proto.axes)
    for name, _ in axes:
        if not _AXIS_NAME.fullmatch(name):
            raise HloSyntaxError(f"text cannot have a mesh with an axis '{name}'")
    if proto.HasField("iota_transform"):
        found = proto.iota_transform
        count = (prod(size for _, size in axes),)
        return Mesh(axes, IotaTile(count, tuple(found.reshape_dims), tuple(found.transpose_perm)))
    return Mesh(axes, tuple(proto.device_ids))


def write_mesh(proto: Any, mesh: Mesh) -> None:
    proto.SetInParent()
    for name, size in mesh.axes:
        proto.axes.add(name=name, size=size)
    if isinstance(mesh.devices, IotaTile):
        proto.iota_transform.reshape_dims.extend(mesh.devices.reshape)
        proto.iota_transform.transpose_perm.extend(mesh.devices.permutation)
    else:
        proto.device_ids.extend(mesh.devices)


def read_axes(proto: Any, mesh: Mesh) -> tuple[SubAxis, ...]:
    """The axes of a mesh that a repeated AxisRefProto names. Raises HloSyntaxError."""
    axes: list[SubAxis] = []
    for axis in proto:
        if not 0 <= axis.mesh_axis_index < len(mesh.axes):
            raise HloSyntaxError(f"{mesh.text} has no axis of number {axis.mesh_axis_index}")
        name = mesh.axes[axis.mesh_axis_index][0]
        part = axis.sub_axis_info
        axes.append(SubAxis(name, part.pre_size, part.size))
    return tuple(axes)


def write_axes(proto: Any, axes: Iterable[SubAxis], mesh: Mesh) -> None:
    numbers = {name: number for number, (name, _) in enumerate(mesh.axes)}
    for axis in axes:
        target = proto.add(mesh_axis_index=numbers[axis.axis])
        if axis.size:
            target.sub_axis_info.pre_size = axis.pre_size
            target.sub_axis_info.size = axis.size
