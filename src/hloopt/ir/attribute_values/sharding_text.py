"""The text of a sharding as XLA prints it: blanks, order of the parts, quotes.

The form (list of devices, iota, mesh) stays. Whether a sharding fits its instruction is not
looked at.
"""

from __future__ import annotations

import re
from math import prod

from hloopt.diagnostics import HloSyntaxError, did_you_mean
from hloopt.ir.attribute_values.numbers import split_ints
from hloopt.ir.attribute_values.replica_groups import parse_iota_tile
from hloopt.ir.attribute_values.strings import dictionary_end
from hloopt.ir.attribute_values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern

_KINDS = ("replicated", "manual", "unknown", "unreduced", "maximal")
_SUBGROUPS = ("maximal", "replicated", "manual", "unreduced")
_BETWEEN = (",", "}")  # what follows an element of a list
_FLAGS = (*_KINDS, "last_tile_dim_replicate")
_LIST = r"\[\d+(?:,\d+)*\]"
_PART = pattern(
    rf"""(?: (?P<group>shard_as|shard_like)\ (?P<number>\d+)
      | devices=(?P<tile>{_LIST})
        (?: \ ?<=\ ?(?P<reshape>{_LIST})(?:\ ?T\ ?\((?P<permutation>[\d,]+)\))?
          | (?P<devices>\d+(?:,\d+)*))
      | device=(?P<device>\d{{1,18}})(?!\d)
      | last_tile_dims=(?P<subgroups>\{{[a-z_]*(?:,[a-z_]+)*\}})
      | (?P<metadata>metadata=)(?=\{{)
      | (?P<flag>[a-z_]+)(?![a-z_=])
    )(?:\ |(?=[}}{{a-z]))""",
    re.X,
)


@memoized
def canonical_sharding(text: str) -> str:
    """A single sharding, or a tuple `{{…}, {…}}` of them, as XLA prints it. Linear."""
    if not (text.startswith("{") and text.endswith("}")):
        raise malformed("a sharding {…}", text)
    dense = compact(text)
    if not dense.startswith("{{"):
        return "{}" if dense == "{}" else _single(dense, text)
    elements: list[str] = []
    position = 1
    while True:
        end = dictionary_end(dense, position)
        if end is None or dense[end : end + 1] not in _BETWEEN:
            raise malformed("a tuple of shardings {{…}, {…}}", text)
        elements.append(_single(dense[position:end], text))
        if dense[end] == "}":
            break
        position = end + 1
    if end + 1 != len(dense):
        raise malformed("a tuple of shardings {{…}, {…}}", text)
    return "{" + "".join(_index(i) + e for i, e in enumerate(elements)) + "}"


def _index(number: int) -> str:
    if not number:
        return ""
    return ", " if number % 5 else f", /*index={number}*/"


def _single(dense: str, text: str) -> str:
    if dense.startswith(("{mesh", "{maximal_mesh")):
        return _mesh(dense, text)
    parts = _parts(dense, text)
    kind = next((kind for kind in _KINDS if kind in parts), "")
    tile = "" if kind else parts.get("tile", "")
    if not (kind or tile):
        raise malformed("a sharding {replicated}, {maximal device=…}, {devices=…} …", text)
    if kind == "maximal" and "device" not in parts:
        raise HloSyntaxError(f"the maximal sharding '{text}' names no device")
    out = [f"maximal device={parts['device']}" if kind == "maximal" else kind or tile]
    if tile:
        if parts.get("last_tile_dims"):
            out.append(f"last_tile_dims={parts['last_tile_dims']}")
        elif "last_tile_dim_replicate" in parts:
            out.append("last_tile_dim_replicate")
    out += [parts[name] for name in ("group", "metadata") if name in parts]
    return "{" + " ".join(out) + "}"


