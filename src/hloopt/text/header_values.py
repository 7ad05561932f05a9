"""Attributes of a module's header: each value checked, and written as XLA writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.formats import (
    boolean,
    braces,
    frontend_attributes,
    integer_unless,
    one_of,
    true_only,
)
from hloopt.ir.attributes.text import STRING
from hloopt.ir.attributes.values import (
    Alias,
    format_ints,
    parse_aliasing,
    parse_buffer_donor,
    parse_int,
    parse_ints,
    parse_string,
    quote_string,
)
from hloopt.ir.attributes.values.tokens import compact, malformed
from hloopt.ir.shapes.entry_layout import format_entry_layout, parse_entry_layout
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern

Rewrite: TypeAlias = Callable[[str], str]
"""From the text of a module to the text that XLA prints for it; raises HloSyntaxError."""


def canonical_header_value(key: str, text: str, rewrite: Rewrite) -> str | None:
    """The value `text` of a header's attribute as XLA prints it, None where XLA leaves it out.

    `rewrite` is for the modules in a table. Raises HloSyntaxError for a malformed value. O(length
    of the text).
    """
    if key == "origin_recovery_table":
        return _recovery_table(text, rewrite)
    return _CANONICAL[key](text)


def _aliasing(text: str) -> str | None:
    aliases = {alias.output_index: alias for alias in reversed(parse_aliasing(text))}
    return format_aliasing(aliases[output] for output in sorted(aliases))


def format_aliasing(aliases: Iterable[Alias]) -> str | None:
    """The value of `input_output_alias` for these, None where there are none."""
    return _spaced(
        f"{format_ints(alias.output_index)}: "
        f"({alias.parameter}, {format_ints(alias.parameter_index)}, {alias.kind})"
        for alias in aliases
    )


def _donors(text: str) -> str | None:
    return format_buffer_donor(sorted(set(parse_buffer_donor(text))))


def format_buffer_donor(donors: Iterable[tuple[int, tuple[int, ...]]]) -> str | None:
    """The value of `buffer_donor` for parameters and indices, None where there are none."""
    return _spaced(f"({parameter}, {format_ints(index)})" for parameter, index in donors)


def _spaced(entries: Iterable[str]) -> str | None:
    joined = ", ".join(entries)
    return f"{{ {joined} }}" if joined else None


_PROPAGATION = pattern(r"true|false|\{(?:(?:true|false)(?:,(?:true|false))*)?\}")


def _propagation(text: str) -> str | None:
    dense = compact(text)
    if _PROPAGATION.fullmatch(dense) is None:
        raise malformed("true, false or {true,false,…}", text)
    values = dense.strip("{}")
    return None if values in ("", "false") else f"{{{values}}}"


def _entry_layout(text: str) -> str:
    parameters, result = parse_entry_layout(text)
    return format_entry_layout(parameters, result)


# -- original values --------------------------------------------------------------------------

_PLACE = rf"\{{\s*(?:({STRING})\s*(\{{[\d,\s]*\}})?)?\s*\}}"
_RECOVERY = pattern(rf"\s*{_PLACE}\s*:\s*{_PLACE}\s*(?:,\s*({STRING}))?\s*", re.S)


def _recovery_table(text: str, rewrite: Rewrite) -> str | None:
    """`{"old" {index}} : {"new" {index}}, "module"` over several lines, sorted, the first wins."""
    entries: dict[tuple[str, tuple[int, ...]], str] = {}
    position, end = 1, len(text) - 1
    position = skip_trivia(text, position)
    while position < end:
        match = _RECOVERY.match(text, position)
        if match is None:
            raise malformed('entries {"old" {index}} : {"new" {index}}, "module"', text[position:])
        position = skip_trivia(text, match.end())
        old, new = _place(match[1], match[2]), _place(match[3], match[4])
        module = f",\n{_recovery_module(match[5], rewrite)}" if match[5] else ""
        entries.setdefault(old, f"  {_format_place(old)} : {_format_place(new)}{module}\n")
    return "{\n" + "".join(entries[key] for key in sorted(entries)) + "}" if entries else None


def _place(name: str | None, index: str | None) -> tuple[str, tuple[int, ...]]:
    return parse_string(name) if name else "", parse_ints(index) if index else ()


def _format_place(place: tuple[str, tuple[int, ...]]) -> str:
    name, index = place
    return f"{{{quote_string(name)}{' ' + format_ints(index) if index else ''}}}"


def _recovery_module(quoted: str, rewrite: Rewrite) -> str:
    """The module in quotes, every line indented."""
    try:
        text = rewrite(parse_string(quoted))
    except HloSyntaxError as error:
        raise HloSyntaxError(f"the recovery module: {error.message}", help=error.help) from None
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    lines = [f"    {line}" if line else "" for line in escaped.split("\n")]
    return '  "\n' + "\n".join(lines) + '\n  "'


# -- debug attributes ---------------------------------------------------------------------------

_LOG_MODE = one_of("default", "fusion_debugger")
_GROUP = pattern(r"\{([^{}]*)\}")
_DEBUG_ENTRY = pattern(rf"{_PLACE}:(\{{[^{{}}]*\}}|\((?:\{{[^{{}}]*\}}(?:,\{{[^{{}}]*\}})*)?\))")
_DEBUG_FIELDS: dict[str, Callable[[str], str | None]] = {
    "log_mode": _LOG_MODE,
    "callback_id": lambda text: str(parse_int(text)),
    "partitioned": boolean,
    "op_id": lambda text: str(parse_int(text)),
}


def _debug_attributes(text: str) -> str | None:
    """`{"instruction" {index}}:({log_mode=default,callback_id=1},…)`, an entry a line."""
    what = 'entries {"instruction"}:({log_mode=default,callback_id=1},…)'
    dense = compact(text)
    entries: dict[tuple[str, tuple[int, ...]], str] = {}
    position, end = 1, len(dense) - 1
    while position < end:
        entry = _DEBUG_ENTRY.match(dense, position)
        if entry is None:
            raise malformed(what, text)
        groups = ",".join(_debug_group(group) for group in _GROUP.findall(entry[3]))
        place = _place(entry[1], entry[2])
        entries.setdefault(place, f"  {_format_place(place)}:({groups})")
        position = entry.end() + dense.startswith(",", entry.end())
    if not entries:
        return None
    return "{\n" + ",\n".join(entries[key] for key in sorted(entries)) + "\n}"


def _debug_group(group: str) -> str:
    found: dict[str, str] = {}
    for pair in group.split(",") if group else ():
        key, _, value = pair.partition("=")
        if key not in _DEBUG_FIELDS:
            raise HloSyntaxError(f"'{key}' is none of {', '.join(_DEBUG_FIELDS)}")
        if key in found:
            raise HloSyntaxError(f"'{key}' is given twice")
        found[key] = _DEBUG_FIELDS[key](value) or ""
    return braces(f"{key}={found[key]}" for key in _DEBUG_FIELDS if key in found)


_CANONICAL: dict[str, Callable[[str], str | None]] = {
    "is_scheduled": true_only,
    "input_output_alias": _aliasing,
    "buffer_donor": _donors,
    "alias_passthrough_params": true_only,
    "entry_computation_layout": _entry_layout,
    "allow_spmd_sharding_propagation_to_parameters": _propagation,
    "allow_spmd_sharding_propagation_to_output": _propagation,
    "replica_count": integer_unless(1),
    "num_partitions": integer_unless(1),
    "frontend_attributes": frontend_attributes,
    "debug_attributes": _debug_attributes,
}
