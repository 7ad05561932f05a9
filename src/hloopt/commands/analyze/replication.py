"""`hloopt analyze replication`: what is the same on all devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.common import (
    HloCommand,
    at_work,
    color_option,
    format_option,
    make_console,
    print_json,
    print_titles,
    say,
    top_option,
)
from hloopt.commands.running import devices_option

if TYPE_CHECKING:
    from hloopt.analysis.replication import Axis
    from hloopt.analysis.stage import Stage
    from hloopt.ir.module import Module
    from hloopt.reports.replication.findings import ReplicationReport


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--cross-replica", is_flag=True, help="compare replicas")
@click.option("--cross-partition", is_flag=True, help="compare partitions")
@click.option("--partial", is_flag=True, help="also find sets of devices that have the same")
@devices_option
@top_option("rows of the table", 10)
@click.option("--instructions", is_flag=True, help="list every instruction instead")
@click.option(
    "--annotate",
    metavar="OUT",
    help="also write the module, with what was found as attributes; -: nothing else",
)
@format_option
@color_option
def command(
    files: tuple[str, ...],
    cross_replica: bool,
    cross_partition: bool,
    partial: bool,
    counts: tuple[int, int] | None,
    top: int,
    instructions: bool,
    annotate: str | None,
    output_format: str,
    color: str,
) -> int:
    """What is the same on all devices, and what computing it everywhere costs.

    Compared are replicas, or partitions: those there are several of, unless an option says
    which. Redundant work is what devices compute alike at some cost; parameters, constants and
    collectives are none. Of parameters is known what their shardings and parameter_replication
    say.

    \b
    hloopt analyze replication step.hlo --partial
    hloopt analyze replication step.hlo --annotate annotated.hlo
    """
    from hloopt.analysis.replication import Axis
    from hloopt.analysis.stage import Stage
    from hloopt.files import find_inputs, is_stdout, load, save
    from hloopt.reports.stage_notices import partition_notices, render_notices

    paths = find_inputs(files)
    if annotate is not None and len(paths) > 1:
        raise click.UsageError(f"--annotate is for one file, not {len(paths)}")
    wanted = [Axis.REPLICAS] * cross_replica + [Axis.PARTITIONS] * cross_partition
    found: list[tuple[str, str, tuple[str, ...], list[ReplicationReport]]] = []
    with at_work(paths) as each:
        for path in each:
            module = load(path)
            stage = Stage.of(module)
            axes = [axis for axis in wanted or Axis if _is_told(stage, axis)]
            reports = _reports(module, axes, counts, partial=partial)
            found.append((path, module.name, partition_notices(stage), reports))
    if annotate is not None:
        from hloopt.reports.replication.attributes import annotate_replication

        for report in reports:
            annotate_replication(module, report.analysis)
        save(module, annotate)
        if is_stdout(annotate):
            if not reports:
                _, _, notices, _ = found[0]
                for notice in notices or [_nothing(wanted)]:
                    say(notice)
            return 0
        say(f"wrote {annotate}")
    if output_format == "json":
        from hloopt.reports.replication.findings import replication_to_json

        print_json(
            [
                {
                    "file": path,
                    "module": name,
                    "notices": list(notices),
                    "axes": [replication_to_json(r) for r in reports],
                }
                for path, name, notices, reports in found
            ]
        )
        return 0
    from hloopt.reports.replication.terminal import render_instructions, render_replication

    console = make_console(color)
    titled = [(path, (notices, reports)) for path, _, notices, reports in found]
    for notices, reports in print_titles(console, titled, files):
        render_notices(notices, console)
        if not reports and not notices:
            console.print(_nothing(wanted))
        for number, report in enumerate(reports):
            if number:
                console.print()
            if instructions:
                render_instructions(report, console)
            else:
                render_replication(report, console, top=top)
    return 0


def _reports(
    module: Module, axes: list[Axis], counts: tuple[int, int] | None, *, partial: bool
) -> list[ReplicationReport]:
    """A report for each of the axes that has several devices."""
    from hloopt.analysis.replication import Axis, ReplicationAnalysis
    from hloopt.ir.devices.device_counts import device_counts
    from hloopt.reports.replication.findings import report_replication

    counts = counts or device_counts(module)
    return [
        report_replication(
            module,
            ReplicationAnalysis(
                module,
                cross_partition_spmd=axis is Axis.PARTITIONS,
                partial_replication=partial,
                device_counts=counts,
            ),
        )
        for axis, count in zip(Axis, counts, strict=True)
        if axis in axes and count > 1
    ]


def _is_told(stage: Stage, axis: Axis) -> bool:
    """Whether a text tells what devices along an axis have in common: not what partitions have
    before the partitioner, which runs one program for all of them."""
    from hloopt.analysis.replication import Axis

    return axis is not Axis.PARTITIONS or stage.partitioned.holds is not False


def _nothing(wanted: list[Axis]) -> str:
    one = f"there is one of its {wanted[0]}" if len(wanted) == 1 else "it is for one device"
    return f"nothing to compare: {one}; --devices RxP says otherwise"
