"""`hloopt equivalent`: whether two modules compute the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.common import (
    EXIT_FOUND,
    HloCommand,
    check_pair,
    color_option,
    format_option,
    make_console,
    print_json,
    seeds_option,
)
from hloopt.commands.running import run_options, run_settings, showing_steps, shrink
from hloopt.diagnostics import counted

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.interpreter.equivalence import Mismatch, Reference


@click.command(cls=HloCommand)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@seeds_option
@run_options
@format_option
@color_option
def command(before: str, after: str, **options: Any) -> int:
    """Run two modules on the same inputs; exit 1 if an output differs.

    Integers have to be equal, and all values where a module only moves data; other floats up to
    rounding. Custom calls that nobody knows, and constants printed as {...}, are made up, the same
    in both modules.

    \b
    hloopt equivalent before.hlo after.hlo
    hloopt equivalent step.hlo optimized.hlo --devices 1x8 --seeds 5
    """
    from hloopt.files import load
    from hloopt.interpreter.equivalence import Reference

    check_pair(before, after)
    left, right = load(before), load(after)
    if options["shrink"]:
        left, right = shrink([left, right])
    with showing_steps("running") as on_steps:
        reference = Reference(left, run_settings([left, right], options, on_steps))
        mismatch = reference.compare(right)
    if options["output_format"] == "json":
        print_json(_as_json(before, after, reference, mismatch))
    else:
        _render(reference, mismatch, make_console(options["color"]))
    return EXIT_FOUND if mismatch else 0


def _render(reference: Reference, mismatch: Mismatch | None, console: Console) -> None:
    from rich.text import Text

    if mismatch is not None:
        line = Text.assemble(("different: ", "bold red"), mismatch.reason)
        console.print(line, soft_wrap=True)
        return
    devices = counted(len(reference.devices), "device")
    seeds = counted(reference.settings.seeds, "seed")
    outputs = counted(reference.output_count, "output")
    console.print(Text.assemble(("equal: ", "bold green"), f"{outputs}, {devices}, {seeds}"))


def _as_json(
    before: str, after: str, reference: Reference, mismatch: Mismatch | None
) -> dict[str, object]:
    found: dict[str, object] = {
        "before": before,
        "after": after,
        "equal": mismatch is None,
        "devices": len(reference.devices),
        "seeds": reference.settings.seeds,
        "outputs": reference.output_count,
    }
    if mismatch is not None:
        difference = mismatch.difference
        found["difference"] = {
            "reason": mismatch.reason,
            "seed": mismatch.seed,
            "device": mismatch.device,
            "output": difference and list(difference.leaf),
            "index": difference and difference.index and list(difference.index),
            "before": difference and difference.left,
            "after": difference and difference.right,
            "different_elements": difference and difference.count,
            "elements": difference and difference.total,
        }
    return found
