"""The analyses behind the commands, one call each. None of them changes the module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hloopt.diagnostics import HloError
from hloopt.ir.module import Module

if TYPE_CHECKING:
    from hloopt.analysis.cost import CostAnalysis
    from hloopt.analysis.replication import ReplicationAnalysis
    from hloopt.memory.model import MemoryReport
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.run import ScheduleSettings


def analyze_memory(module: Module) -> MemoryReport:
    """The memory that a module needs, in bytes, as `hloopt memory` shows it.

    Where that is yet to be done, figures are of a copy that is flattened, has copies inserted and a
    schedule; `notices` and `doubts` say so. Near-linear in the module. Raises HloError for a module
    whose shapes, aliases or calls make no sense.
    """
    from hloopt.reports.memory.model import memory_report

    return memory_report(module)


def analyze_schedule(
    module: Module, *, target: str | None = None, settings: ScheduleSettings | None = None
) -> ScheduleFindings:
    """A run of a module by its schedule, as `hloopt schedule` shows it.

    Times are those of `target`, the name of hardware or the path of its description; without one
    they are XLA's constants. `settings` say more than a target does, and stand alone. A module
    without a schedule gets one on a copy, which the findings are of. Near-linear in the module.
    Raises HloError for a bad target, or a module that makes no sense.
    """
    from hloopt.cost_models import CostModelChoice
    from hloopt.ir.clone import clone_module
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.run import ScheduleSettings

    if settings is None:
        settings = ScheduleSettings(cost_model=CostModelChoice(target=target))
    elif target is not None:
        raise TypeError("analyze_schedule takes a target or settings, which have a target")
    measured = module if module.is_scheduled else clone_module(module)[0]
    return ScheduleFindings.of(measured, settings)


def analyze_cost(module: Module, *, as_xla: bool = False) -> CostAnalysis:
    """The arithmetic of a module, and its bytes between memory and the processor.

    With `as_xla` the figures are those of XLA's HloCostAnalysis. Works when it is asked, so ask
    before the module changes.
    """
    from hloopt.analysis.cost import CostAnalysis

    return CostAnalysis(module, as_xla=as_xla)


def analyze_replication(
    module: Module,
    *,
    across: Literal["replicas", "partitions"] | None = None,
    partial: bool = False,
) -> ReplicationAnalysis:
    """The values that are the same on all devices, as `hloopt analyze replication` finds them.

    Compared are devices `across` replicas or partitions: by default those there are several of.
    With `partial` it is also known of groups of devices. O(instructions + operands), more with
    `partial`. Raises HloError where there are several of both.
    """
    from hloopt.analysis.replication import ReplicationAnalysis
    from hloopt.ir.devices.device_counts import device_counts

    counts = device_counts(module)
    if across is None:
        if min(counts) > 1:
            raise HloError(
                f"the module is for {counts[0]} replicas and {counts[1]} partitions",
                help='say across="replicas" or across="partitions"',
            )
        across = "partitions" if counts[1] > 1 else "replicas"
    return ReplicationAnalysis(
        module,
        cross_partition_spmd=across == "partitions",
        partial_replication=partial,
        device_counts=counts,
    )
