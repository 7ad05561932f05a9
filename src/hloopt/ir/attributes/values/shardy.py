"""Shardings in Shardy's words, as JAX keeps them in frontend attributes until Shardy has run.

xla.sdy.meshes={mesh = #sdy.mesh<["data"=2, "expert"=4]>}
xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{}, {"expert"}]>]>"
xla.sdy.manual_axes="#sdy<manual_axes{"data", "expert"}>"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hloopt.ir.attributes.values.replica_groups import Mesh, SubAxis, parse_axes, parse_mesh
from hloopt.ir.attributes.values.tokens import malformed
from hloopt.patterns import pattern


class ShardySharding(NamedTuple):
    """Along which axes of a mesh each dimension of an array is cut."""

    mesh: Mesh
    dimensions: tuple[tuple[SubAxis, ...], ...]


_MESH_BODY = r"<\[([^\[\]]*)\](?:,device_ids=\[([\d,]*)\])?>"
_MESH = pattern(rf"([\w.$\"-]+)=#sdy\.mesh{_MESH_BODY}")
_SHARDING = pattern(
    rf"<(?:@([\w.$\"-]+)|mesh{_MESH_BODY}),\[((?:\{{[^{{}}]*\}}(?:p\d+)?,?)*)\]"
    r"(?:,[a-z]+=\{[^{}]*\})*>"
)
_ENTRY = pattern(r"\{([^{}]*)\}")
_MANUAL_AXES = pattern(r"#sdy<manual_axes\{([^{}]*)\}>")


def parse_shardy_meshes(text: str) -> dict[str, Mesh]:
    """The meshes of `{name = #sdy.mesh<["axis"=size, …]>, …}` by name."""
    dense = _plain(text)
    return {name.strip('"'): _mesh(axes, ids, text) for name, axes, ids in _MESH.findall(dense)}


def parse_shardy_shardings(text: str, meshes: Mapping[str, Mesh]) -> list[ShardySharding]:
    """The shardings of `#sdy.sharding_per_value<[<@mesh, [{"axis"}, …]>, …]>`, one for each value,
    or of a single `#sdy.sharding<@mesh, […]>`."""
    found = []
    for name, axes, ids, entries in _SHARDING.findall(_plain(text)):
        mesh = meshes.get(name.strip('"')) if name else _mesh(axes, ids, text)
        if mesh is None:
            raise malformed("a sharding over one of the meshes in the header", text)
        dimensions = [_axes(entry, mesh, text) for entry in _ENTRY.findall(entries)]
        found.append(ShardySharding(mesh, tuple(dimensions)))
    return found


def parse_manual_axes(text: str) -> tuple[str, ...]:
    """The names in `#sdy<manual_axes{"axis", …}>`."""
    match = _MANUAL_AXES.fullmatch(_plain(text))
    if match is None:
        raise malformed('#sdy<manual_axes{"axis", …}>', text)
    return tuple(name.strip('"') for name in match[1].split(",") if name)


def _plain(text: str) -> str:
    """Without white space and escapes of quotes."""
    return "".join(text.replace('\\"', '"').split())


def _mesh(axes: str, ids: str, text: str) -> Mesh:
    return parse_mesh(axes, ids or None, text)


def _axes(entry: str, mesh: Mesh, text: str) -> tuple[SubAxis, ...]:
    return parse_axes(entry.rstrip("?").rstrip(","), mesh, text)
