"""The forms in which XLA's printers have written modules, and files in each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hloopt.ir.module import Module
    from hloopt.text.print_options import PrintOptions


def _with(**changes: bool) -> Callable[[Module], str]:
    return lambda module: _printed(module, lambda options: options._replace(**changes))


def _printed(module: Module, change: Callable[[PrintOptions], PrintOptions]) -> str:
    from hloopt.text import print_module
    from hloopt.text.print_options import PrintOptions

    return print_module(module, change(PrintOptions.formatted()))


def _short_parsable(module: Module) -> str:
    from hloopt.text import print_module
    from hloopt.text.print_options import PrintOptions

    return print_module(module, PrintOptions.short_parsable()._replace(always_readable=True))


def _with_closing_comments(module: Module) -> str:
    """Computations of more than 5 instructions end in `} // name`, as XLA printed until 2024."""
    lines: list[str] = []
    name, first = "", 0
    for line in _with()(module).split("\n"):
        if line.endswith(" {") and not line.startswith(" "):
            name = line.removeprefix("ENTRY ").split(" ", 1)[0]
            first = len(lines)
        elif line.startswith("}") and len(lines) - first > 6:
            line = f"{line} // {name.removeprefix('%')}"
        lines.append(line)
    return "\n".join(lines)


FORMS: dict[str, Callable[[Module], str]] = {
    "as today": _with(),
    "without %": _with(print_percent=False),
    "no program shapes": _with(print_program_shape=False),
    "closing comments": _with_closing_comments,
    "no layouts": _with(include_layout_in_shapes=False),
    "operand shapes": _with(print_operand_shape=True),
    "no metadata": _with(print_metadata=False),
    "short-parsable": _short_parsable,
}
"""Functions that print a module in a form, by the name of the form."""
