"""The dumps of a module on both sides of the SPMD partitioner."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.diagnostics import HloError
from hloopt.dumps.chain import choose
from hloopt.dumps.folder import scan
from hloopt.dumps.names import Phase

_PASS = "spmd-partitioning"
_HELP = "run again with --xla_dump_hlo_pass_re=spmd-partitioning (or .*)"


class PartitionerDumps(NamedTuple):
    """Paths of the dumps of one module."""

    before: str
    after: str
    first: str | None
    """The module before all passes, which still names the axes of the mesh; None where it was not
    dumped."""


def partitioner_dumps(folder: str, name: str) -> PartitionerDumps:
    """The dumps of the module `name` right before and after the partitioner.

    Reads names of files alone. Raises HloError where one of the two is missing.
    """
    compilations = scan([folder]).compilations
    if not compilations:
        raise HloError(f"{folder} has no dumps of modules", help=_HELP)
    compilation = choose(compilations, name)
    stages = compilation.chain()
    before = [stage for stage in stages if stage.before.startswith(_PASS)]
    after = [stage for stage in stages if stage.after.startswith(_PASS)]
    if not before or not after:
        side = "before" if not before else "after"
        raise HloError(f"{folder} has no dump of {name} {side} {_PASS}", help=_HELP)
    first = compilation.first
    is_begin = first is not None and first.phase is Phase.BEGIN
    return PartitionerDumps(
        compilation.hlo(before[0]).path,
        compilation.hlo(after[0]).path,
        compilation.hlo(first).path if first is not None and is_begin else None,
    )
