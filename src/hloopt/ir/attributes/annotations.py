"""Attributes that are small languages of their own, as XLA prints them.

As in `attribute_format`: text to text, None where XLA leaves the attribute out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.formats import braces, one_of, real
from hloopt.ir.attributes.text import STRING
from hloopt.ir.attributes.values import parse_int, parse_string
from hloopt.ir.attributes.values.numbers import split_ints
from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.attributes.values.strings import dictionary_end
from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern

_SIDE = r"(?:(lhs|rhs)=(\{[^{}]*\}) ?)?"
_SPARSITY_CONFIG = pattern(rf"\{{{_SIDE}{_SIDE}\}}")
_SPARSITY_KEYS = {"sparsity": r"\d+x\d+", "dimension": r"\d+", "stride": r"\d+"}


@memoized
def sparsity_config(text: str) -> str | None:
    """`{lhs={sparsity=1x4 dimension=0 stride=1} rhs={…}}`, left out when empty."""
    match = _SPARSITY_CONFIG.fullmatch(compact(text))
    if match is None or (match[1] and match[1] == match[3]):
        raise malformed("a sparsity {lhs={…} rhs={…}}", text)
    sides = {
        match[side]: _sparsity(match[side + 1], text) for side in (1, 3) if match[side] is not None
    }
    return braces((f"{side}={sides[side]}" for side in sorted(sides)), " ") if sides else None


def _sparsity(value: str, text: str) -> str:
    found = dict(pair.split("=", 1) for pair in value[1:-1].split() if "=" in pair)
    if found.keys() != _SPARSITY_KEYS.keys() or not all(
        re.fullmatch(form, found[key]) for key, form in _SPARSITY_KEYS.items()
    ):
        raise malformed("a sparsity {sparsity=1x4 dimension=0 stride=1}", text)
    return braces((f"{key}={found[key]}" for key in _SPARSITY_KEYS), " ")


_accuracy_mode = one_of("highest", any_case=True, unset="default")
_TOLERANCE = pattern(r"\{tolerance=\{([^{}]*)\}\}")


@memoized
def result_accuracy(text: str) -> str | None:
    """`{mode=highest}` or `{tolerance={atol=…,rtol=…,ulps=…}}`; the default mode is left out."""
    dense = compact(text)
    if dense.startswith("{mode="):
        mode = _accuracy_mode(dense[len("{mode=") : -1])
        return f"{{mode={mode}}}" if mode else None
    match = _TOLERANCE.fullmatch(dense)
    if match is None:
        raise malformed("{mode=…} or {tolerance={…}}", text)
    found = dict(_key_value(pair, text) for pair in match[1].split(",") if pair)
    if unknown := next((key for key in found if key not in ("atol", "rtol", "ulps")), None):
        raise HloSyntaxError(f"a tolerance has no '{unknown}' (in '{text}')")
    values = (real(found.get(key, "0")) for key in ("atol", "rtol"))
    ulps = float(real(found.get("ulps", "0")))
    if not 0 <= ulps < 1 << 63:
        raise malformed("ulps from 0 to 2^63", text)
    return "{{tolerance={{atol={},rtol={},ulps={}}}}}".format(*values, int(ulps))


@memoized
def statistics(text: str) -> str | None:
    """`{visualizing_index=0,name=1.5}`, left out without a visualizing_index."""
    dense = compact(text)
    if not (dense.startswith("{") and dense.endswith("}")):
        raise malformed("statistics {visualizing_index=n,name=value,…}", text)
    pairs = [_key_value(pair, text) for pair in dense[1:-1].split(",") if pair]
    index = next((parse_int(value) for key, value in pairs if key == "visualizing_index"), None)
    values = [f"{key}={real(value)}" for key, value in pairs if key != "visualizing_index"]
    if any(value.endswith("inf") for value in values):
        raise malformed("numbers in the statistics", text)
    return braces([f"visualizing_index={index}", *values]) if index is not None and values else None


_IDENTIFIER = pattern(r"[A-Za-z_][\w.\-]*", re.A)


def _key_value(pair: str, text: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not (equals and _IDENTIFIER.fullmatch(key)):
        raise malformed("name=value", text)
    return key, value


_DOMAIN_PART = pattern(r'(kind|entry|exit)=("sharding"|(?=\{))')


@memoized
def domain(text: str) -> str:
    """`{kind="sharding", entry={…}, exit={…}}`, all three in any order."""
    what = 'a domain {kind="sharding", entry={…}, exit={…}}'
    dense = compact(text)
    found: dict[str, str] = {}
    position = 1
    while part := _DOMAIN_PART.match(dense, position):
        position = part.end()
        if part[2]:
            found[part[1]] = part[2]
        else:
            end = dictionary_end(dense, position)
            if end is None:
                raise malformed(what, text)
            found[part[1]] = canonical_sharding(dense[position:end])
            position = end
        position += dense.startswith((",", " "), position)
    if found.keys() != {"kind", "entry", "exit"} or dense[position:] != "}":
        raise malformed(what, text)
    return braces((f"{key}={found[key]}" for key in ("kind", "entry", "exit")), ", ")


_LEAF = pattern(rf"\{{(?:({STRING}) ?(\{{(?:-?\d+(?:,-?\d+)*)?\}})?)?\}}", re.S)


@memoized
def origin(text: str) -> str:
    """The original value: `{({"v1"}, {"v2" {0,1}})}` or `{[synthetic_call]}`."""
    dense = compact(text)
    if dense in ("{}", "{[synthetic_call]}"):
        return "{()}" if dense == "{}" else dense
    out: list[str] = []
    depth = 0
    position = 1
    wants_tree = True
    while position < len(dense) - 1 and (wants_tree or depth):
        mark = dense[position]
        leaf = _LEAF.match(dense, position) if wants_tree else None
        if leaf:
            index = leaf[2] if leaf[2] not in (None, "{}") else ""
            name = _quoted(parse_string(leaf[1])) if leaf[1] else ""
            out.append(f"{{{name}{' ' if index else ''}{index}}}")
            position = leaf.end()
            wants_tree = False
            continue
        if mark == "(" and wants_tree:
            depth += 1
        elif mark == ")" and depth and (not wants_tree or out[-1] == "("):
            depth -= 1
            wants_tree = False
        elif mark == "," and not wants_tree:
            wants_tree = True
        else:
            break
        out.append(", " if mark == "," else mark)
        position += 1
    if depth or wants_tree or dense[position:] != "}" or not dense.startswith("{"):
        raise malformed('an original value {({"name" {index}}, …)}', text)
    return braces(out, "")


class OriginalArray(NamedTuple):
    """A leaf of an original value: the array `name` `array_index`; no name where it is unknown."""

    leaf_index: tuple[int, ...]
    name: str | None
    array_index: tuple[int, ...]


_LEAF_OR_MARK = pattern(rf"\{{(?:({STRING}) ?(?:\{{([\d,-]*)\}})?)?\}}|([(),])", re.S)


def original_arrays(canonical: str) -> list[OriginalArray]:
    """The leaves of a tree as `origin` gives it. Linear."""
    found: list[OriginalArray] = []
    index: list[int] = []
    for name, array_index, mark in _LEAF_OR_MARK.findall(canonical[1:-1]):
        if mark == "(":
            index.append(0)
        elif mark == ")":
            index.pop()
        elif mark == ",":
            index[-1] += 1
        else:
            array = parse_string(name) if name else None
            found.append(OriginalArray(tuple(index), array, split_ints(array_index)))
    return found


def origin_leaves(canonical: str) -> list[str]:
    """The text of each leaf of a tree as `origin` gives it: `{"v1"}`, `{"v2" {0,1}}`. Linear."""
    return [leaf[0] for leaf in _LEAF_OR_MARK.finditer(canonical[1:-1]) if not leaf[3]]


def origin_elements(canonical: str) -> list[str] | None:
    """The elements of a tree as `origin` gives it; None where it is not a tuple. Linear."""
    if not canonical.startswith("{("):
        return None
    found: list[str] = []
    depth, start, end = 0, 2, len(canonical) - 2
    for mark in _LEAF_OR_MARK.finditer(canonical, start, end):
        depth += (mark[3] == "(") - (mark[3] == ")")
        if mark[3] == "," and not depth:
            found.append(canonical[start : mark.start()])
            start = mark.end() + 1
    return [*found, canonical[start:end]] if end > 2 else []


def _quoted(name: str) -> str:
    """A name in quotes; XLA escapes nothing here, not even what it has to."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
