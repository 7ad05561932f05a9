"""`hloopt passes`: list passes, or describe one."""

from __future__ import annotations

import inspect
import re
import sys

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    print_names,
)
from hloopt.diagnostics import PipelineError, render_error


@click.command(cls=HloCommand)
@click.argument("name", required=False, shell_complete=completion.passes)
@format_option
@color_option
def command(name: str | None, output_format: str, color: str) -> int:
    """List all passes, or show what one does and which options it takes.

    A pass of another package that cannot be loaded is named on stderr and left out.
    """
    from hloopt.pass_framework.registry import find_pass, pass_names

    names = [find_pass(name).name] if name else pass_names()
    if output_format == "json":
        print_json([_to_json(each) if name else _listed(each) for each in names])
    elif name:
        _describe(names[0], color)
    else:
        print_names(((each, _summary(each)) for each in names if _can_be_loaded(each)), color)
    return 0


def _can_be_loaded(name: str) -> bool:
    """Whether a pass can be described; a warning says of one of another package why it cannot."""
    from hloopt.pass_framework.registry import find_pass

    try:
        find_pass(name)
    except PipelineError as error:
        print(render_error(error, "warning"), file=sys.stderr)
        return False
    return True


def _documentation(name: str) -> str:
    from hloopt.pass_framework.registry import find_pass

    return inspect.cleandoc(find_pass(name).__doc__ or "")


def _summary(name: str) -> str:
    """The first sentence of the documentation of a pass."""
    return _documentation(name).split("\n\n")[0].replace("\n", " ")


def _describe(name: str, color: str) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from hloopt.pass_framework.options import documented_options
    from hloopt.pass_framework.registry import find_pass, other_names
    from hloopt.preserves import EXPLAINED

    console = make_console(color)
    console.print(Text(name, style="bold"))
    if others := other_names(name):
        console.print(Text(f"also called {', '.join(others)}", style="dim"))
    console.print()
    console.print(Text(_LINE_WITHIN_PARAGRAPH.sub(" ", _documentation(name))))
    pass_class = find_pass(name)
    console.print()
    console.print(Text(f"Preserves {EXPLAINED[pass_class.preserves]} ({pass_class.preserves})."))
    infos = documented_options(pass_class)
    if not infos:
        return
    console.print()
    console.print(Text("Options", style="bold"))
    for info in infos:
        takes = "a function (Python API)" if info.is_api_only else info.type_text
        default = f"; default: {info.default_text}" if info.default_text else ""
        console.print(Text.assemble((info.name, "bold"), f"  {takes}{default}"))
        console.print(Padding(Text(info.doc), (0, 0, 0, 4)))


_LINE_WITHIN_PARAGRAPH = re.compile(r"(?<!\n)\n(?!\n|- | {4}) *")
"""Line breaks in docstrings that a terminal need not keep: none before list items or code."""


def _listed(name: str) -> dict[str, object]:
    """The same of a pass in a list: one that cannot be loaded does not spoil it."""
    try:
        return _to_json(name)
    except PipelineError as error:
        return {"name": name, "error": error.message, "note": error.note}


def _to_json(name: str) -> dict[str, object]:
    from hloopt.pass_framework.options import documented_options
    from hloopt.pass_framework.registry import find_pass, other_names

    return {
        "name": name,
        "other_names": other_names(name),
        "documentation": _documentation(name),
        "preserves": find_pass(name).preserves,
        "options": [
            {
                "name": info.name,
                "type": info.type_text,
                "default": info.default,
                "doc": info.doc,
                "python_only": info.is_api_only,
            }
            for info in documented_options(find_pass(name))
        ],
    }
