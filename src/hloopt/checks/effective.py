"""The settings that count in a project, defaults included, each with its place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from hloopt.checks.configuration import NO_SETTINGS, Section, read_section
from hloopt.checks.lint.configuration import rule_called, settings_of
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.selection import ALL
from hloopt.checks.settings import expect_settings, golden_settings
from hloopt.checks.view import MOST_GUESSED
from hloopt.options import Share
from hloopt.pass_framework.options import infos_of

_OF_TIME = {"target": None, "cost-model": None, "max-guessed": str(Share(MOST_GUESSED))}
_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "lint": {
        **{"select": [ALL], "extend-select": [], "ignore": []},
        **_OF_TIME,
        **{"per-op-name-ignores": {}, "per-module-ignores": {}},
    },
    "expect": _OF_TIME,
    "test": {"paths": [os.curdir], "jobs": os.cpu_count() or 1},
}
_READERS: Mapping[str, Callable[[Section], object]] = {
    "lint": settings_of,
    "expect": expect_settings,
    "test": golden_settings,
}


class Setting(NamedTuple):
    """A setting of a section, with its value in the form that TOML has it."""

    section: str
    setting: str
    """The name; dots are between the names of tables: `rules.exposed-collective.share`."""
    value: object
    """None for what is not set and has no default."""
    file: str | None
    """The file that sets it; None for a default."""
    line: int | None


def effective_settings(path: str | None) -> list[Setting]:
    """The settings of all sections by a file, or the defaults. Raises ConfigurationError."""
    found = []
    for name, defaults in _DEFAULTS.items():
        section = NO_SETTINGS if path is None else read_section(path, name)
        _READERS[name](section)  # a mistake is an error as it is where the settings are read
        found += [_setting(name, section, key, defaults[key]) for key in defaults]
        if name == "lint":
            found += _rule_options(section.table("rules"))
    return found


def _rule_options(tables: Section) -> Iterator[Setting]:
    """The options of all rules. A table may have the code of its rule for a name."""
    given = {rule_called(name).code: tables.table(name) for name in tables.values}
    for rule in all_rules().values():
        table = given.get(rule.code, tables.table(rule.name))
        keys = {key.replace("-", "_"): key for key in table.values}
        for info in infos_of(rule.options):
            default = str(info.default) if isinstance(info.default, Share) else info.default
            setting = _setting("lint", table, keys.get(info.name, info.name), default)
            yield setting._replace(setting=f"rules.{rule.name}.{info.name}")


def _setting(section: str, table: Section, key: str, default: Any) -> Setting:
    if key not in table.values:
        return Setting(section, key, default, None, None)
    return Setting(section, key, table.values[key], table.source.name, table.line_of(key))
