"""`hloopt targets`: list the hardware that is known, or show one target."""

from __future__ import annotations

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
)


@click.command(cls=HloCommand)
@click.argument(
    "name", required=False, metavar="[NAME|FILE.yaml]", shell_complete=completion.targets
)
@format_option
@color_option
def command(name: str | None, output_format: str, color: str) -> int:
    """List the targets that --target takes, or show all figures of one with their sources.

    No command takes a target by itself: times and limits are of the one that is named. Other
    hardware is described in a file: docs/cost.md says how.

    \b
    hloopt targets
    hloopt targets h100_sxm
    hloopt targets our_chip.yaml --format json
    """
    from hloopt.reports.target import render_target, render_targets, target_to_json
    from hloopt.targets import load_target, target_names

    targets = [load_target(each) for each in ([name] if name else target_names())]
    if output_format == "json":
        print_json([target_to_json(target) for target in targets])
    elif name:
        render_target(targets[0], make_console(color))
    else:
        render_targets(targets, make_console(color))
    return 0
