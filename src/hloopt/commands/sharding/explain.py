"""`hloopt sharding explain`: the origin of each collective."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    check_pair,
    color_option,
    format_option,
    make_console,
    print_json,
    say,
    top_option,
)

if TYPE_CHECKING:
    from hloopt.ir.attributes.values.replica_groups import Mesh
    from hloopt.ir.instruction import Instruction
    from hloopt.ir.module import Module
    from hloopt.sharding.explain import Explanation
    from hloopt.sharding.warnings import RematWarning


@click.command(cls=HloCommand)
@click.argument("before", metavar="BEFORE|DIR", shell_complete=completion.files)
@click.argument("after", metavar="AFTER|MODULE", shell_complete=completion.files)
@click.option("--mesh", metavar="AXIS=SIZE,…", help="the mesh, to name axes: dp=2,tp=4")
@click.option(
    "--log",
    metavar="FILE",
    help="XLA's log, for the partitioner's warnings of full rematerialization",
    shell_complete=completion.files,
)
@click.option(
    "--exact",
    is_flag=True,
    help="let XLA's partitioner tell origins: it runs again on a tagged program (jaxlib)",
)
@top_option("collectives", 20)
@format_option
@color_option
def command(
    before: str,
    after: str,
    mesh: str | None,
    log: str | None,
    exact: bool,
    top: int,
    output_format: str,
    color: str,
) -> int:
    """Explain each collective of a partitioned module by the module before the partitioner.

    For each: the instruction and source line that made it, the kind of cause, the shardings on
    both sides, bytes and trips, whether it is a full rematerialization, and what would avoid it.
    The texts are matched by metadata and structure: an origin is exact, clear or ambiguous. The
    costliest line of the program comes first. Of a folder of dumps, name the module. With --exact
    the partitioner of jaxlib for CPUs runs again, and tells where it makes the same collectives,
    or else where it says what the texts do.

    \b
    XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd-partitioning" python step.py
    hloopt sharding explain DIR jit_step
    hloopt sharding explain before.hlo after.hlo --mesh dp=2,tp=4 --log stderr.txt
    """
    from hloopt.reports.sharding.findings import report_explanations
    from hloopt.sharding.axes import parse_mesh_option
    from hloopt.sharding.explain import explain, only_mesh

    left, right, named = _modules(before, after)
    chosen = named or only_mesh(left)
    if mesh is not None:
        chosen = parse_mesh_option(mesh, left.num_partitions)
    warnings = _warnings(log)
    found = explain(left, right, mesh=chosen, warnings=warnings)
    if exact:
        known = _told(left, right, found)
        found = explain(left, right, mesh=chosen, warnings=warnings, known=known)
    axes = "" if chosen is None else ", ".join(f"{name}={size}" for name, size in chosen.axes)
    report = report_explanations(right.name, left.num_partitions, axes, found)
    if output_format == "json":
        from hloopt.reports.sharding.record import explanations_to_json

        print_json(explanations_to_json(report))
    else:
        from hloopt.reports.sharding.terminal import render_explanations

        render_explanations(report, make_console(color), top=top)
    return 0


def _modules(before: str, after: str) -> tuple[Module, Module, Mesh | None]:
    """Both sides of the partitioner, and the mesh that an earlier dump names."""
    from hloopt.files import is_folder, load

    if not is_folder(before):
        check_pair(before, after)
        return load(before), load(after), None
    from hloopt.dumps.partitioner import partitioner_dumps
    from hloopt.sharding.explain import only_mesh

    paths = partitioner_dumps(before, after)
    mesh = None if paths.first is None else only_mesh(load(paths.first))
    return load(paths.before), load(paths.after), mesh


def _told(
    before: Module, after: Module, found: list[Explanation]
) -> dict[Instruction, Instruction]:
    """The origins that XLA's partitioner tells when it runs on a tagged copy, beside those that
    the texts have `found`; on stderr, where it makes other collectives than these. Raises HloError
    and CompilerFailure."""
    import tempfile
    from pathlib import Path

    from hloopt.compilers.partitioning import partition_alone
    from hloopt.sharding.tags import has_same_collectives, tagged, told_origins

    copy, tags = tagged(before)
    with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
        made = partition_alone(copy, Path(folder))
    known = told_origins(made, after, found, tags)
    if not has_same_collectives(made, after):
        say(
            "--exact: XLA's partitioner makes other collectives here; "
            f"it tells the origins that the texts do for {len(known):,} of {len(found):,}"
        )
    return known


def _warnings(log: str | None) -> list[RematWarning]:
    from hloopt.files.reading import read_source
    from hloopt.sharding.warnings import read_remat_warnings

    return [] if log is None else read_remat_warnings(read_source(log).text.splitlines())
