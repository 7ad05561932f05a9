"""Orders for modules that have no schedule."""

from __future__ import annotations

from hloopt.ir import Module
from hloopt.ir.clone import clone_module
from hloopt.ir.schedule import set_schedule
from hloopt.memory.backends import backend_of
from hloopt.memory.schedulers import schedule_module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.copy_insertion import insert_copies
from hloopt.passes.scheduling.latency_hiding_scheduler import LatencyHidingScheduler
from hloopt.reports.schedule.run import ScheduleSettings

ALL_COLLECTIVES = {
    f"convert_{kind}": True
    for kind in (
        *("all_reduce", "all_gather", "collective_broadcast", "collective_permute"),
        *("all_to_all", "reduce_scatter", "ragged_all_to_all"),
    )
}
"""Options of async-collective-creator that leave none as it is."""


def ensure_schedule(module: Module) -> str:
    """Give a module without a schedule that of XLA's default memory scheduler.

    Who made the order, for people: `schedule` where there was one.
    """
    if module.is_scheduled:
        return "schedule"
    schedule = schedule_module(module, backend=backend_of(module))
    set_schedule(module, schedule.orders)
    return f"{schedule.algorithm} (the module is not scheduled)"


def scheduled_to_hide(module: Module, settings: ScheduleSettings) -> tuple[Module, str]:
    """A module whose order hides what it can, and who made the order: `schedule`, or for one
    without latency-hiding-scheduler, on a copy whose collectives are all asynchronous.

    Near-linear. Raises HloError for what the scheduler refuses.
    """
    if module.is_scheduled:
        return module, "schedule"
    copy, _ = clone_module(module)
    context = PassContext()
    create_pass("async-collective-creator", ALL_COLLECTIVES).run(copy, context)
    create_pass("flatten-call-graph").run(copy, context)
    insert_copies(copy)
    ensure_schedule(copy)
    create_pass("legalize-scheduling-annotations").run(copy, context)
    LatencyHidingScheduler(settings.config_for(copy)).run(copy, context)
    return copy, "latency-hiding-scheduler, collectives asynchronous (the module is not scheduled)"
