"""The text of a sharding as XLA prints it: blanks, order of the parts, quotes, subgroups.

The form (list of devices, iota, mesh) stays where XLA keeps it. Whether a sharding fits its
instruction is not looked at.
"""

from __future__ import annotations

import re
from math import prod

from hloopt.diagnostics import HloSyntaxError, did_you_mean
from hloopt.ir.attributes.values.numbers import parse_int, split_ints
from hloopt.ir.attributes.values.replica_groups import parse_iota_tile
from hloopt.ir.attributes.values.strings import dictionary_end, split_dictionaries
from hloopt.ir.attributes.values.tile_devices import SUBGROUPS
from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern

_KINDS = ("replicated", "manual", "unknown", "unreduced", "maximal")
_PRINTED = ("{replicated}", "{manual}")
"""The most frequent shardings, as XLA prints them."""
_LAST_REPLICATED = "last_tile_dim_replicate"
_FLAGS = (*_KINDS, _LAST_REPLICATED)
_LIST = r"\[\d+(?:,\d+)*\]"
_PART = pattern(
    rf"""(?: (?P<group>shard_as|shard_like)\ (?P<number>\d+)
      | devices=(?P<tile>{_LIST})
        (?: \ ?<=\ ?(?P<reshape>{_LIST})(?:\ ?T\ ?\((?P<permutation>[\d,]+)\))?
          | (?P<devices>-?\d+(?:,-?\d+)*))
      | device=(?P<device>-?\d{{1,18}})(?!\d)
      | last_tile_dims=(?P<subgroups>\{{[a-z_]*(?:,[a-z_]+)*\}})
      | (?P<metadata>metadata=)(?=\{{)
      | (?P<flag>[a-z_]+)(?![a-z_=])
    )(?:\ |(?=[}}{{a-z]))""",
    re.X,
)


@memoized
def canonical_sharding(text: str) -> str:
    """A single sharding, or a tuple `{{…}, {…}}` of them, as XLA prints it. Linear."""
    if text in _PRINTED:
        return text
    if not (text.startswith("{") and text.endswith("}")):
        raise malformed("a sharding {…}", text)
    dense = compact(text)
    if not dense.startswith("{{"):
        return "{}" if dense == "{}" else _single(dense, text)
    elements = split_dictionaries(dense)
    if elements is None:
        raise malformed("a tuple of shardings {{…}, {…}}", text)
    return "{" + "".join(_index(i) + _single(e, text) for i, e in enumerate(elements)) + "}"


_METADATA = pattern(r",? metadata=(?=\{)")


def without_metadata(sharding: str) -> str:
    """A sharding as `canonical_sharding` gives it, its metadata left out. Linear."""
    parts: list[str] = []
    position = 0
    while match := _METADATA.search(sharding, position):
        parts.append(sharding[position : match.start()])
        position = dictionary_end(sharding, match.end()) or len(sharding)
    return "".join((*parts, sharding[position:]))


def bare_sharding(sharding: str) -> str:
    """A sharding as reports show it: without metadata, and the braces around it. Linear."""
    return without_metadata(sharding).removeprefix("{").removesuffix("}")


def _index(number: int) -> str:
    if not number:
        return ""
    return ", " if number % 5 else f", /*index={number}*/"


def _single(dense: str, text: str) -> str:
    if dense.startswith(("{mesh", "{maximal_mesh")):
        return _mesh(dense, text)
    parts = _parts(dense, text)
    kind = next((kind for kind in _KINDS if kind in parts), "")
    if kind == "maximal" and "device" not in parts:
        raise HloSyntaxError(f"the maximal sharding '{text}' names no device")
    if kind:
        out = [f"maximal device={parts['device']}" if kind == "maximal" else kind]
    elif "tile" in parts:
        out = _tiled(parts, text)
    else:
        raise malformed("a sharding {replicated}, {maximal device=…}, {devices=…} …", text)
    out += [parts[name] for name in ("group", "metadata") if name in parts]
    return "{" + " ".join(out) + "}"


