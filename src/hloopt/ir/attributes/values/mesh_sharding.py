"""Named shardings: `{mesh['a'=2,'b'=4], [{'a'}, {}], unreduced={'b'}}`, as XLA prints them."""

from __future__ import annotations

import re
from itertools import pairwise

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.values.numbers import parse_int
from hloopt.ir.attributes.values.replica_groups import (
    AXES,
    DEVICE_IDS,
    Mesh,
    SubAxis,
    parse_mesh,
    parse_sub_axis,
)
from hloopt.ir.attributes.values.tokens import malformed
from hloopt.patterns import pattern

_ROLES = ("replicated", "unreduced", "manual")
_REDUCTIONS = ("", "sum", "max", "min")
_MAXIMAL = pattern(r"\{maximal_mesh\[device_id=(-?\d+)\]")
_HEAD = pattern(rf"\{{mesh\[({AXES})\](?:,device_ids=\(({DEVICE_IDS})\))?,?")
_SHORT = pattern(r"(replicated|manual|unreduced)(?:=([a-z]+))?(?=[,}])")
_DIMENSIONS = pattern(r"\[((?:\{[^{}]*\}(?:,\{[^{}]*\})*)?)\]")
_ROLE = pattern(r",(?:(replicated|manual)=|(unreduced)(?:=([a-z]*))?)\{([^{}]*)\}")


def canonical_mesh_sharding(dense: str, text: str) -> tuple[str, int]:
    """The sharding at the beginning of `dense`, without its closing brace, and where it ends.

    `text` is what messages show.
    """
    maximal = _MAXIMAL.match(dense)
    if maximal:
        return f"{{maximal_mesh[device_id={parse_int(maximal[1])}]", maximal.end()
    head = _HEAD.match(dense)
    if head is None:
        raise malformed("a sharding {mesh['axis'=size,…], [{'axis'}, …]}", text)
    mesh = parse_mesh(head[1], head[2], text)
    short = _SHORT.match(dense, head.end())
    if short:
        return f"{{{mesh.text}, {_with_reduction(short[1], short[2], text)}", short.end()
    return _axes_of_dimensions(dense, head.end(), mesh, text)


def _axes_of_dimensions(dense: str, position: int, mesh: Mesh, text: str) -> tuple[str, int]:
    dimensions = _DIMENSIONS.match(dense, position)
    if dimensions is None:
        raise malformed("[{'axis', …}, …], one entry for each dimension,", text)
    used: list[SubAxis] = []
    entries = [_dimension(entry, mesh, used, text) for entry in _entries(dimensions[1])]
    position = dimensions.end()
    roles: dict[str, str] = {}
    reductions: dict[str, str] = {}
    while role := _ROLE.match(dense, position):
        position = role.end()
        name = role[1] or role[2]
        if name in roles:
            raise HloSyntaxError(f"the sharding '{text}' has '{name}' twice")
        axes = [parse_sub_axis(axis, mesh, text) for axis in role[4].split(",") if axis]
        _check_sorted(axes, mesh, text)
        used += axes
        roles[name] = ", ".join(axis.text for axis in axes)
        reductions[name] = _with_reduction(name, role[3], text)
    _check_disjoint(used, mesh, text)
    return f"{{{mesh.text}, {_format(entries, roles, reductions, mesh)}", position


def _format(
    entries: list[str], roles: dict[str, str], reductions: dict[str, str], mesh: Mesh
) -> str:
    parts = [f"[{', '.join(entries)}]"]
    for name in _ROLES:
        if roles.get(name):
            kind = reductions[name]
            parts.append(f"{kind}{'' if '=' in kind else '='}{{{roles[name]}}}")
    everything = ", ".join(f"'{name}'" for name, _ in mesh.axes)
    if not entries and len(parts) == 1:
        return "replicated"
    for name in ("unreduced", "manual"):
        if not entries and len(parts) == 2 and roles.get(name) == everything:
            return reductions[name]
    return ", ".join(parts)


def _with_reduction(role: str, reduction: str | None, text: str) -> str:
    """A role and the kind of its reduction, which only `unreduced` has; a sum is not printed."""
    if (reduction or "") not in (_REDUCTIONS if role == "unreduced" else ("",)):
        raise HloSyntaxError(f"unknown reduction '{reduction}' in '{text}'")
    return role if reduction in (None, "", "sum") else f"{role}={reduction}"


def _entries(text: str) -> list[str]:
    return re.findall(r"\{([^{}]*)\}", text)


def _dimension(entry: str, mesh: Mesh, used: list[SubAxis], text: str) -> str:
    """One entry of the dimensions: axes, and `?` behind them where it is open."""
    names = entry.split(",") if entry else []
    is_open = bool(names) and names[-1] == "?"
    axes = [parse_sub_axis(name, mesh, text) for name in (names[:-1] if is_open else names)]
    for axis, following in pairwise(axes):
        if following.axis == axis.axis and following.pre_size == axis.pre_size * axis.size:
            raise HloSyntaxError(f"{axis.text} and {following.text} are one part in '{text}'")
    used += axes
    return "{" + ", ".join([axis.text for axis in axes] + ["?"] * is_open) + "}"


def _check_sorted(axes: list[SubAxis], mesh: Mesh, text: str) -> None:
    names = [name for name, _ in mesh.axes]
    keys = [(names.index(axis.axis), axis.pre_size) for axis in axes]
    if keys != sorted(keys):
        raise HloSyntaxError(f"axes stand in another order than in the mesh of '{text}'")


def _check_disjoint(used: list[SubAxis], mesh: Mesh, text: str) -> None:
    """No axis, and no part of one, can be used twice."""
    sizes = dict(mesh.axes)
    parts: dict[str, list[tuple[int, int]]] = {}
    for axis in used:
        begin = axis.pre_size or 1
        end = begin * (axis.size or sizes[axis.axis])
        if any(begin < other[1] and other[0] < end for other in parts.get(axis.axis, ())):
            raise HloSyntaxError(f"the sharding '{text}' uses {axis.text} twice")
        parts.setdefault(axis.axis, []).append((begin, end))
