"""XLA's debug options as text, `name: value` in lines: the flags that a compile had."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hloopt.patterns import pattern

_FIELD = pattern(r"\s*(?P<name>\w+)\s*:\s*(?P<value>[^{\s].*?)\s*")
_MAP = pattern(r"\s*(?P<name>\w+)\s*:?\s*\{\s*")
_END = pattern(r"\s*\}\s*")
_ESCAPE = re.compile(r"\\(.)")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


def parse_debug_options(text: str) -> dict[str, str]:
    """Flags by name, as XLA_FLAGS has them; lists and maps are joined by commas. O(length)."""
    found: dict[str, str] = {}
    for name, value in _fields(text):
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Each value; an entry of a map as `key=value`."""
    in_map = ""
    entry: dict[str, str] = {}
    for line in text.splitlines():
        if match := _FIELD.fullmatch(line):
            value = _unquoted(match["value"])
            if in_map:
                entry[match["name"]] = value
            else:
                yield match["name"], value
        elif match := _MAP.fullmatch(line):
            in_map, entry = match["name"], {}
        elif in_map and _END.fullmatch(line):
            yield in_map, "=".join(entry[key] for key in ("key", "value") if key in entry)
            in_map = ""


def _unquoted(value: str) -> str:
    if len(value) < 2 or not value.startswith('"') or not value.endswith('"'):
        return value
    return _ESCAPE.sub(lambda match: _CONTROLS.get(match[1], match[1]), value[1:-1])