def _tiled(parts: dict[str, str], text: str) -> list[str]:
    """The tile in `parts`, its subgroups in XLA's order."""
    from hloopt.ir.attributes.values.tile_devices import Tiles, normalized

    dimensions, _, rest = parts["tile"].partition("]")
    sizes = split_ints(dimensions[1:])
    if min(sizes) < 0:
        return [f"devices={parts['tile']}", *_unsorted_subgroups(parts)]
    devices = parse_iota_tile(parts["tile"]) if "<=" in rest else split_ints(rest)
    subgroups = tuple(filter(None, parts.get("last_tile_dims", "").split(",")))
    if _LAST_REPLICATED in parts:
        if subgroups:
            raise HloSyntaxError(f"'{text}' has last_tile_dims and last_tile_dim_replicate")
        subgroups = ("replicated",)
    if len(subgroups) > len(sizes):
        raise HloSyntaxError(f"the sharding '{text}' has more subgroups than tile dimensions")
    if not subgroups:
        return [Tiles(sizes, devices).text]
    tiles = normalized(Tiles(sizes, devices, subgroups))
    kinds = set(tiles.subgroups or subgroups)
    if tiles.tile_count == 1 and len(kinds) == 1 and kinds != {"maximal"}:
        return [*kinds]
    if not tiles.subgroups:
        return [tiles.text]
    if tiles.subgroups == ("replicated",):
        return [tiles.text, _LAST_REPLICATED]
    return [tiles.text, f"last_tile_dims={{{', '.join(tiles.subgroups)}}}"]


def _unsorted_subgroups(parts: dict[str, str]) -> list[str]:
    """The subgroups of tiles that overflow 64 bits, as they are written.

    XLA prints the overflown numbers as negative ones, which it does not read.
    """
    if _LAST_REPLICATED in parts:
        return [_LAST_REPLICATED]
    kinds = parts.get("last_tile_dims", "")
    return [f"last_tile_dims={{{', '.join(kinds.split(','))}}}"] if kinds else []


def _parts(dense: str, text: str) -> dict[str, str]:
    tile = dense[1:-1].removesuffix(_LAST_REPLICATED).rstrip()
    if tile.startswith("devices=[") and "<=" in tile and tile[-1] in "])" and " " not in tile:
        parts = {"tile": parse_iota_tile(tile.removeprefix("devices=")).text}
        if dense.endswith(f"{_LAST_REPLICATED}}}"):
            parts[_LAST_REPLICATED] = _LAST_REPLICATED
        return parts
    parts = {}
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
        parts["device"] = str(parse_int(part["device"]))
    elif part["group"]:
        parts["group"] = f"{part['group']} {part['number']}"
    else:
        for name in filter(None, part["subgroups"][1:-1].split(",")):
            if name not in SUBGROUPS:
                raise HloSyntaxError(
                    f"unknown kind of subgroup '{name}' in '{text}'",
                    help=did_you_mean(name, SUBGROUPS),
                )
        parts["last_tile_dims"] = part["subgroups"][1:-1]


def _tile(part: re.Match[str], text: str) -> str:
    tile = part["tile"]
    if part["reshape"]:
        transpose = f"T({part['permutation']})" if part["permutation"] else ""
        return parse_iota_tile(f"{tile}<={part['reshape']}{transpose}").text
    sizes = split_ints(tile[1:-1])
    if min(sizes) < 0:
        return f"{tile}{','.join(map(str, split_ints(part['devices'])))}"
    count = prod(sizes)
    devices = part["devices"].split(",")
    if not count:
        raise HloSyntaxError(f"the sharding '{text}' has a tile dimension of 0")
    if len(devices) < count:
        raise HloSyntaxError(f"the sharding '{text}' has {count} tiles and {len(devices)} devices")
    # XLA drops superfluous devices, too; what is left may be one, which it does not read itself.
    return f"{tile}{','.join(devices[:count])}"


def _metadata(dense: str, text: str) -> str:
    from hloopt.ir.attributes.values.metadata import format_sharding_metadata, parse_metadata

    if not dense.startswith("{{"):
        return format_sharding_metadata(parse_metadata(dense))
    elements = split_dictionaries(dense)
    if elements is None:
        raise malformed("metadata {{…}, {…}}", text)
    return f"{{{', '.join(format_sharding_metadata(parse_metadata(e)) for e in elements)}}}"


def _mesh(dense: str, text: str) -> str:
    from hloopt.ir.attributes.values.mesh_sharding import canonical_mesh_sharding

    sharding, position = canonical_mesh_sharding(dense, text)
    if dense.startswith(",metadata={", position):
        start = position + len(",metadata=")
        position = dictionary_end(dense, start) or 0
        metadata = _metadata(dense[start:position], text)
        sharding += f", metadata={metadata if metadata.startswith('{{') else f'{{{metadata}}}'}"
    if dense[position:] != "}":
        raise malformed("a sharding {mesh['axis'=size,…], [{'axis'}, …]}", text)
    return sharding + "}"
