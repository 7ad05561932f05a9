"""`hloopt analyze overlap`: what hides collectives, before and after passes."""

from __future__ import annotations

import click

from hloopt.commands.common import (
    HloCommand,
    at_work,
    color_option,
    format_option,
    make_console,
    print_json,
)


@click.command(cls=HloCommand)
@click.argument("before", metavar="FILE")
@click.argument("after", required=False, metavar="[AFTER]")
@click.option(
    "--target",
    "target_name",
    default="h100_sxm",
    show_default=True,
    metavar="NAME|FILE.yaml",
    help="the hardware to estimate for",
)
@format_option
@color_option
def command(
    before: str, after: str | None, target_name: str, output_format: str, color: str
) -> int:
    """An estimate of what pipelining, combining and scheduling of collectives buy.

    For each computation that has collectives, of a loop one trip: the bytes they move (of the
    larger of operands and result), how many of these while the device computes, how long it waits,
    and the buffers that the loop keeps from trip to trip. With a second module, the same after
    passes.

    A scheduled module is taken in its order; a collective in one piece stops the computation.
    Else an order is tried that waits little, whatever memory it needs. The time of computation is
    the roofline's of the target, that of collectives a ring over its fastest link.

    \b
    hloopt opt step.hlo -p pipeline-collectives -o after.hlo
    hloopt analyze overlap step.hlo after.hlo --target b200
    """
    from hloopt.files import load
    from hloopt.reports.overlap import overlap_report, overlap_to_json, render_overlap
    from hloopt.targets import load_target

    target = load_target(target_name)
    with at_work([before] if after is None else [before, after]) as paths:
        first, *others = [overlap_report(load(path), target) for path in paths]
    second = others[0] if others else None
    if output_format == "json":
        print_json(overlap_to_json(first, second))
    else:
        render_overlap(first, second, make_console(color))
    return 0
