"""`hloopt analyze replication`: what is the same on all devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
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
from hloopt.commands.shared.running import devices_option

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.analysis.replication import Axis
    from hloopt.analysis.stage import Stage
    from hloopt.ir.module import Module
    from hloopt.reports.replication.findings import ReplicationReport


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
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
    shell_complete=completion.files,
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
    """Show the values that are the same on all devices, and the cost of computing them everywhere.

    Compared are replicas, or partitions: those there are several of, unless an option says
    which. Redundant work is what devices compute alike at some cost; parameters, constants and
    collectives are none. Of parameters is known what their shardings and parameter_replication
    say.

    \b
    hloopt analyze replication step.hlo --partial
    hloopt analyze replication step.hlo --annotate annotated.hlo
    """
    from hloopt.analysis.replication import Axis
    from hloopt.files import find_inputs, load

    paths = find_inputs(files)
    if annotate is not None and len(paths) > 1:
        raise click.UsageError(f"--annotate is for one file, not {len(paths)}")
    wanted = [Axis.REPLICAS] * cross_replica + [Axis.PARTITIONS] * cross_partition
    found: list[tuple[str, _Findings]] = []
    with at_work(paths) as each:
        for path in each:
            module = load(path)
            found.append((path, _analyze(module, wanted, counts, partial=partial)))
    if annotate is not None:
        _, findings = found[0]
        if _annotate(module, findings, annotate, wanted):
            return 0
    if output_format == "json":
        print_json([{"file": path, **_to_json(findings)} for path, findings in found])
        return 0
    console = make_console(color)
    for findings in print_titles(console, found, files):
        _render(findings, console, wanted, None if instructions else top)
    return 0


class _Findings(NamedTuple):
    """The findings on one module."""

    name: str
    notices: tuple[str, ...]
    reports: list[ReplicationReport]
    """The reports, one per axis."""


def _analyze(
    module: Module, wanted: list[Axis], counts: tuple[int, int] | None, *, partial: bool
) -> _Findings:
    from hloopt.analysis.replication import Axis
    from hloopt.analysis.stage import Stage
    from hloopt.reports.stage_notices import partition_notices

    stage = Stage.of(module)
    axes = [axis for axis in wanted or Axis if _is_told(stage, axis)]
    reports = _reports(module, axes, counts, partial=partial)
    return _Findings(module.name, partition_notices(stage), reports)


def _annotate(module: Module, findings: _Findings, place: str, wanted: list[Axis]) -> bool:
    """Write the module with its findings; whether that is all there is to be written."""
    from hloopt.files import is_stdout, save
    from hloopt.reports.replication.attributes import annotate_replication

    for report in findings.reports:
        annotate_replication(module, report.analysis)
    save(module, place)
    if not is_stdout(place):
        say(f"wrote {place}")
        return False
    if not findings.reports:
        for notice in findings.notices or [_nothing(wanted)]:
            say(notice)
    return True


def _to_json(findings: _Findings) -> dict[str, object]:
    from hloopt.reports.replication.record import replication_to_json

    return {
        "module": findings.name,
        "notices": list(findings.notices),
        "axes": [replication_to_json(report) for report in findings.reports],
    }


def _render(findings: _Findings, console: Console, wanted: list[Axis], top: int | None) -> None:
    """Print a table of `top` rows per report; None: every instruction."""
    from hloopt.reports.replication.terminal import render_instructions, render_replication
    from hloopt.reports.stage_notices import render_notices

    render_notices(findings.notices, console)
    if not findings.reports and not findings.notices:
        console.print(_nothing(wanted))
    for number, report in enumerate(findings.reports):
        if number:
            console.print()
        if top is None:
            render_instructions(report, console)
        else:
            render_replication(report, console, top=top)


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
