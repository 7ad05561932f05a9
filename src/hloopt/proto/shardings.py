"""Shardings as messages: OpSharding, and the form with a mesh inside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.values.metadata import format_sharding_metadata, parse_metadata
from hloopt.ir.attributes.values.numbers import split_ints
from hloopt.ir.attributes.values.replica_groups import IotaTile, Mesh, parse_axes, parse_mesh
from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.attributes.values.strings import split_dictionaries
from hloopt.ir.attributes.values.tile_devices import Tiles
from hloopt.ir.attributes.values.tokens import malformed
from hloopt.patterns import pattern
from hloopt.proto.groups import read_axes, read_mesh, write_axes, write_mesh
from hloopt.proto.metadata import read_metadata, write_metadata
from hloopt.proto.schema import enum_names, enum_numbers

_SIMPLE = ("REPLICATED", "MANUAL", "UNKNOWN", "UNREDUCED")
_AXES = ("replicated", "unreduced", "manual")


def read_sharding(proto: Any) -> str:
    """The text of the OpSharding `proto`. Raises HloSyntaxError."""
    if _type(proto.type) == "TUPLE":
        text = f"{{{', '.join(map(_read_single, proto.tuple_shardings))}}}"
    else:
        text = _read_single(proto)
    return canonical_sharding(text)


def _type(number: int) -> str:
    name = enum_names("OpSharding.Type").get(number)
    if name is None:
        raise HloSyntaxError(f"a sharding has the unknown type {number}")
    return name


def _read_single(proto: Any) -> str:
    if proto.HasField("named_sharding"):
        return _read_named(proto.named_sharding)
    kind = _type(proto.type)
    if kind in _SIMPLE:
        parts = [kind.lower()]
    elif kind == "MAXIMAL" and len(proto.tile_assignment_devices) == 1:
        parts = [f"maximal device={proto.tile_assignment_devices[0]}"]
    elif kind == "OTHER":
        parts = [_read_tile(proto)]
        if proto.last_tile_dims:
            names = ", ".join(_type(number).lower() for number in proto.last_tile_dims)
            parts.append(f"last_tile_dims={{{names}}}")
        elif proto.replicate_on_last_tile_dim:
            parts.append("last_tile_dim_replicate")
    else:
        raise HloSyntaxError(f"a sharding has the type {kind} and no device, or is nested")
    if proto.is_shard_group:
        relation = enum_names("OpSharding.ShardGroupType").get(proto.shard_group_type, "AS")
        parts.append(f"shard_{relation.lower()} {proto.shard_group_id}")
    if proto.metadata:
        parts.append(f"metadata={_metadata_text(proto.metadata)}")
    return "{" + " ".join(parts) + "}"


def _read_tile(proto: Any) -> str:
    dimensions = tuple(proto.tile_assignment_dimensions)
    devices: IotaTile | tuple[int, ...] = tuple(proto.tile_assignment_devices)
    if proto.iota_reshape_dims:
        reshape, permutation = proto.iota_reshape_dims, proto.iota_transpose_perm
        devices = IotaTile(dimensions, tuple(reshape), tuple(permutation))
    return Tiles(dimensions, devices).text


def _metadata_text(protos: Any) -> str:
    texts = [format_sharding_metadata(read_metadata(proto)) for proto in protos]
    return texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"


def _read_named(proto: Any) -> str:
    mesh = read_mesh(proto.mesh)
    if not mesh.axes and mesh.devices:
        parts = [f"maximal_mesh[device_id={proto.mesh.device_ids[0]}]"]
    else:
        parts = [mesh.text, *_read_dimensions(proto, mesh)]
    if proto.metadata:
        texts = [format_sharding_metadata(read_metadata(one)) for one in proto.metadata]
        parts.append(f"metadata={{{', '.join(texts)}}}")
    return f"{{{', '.join(parts)}}}"


def _read_dimensions(proto: Any, mesh: Mesh) -> Iterable[str]:
    others = {name: read_axes(getattr(proto, f"{name}_axes"), mesh) for name in _AXES}
    dimensions = []
    for dimension in proto.dim_shardings:
        axes = [axis.text for axis in read_axes(dimension.axes, mesh)]
        dimensions.append("{" + ", ".join(axes if dimension.is_closed else [*axes, "?"]) + "}")
    return [
        f"[{', '.join(dimensions)}]",
        *(f"{name}={{{', '.join(a.text for a in axes)}}}" for name, axes in others.items() if axes),
    ]


# -- writing --------------------------------------------------------------------------------------


def write_sharding(text: str, proto: Any, *, leaves: int | None = None) -> None:
    """Fill the OpSharding `proto`.

    `leaves` is the number of arrays of a tuple: a single sharding is that of each of them. Raises
    HloSyntaxError.
    """
    text = canonical_sharding(text)
    proto.SetInParent()
    elements = [] if text == "{}" else split_dictionaries(text)
    if elements is None and leaves is None:
        _write_single(text, proto)
        return
    proto.type = enum_numbers("OpSharding.Type")["TUPLE"]
    for element in [text] * max(leaves or 0, 1) if elements is None else elements:
        target = proto.tuple_shardings.add()
        _write_single(element, target)


_PART = pattern(
    r"(?P<word>replicated|manual|unknown|unreduced)(?![\w=])|maximal device=(?P<device>-?\d+)"
    r"|devices=\[(?P<tile>[\d,]+)\]"
    r"(?:<=\[(?P<reshape>[\d,]+)\](?:T\((?P<permutation>[\d,]+)\))?|(?P<devices>[-\d,]+))"
    r"|(?P<replicate>last_tile_dim_replicate)|last_tile_dims=\{(?P<subgroups>[a-z, ]+)\}"
    r"|shard_(?P<relation>as|like) (?P<group>\d+)"
)


def _write_single(text: str, proto: Any) -> None:
    if text.startswith(("{mesh", "{maximal_mesh")):
        _write_named(text, proto.named_sharding)
        return
    types = enum_numbers("OpSharding.Type")
    head, _, metadata = text[1:-1].partition("metadata=")
    for part in _PART.finditer(head):
        found = part.groupdict()
        if found["word"]:
            proto.type = types[found["word"].upper()]
        elif found["device"]:
            proto.type = types["MAXIMAL"]
            proto.tile_assignment_devices.append(int(found["device"]))
        elif found["tile"]:
            proto.type = types["OTHER"]
            proto.tile_assignment_dimensions.extend(split_ints(found["tile"]))
            if found["reshape"]:
                proto.iota_reshape_dims.extend(split_ints(found["reshape"]))
                proto.iota_transpose_perm.extend(split_ints(found["permutation"] or "0"))
            else:
                proto.tile_assignment_devices.extend(split_ints(found["devices"]))
        elif found["replicate"]:
            proto.replicate_on_last_tile_dim = True
        elif found["subgroups"]:
            names = found["subgroups"].split(", ")
            proto.last_tile_dims.extend(types[name.upper()] for name in names)
        else:
            proto.is_shard_group = True
            proto.shard_group_id = int(found["group"])
            relations = enum_numbers("OpSharding.ShardGroupType")
            proto.shard_group_type = relations[found["relation"].upper()]
    if metadata:
        _write_metadata(metadata, proto)


def _write_metadata(text: str, proto: Any) -> None:
    for one in split_dictionaries(text) or [text]:
        write_metadata(parse_metadata(one), proto.metadata.add())


_MESH = pattern(
    r"\{mesh\[([^\[\]]*)\](?:, ?device_ids=\(([^()]*(?:\([^()]*\))?)\))?,? ?(.*?)"
    r"(?:, metadata=(.*))?\}",
    re.S,
)
_DIMENSIONS = pattern(r"\[([^\[\]]*)\]")
_DIMENSION = pattern(r"\{([^{}]*)\}")


def _write_named(text: str, proto: Any) -> None:
    if text.startswith("{maximal_mesh"):
        head, _, metadata = text[1:-1].partition(", metadata=")
        proto.mesh.device_ids.append(int(head.removeprefix("maximal_mesh[device_id=")[:-1]))
        if metadata:
            _write_metadata(metadata, proto)
        return
    match = _MESH.fullmatch(text)
    if match is None:
        raise malformed("a sharding {mesh['axis'=size,…], …}", text)
    mesh = parse_mesh(match[1], match[2], text)
    write_mesh(proto.mesh, mesh)
    dimensions = _DIMENSIONS.match(match[3])
    if dimensions is None and match[3] != "replicated":
        if match[3] not in _AXES:
            raise HloSyntaxError(f"the sharding '{text}' cannot be written as a message")
        every = ",".join(f"'{name}'" for name, _ in mesh.axes)
        write_axes(getattr(proto, f"{match[3]}_axes"), parse_axes(every, mesh, text), mesh)
    for dimension in _DIMENSION.findall(dimensions[1]) if dimensions else ():
        axes = [axis.strip() for axis in dimension.split(",") if axis.strip()]
        target = proto.dim_shardings.add(is_closed="?" not in axes)
        axes = [axis for axis in axes if axis != "?"]
        write_axes(target.axes, parse_axes(",".join(axes), mesh, text), mesh)
    for name in _AXES:
        axes_of = re.search(rf"\b{name}={{([^{{}}]*)}}", match[3])
        if axes_of:
            axes_text = axes_of[1].replace(" ", "")
            write_axes(getattr(proto, f"{name}_axes"), parse_axes(axes_text, mesh, text), mesh)
    if match[4]:
        _write_metadata(match[4], proto)
