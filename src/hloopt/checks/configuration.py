"""The project's settings for checks: `hloopt.toml`, or `[tool.hloopt]` of `pyproject.toml`.

[tool.hloopt.lint]        # pyproject.toml
ignore = ["HLL402"]

[lint]                    # hloopt.toml
ignore = ["HLL402"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloopt.diagnostics import HloError, Source, Span, did_you_mean
from hloopt.files import read_source

SECTIONS = ("lint", "expect", "test")
_OWN_FILE = "hloopt.toml"
_SHARED_FILE = "pyproject.toml"
_TABLE_IN_SHARED = ("tool", "hloopt")
_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")


class ConfigurationError(HloError):
    """The settings of a project are wrong."""

    code = "HLO802"


@dataclass(frozen=True, slots=True)
class Section:
    """A table of settings, and where it is."""

    source: Source
    path: tuple[str, ...]
    """The names of the tables around it and its own: `tool`, `hloopt`, `lint`."""
    values: Mapping[str, Any]

    def table(self, name: str) -> Section:
        """A table in it; empty where there is none. Raises ConfigurationError for another value."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise self.error(f"'{name}' is not a table", name)
        return Section(self.source, (*self.path, name), value)

    def strings(self, name: str) -> tuple[str, ...] | None:
        """A list of strings; None where there is none. Raises ConfigurationError."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.error(f"'{name}' is not a list of strings", name)
        return tuple(value)

    def check_keys(self, known: Sequence[str]) -> None:
        """Raise ConfigurationError for a key that is not known."""
        for key in self.values:
            if key not in known:
                help = did_you_mean(key, known) or f"known: {', '.join(known)}"
                table = f"[{'.'.join(self.path)}] has" if self.path else "the settings have"
                raise self.error(f"{table} no key '{key}'", key, help)

    def error(self, message: str, key: str, help: str | None = None) -> ConfigurationError:
        """An error about the value of a key."""
        error = ConfigurationError(message, span=self._span(key), help=help)
        return error.in_file(self.source.name)

    def line_of(self, key: str) -> int | None:
        """The line of a key, from 1; None where that is not known."""
        span = self._span(key)
        return None if span is None else span.location[0]

    def _span(self, key: str) -> Span | None:
        """The place of a key, or of the header of its own table, or of a table around it.

        None for spellings that are not looked for, such as `"too\\u006c".hloopt = 3`.
        """
        text = self.source.text
        name = rf"[\"']?{re.escape(key)}[\"']?"
        table = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in self.path)
        header = rf"^\s*\[\s*{table}\s*\]" if self.path else r"\A"
        begin = re.search(header, text, re.M)
        if begin is not None:
            end = re.compile(r"^\s*\[", re.M).search(text, begin.end())
            stop = end.start() if end else len(text)
            found = re.compile(rf"^\s*({name})\s*[=.]", re.M).search(text, begin.end(), stop)
            if found is not None:
                return Span(self.source, found.start(1), found.end(1))
        around = rf"{table}\s*\.\s*" if self.path else ""
        own = re.search(rf"^\s*\[{{1,2}}\s*{around}({name})", text, re.M)
        if own is not None:
            return Span(self.source, own.start(1), own.end(1))
        if not self.path:
            return None
        return Section(self.source, self.path[:-1], {})._span(self.path[-1])


NO_SETTINGS = Section(Source("", ""), (), {})
"""The section of a project without a file of settings."""


def find_configuration() -> str | None:
    """The path of the nearest settings, of this folder or of one around it; None without any.

    `hloopt.toml` goes before `pyproject.toml`, which counts where it has `[tool.hloopt]`.
    """
    folder = Path.cwd()
    for each in (folder, *folder.parents):
        if (each / _OWN_FILE).is_file():
            return str(each / _OWN_FILE)
        shared = each / _SHARED_FILE
        if shared.is_file() and _has_settings(shared):
            return str(shared)
    return None


def _has_settings(path: Path) -> bool:
    """Whether a `pyproject.toml` has our table; one that cannot be read has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return "hloopt" in text and re.search(r"^\s*\[\s*tool\s*\.\s*hloopt\b", text, re.M) is not None


def read_section(path: str, name: str) -> Section:
    """A section of the settings in a file; empty where the file has none.

    Raises ConfigurationError for what is not TOML, and for sections that are not known.
    """
    source = read_source(path)
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(source, str(error)) from None
    except RecursionError:
        raise ConfigurationError("nested too deeply").in_file(path) from None
    top = Section(source, (), data)
    if Path(path).name == _SHARED_FILE:
        for table in _TABLE_IN_SHARED:
            top = top.table(table)
    top.check_keys(SECTIONS)
    return top.table(name)


def _not_toml(source: Source, message: str) -> ConfigurationError:
    place = _PLACE.search(message)
    if place is None:  # at the end
        end = len(source.text.rstrip())
        span = Span(source, max(end - 1, 0), end)
    else:
        lines = source.text.split("\n")
        start = sum(len(line) + 1 for line in lines[: int(place[1]) - 1]) + int(place[2]) - 1
        span = Span(source, min(start, len(source.text)), start + 1)
    error = ConfigurationError(f"not TOML: {_PLACE.sub('', message)}", span=span)
    return error.in_file(source.name)