def _parts(dense: str, text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    position = 1
    end = len(dense) - 1
    while position < end:
        if dense[position] == " ":
            position += 1
            continue
        part = _PART.match(dense, position)
        if part is None:
            raise malformed("a sharding {…}", text)
        position = part.end()
        if part["metadata"]:
            stop = dictionary_end(dense, position)
            if stop is None:
                raise malformed("a sharding {…}", text)
            parts["metadata"] = f"metadata={_metadata(dense[position:stop], text)}"
            position = stop
        elif part["flag"]:
            if part["flag"] not in _FLAGS:
                raise HloSyntaxError(
                    f"unknown sharding '{part['flag']}' in '{text}'",
                    help=did_you_mean(part["flag"], _FLAGS),
                )
            parts[part["flag"]] = part["flag"]
        else:
            _add_part(parts, part, text)
    return parts


def _add_part(parts: dict[str, str], part: re.Match[str], text: str) -> None:
    if part["tile"]:
        parts["tile"] = _tile(part, text)
    elif part["device"]:
        parts["device"] = part["device"]
    elif part["group"]:
        parts["group"] = f"{part['group']} {part['number']}"
    else:
        names = part["subgroups"][1:-1].split(",") if part["subgroups"] != "{}" else []
        for name in names:
            if name not in _SUBGROUPS:
                raise HloSyntaxError(
                    f"unknown kind of subgroup '{name}' in '{text}'",
                    help=did_you_mean(name, _SUBGROUPS),
                )
        parts["last_tile_dims"] = f"{{{', '.join(names)}}}" if names else ""


def _tile(part: re.Match[str], text: str) -> str:
    tile = part["tile"]
    if part["reshape"]:
        transpose = f"T({part['permutation']})" if part["permutation"] else ""
        return "devices=" + parse_iota_tile(f"{tile}<={part['reshape']}{transpose}").text
    count = prod(split_ints(tile[1:-1]))
    devices = part["devices"].split(",")
    if len(devices) < count:
        raise HloSyntaxError(f"the sharding '{text}' has {count} tiles and {len(devices)} devices")
    if count < 2:
        raise HloSyntaxError(f"the sharding '{text}' needs more than one device")
    return f"devices={tile}{','.join(devices[:count])}"  # XLA drops superfluous devices, too


def _metadata(dense: str, text: str) -> str:
    from hloopt.ir.attribute_values.metadata import format_sharding_metadata, parse_metadata

    if not dense.startswith("{{"):
        return format_sharding_metadata(parse_metadata(dense))
    elements: list[str] = []
    position = 1
    while True:
        end = dictionary_end(dense, position)
        if end is None or dense[end : end + 1] not in _BETWEEN:
            raise malformed("metadata {{…}, {…}}", text)
        elements.append(format_sharding_metadata(parse_metadata(dense[position:end])))
        if dense[end] == "}":
            return f"{{{', '.join(elements)}}}"
        position = end + 1


_MESH_FORM = pattern(
    r"\{(?:maximal_mesh\[device_id=\d+\]"
    r"|mesh\[[^\[\]]*\](?:,device_ids=\([^()]*(?:\([^()]*\))?\))?"
    r"(?:,?(?:\[[^\[\]]*\]|(?:replicated|unreduced|manual)(?:=?[a-z]*\{[^{}]*\}|=[a-z]+)?))*"
    r"(?:,metadata=.*)?)\}",
    re.S,
)


def _mesh(dense: str, text: str) -> str:
    if not _MESH_FORM.fullmatch(dense):
        raise malformed("a sharding {mesh['axis'=size,…], [{'axis'}, …]}", text)
    head, separator, metadata = dense.partition(",metadata=")
    if not {"'", '"'}.isdisjoint(_AXIS.sub("", head)):
        raise malformed("axis names in quotes", text)
    head = _MISSING_COMMA.sub(r"\1,[", head.replace('"', "'"))
    spaced = "{" + _MESH_SPACING.sub(_space, head[1:])
    if not separator:
        return spaced
    inner = _metadata(metadata[:-1], text)
    return f"{spaced}, metadata={inner if inner.startswith('{{') else f'{{{inner}}}'}}}"


_AXIS = pattern(r"""(['"])[^'"{}\[\](),=]*\1""")
_MISSING_COMMA = pattern(r"^(\{mesh\[[^\[\]]*\])\[")
_MESH_SPACING = pattern(r"(mesh\[[^\[\]]*\]|\((?:[^()]|\([^()]*\))*\)|\{[^{}]*\})|,")


def _space(piece: re.Match[str]) -> str:
    return piece[1].replace(",?", ", ?") if piece[1] else ", "
