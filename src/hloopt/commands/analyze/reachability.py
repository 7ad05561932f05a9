"""`hloopt analyze reachability`: the order of two instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    at_work,
    color_option,
    format_option,
    make_console,
    print_json,
    top_option,
)

if TYPE_CHECKING:
    from hloopt.ir.instruction import Instruction
    from hloopt.ir.module import Module


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@top_option("steps of a path", 40, least=2)
@format_option
@color_option
def command(file: str, first: str, second: str, top: int, output_format: str, color: str) -> int:
    """Whether instruction B has to wait for instruction A, with a shortest path that says why.

    Paths lead over operands and control predecessors. Instructions of different computations are
    compared in the nearest computation that calls both, if there is one way to each.
    """
    from hloopt.files import load
    from hloopt.reports.structure.reachability import report_order
    from hloopt.reports.structure.reachability_terminal import render_order
    from hloopt.reports.structure.record import order_to_json

    with at_work([file]) as paths:
        (module,) = map(load, paths)
        report = report_order(_find(module, first, "A"), _find(module, second, "B"))
    if output_format == "json":
        print_json([{"file": file, **order_to_json(report)}])
    else:
        render_order(report, make_console(color), top=top)
    return 0


def _find(module: Module, given: str, argument: str) -> Instruction:
    """The instruction called `given`, `%` or not. Raises BadParameter where there is none."""
    from hloopt.diagnostics import HloError
    from hloopt.ir.find import find_instructions

    try:
        (found,) = find_instructions(module, [given])
    except HloError as error:
        message = error.message + (f"; {error.help}" if error.help else "")
        raise click.BadParameter(message, param_hint=argument) from None
    return found
