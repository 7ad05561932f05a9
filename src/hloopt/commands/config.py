"""`hloopt config`: the settings of a project, and where each is from."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
)
from hloopt.commands.shared.project_settings import settings_file, settings_options

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.checks.effective import Setting


@click.command(cls=HloCommand)
@click.option("--show", is_flag=True, expose_value=False, help="show the settings; the default")
@settings_options
@format_option
@color_option
def command(config: str | None, isolated: bool, output_format: str, color: str) -> int:
    """Show each setting of lint, expect and test, with the file and line it is from.

    Exits with 2 where a setting is wrong. docs/configuration.md lists the settings.

    \b
    hloopt config --show
    hloopt config --config ci/hloopt.toml --format json
    """
    from hloopt.checks.effective import effective_settings

    path = settings_file(config, isolated=isolated)
    settings = effective_settings(path)
    if output_format == "json":
        print_json([setting._asdict() for setting in settings])
    else:
        _render(settings, path, make_console(color))
    return 0


def _render(settings: list[Setting], path: str | None, console: Console) -> None:
    from itertools import groupby

    from rich.text import Text

    from hloopt.diagnostics import printable
    from hloopt.reports.console.table import ReportTable

    head = "no settings are read: all are defaults" if path is None else f"settings of {path}"
    console.print(Text(printable(head)), soft_wrap=True)
    console.print()
    table = ReportTable(heads=False, gap=2)
    table.add_column()
    table.add_column(wraps=True)
    table.add_column(style="dim")
    for section, members in groupby(settings, lambda setting: setting.section):
        table.add_line(Text(section, "bold"))
        for setting in members:
            table.add_row(f"  {setting.setting}", _value_text(setting.value), _origin(setting))
    console.print(table)


def _value_text(value: object) -> str:
    """A value as it stands in TOML, tables as in JSON."""
    return "not set" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _origin(setting: Setting) -> str:
    if setting.file is None:
        return "default"
    name = os.path.basename(setting.file)
    return name if setting.line is None else f"{name}:{setting.line}"
