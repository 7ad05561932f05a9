"""Orders for modules that have no schedule."""

from __future__ import annotations

from hloopt.analysis.async_operations import async_form
from hloopt.analysis.calls import loops_with_body
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.clone import clone_module
from hloopt.ir.schedule import set_schedule
from hloopt.memory.backends import backend_of
from hloopt.memory.schedulers import schedule_module
from hloopt.passes.base import PassContext
from hloopt.passes.latency_hiding_scheduler import LatencyHidingScheduler
from hloopt.passes.registry import create_pass
from hloopt.reports.schedule_run import ScheduleSettings

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


def copy_into_loop_states(module: Module) -> None:
    """Let what collectives give the next trip of a loop have buffers of its own, as XLA's copy
    insertion does, which comes before scheduling.

    Else a collective, in place in the loop's state, could not start before the last reader of what
    the trip was given there. O(bodies' states and what reads them).
    """
    bodies = [body for body in module.computations.values() if loops_with_body(body)]
    for body in bodies:
        if body.root.opcode is not Opcode.TUPLE:
            continue
        read = {
            user.tuple_index
            for user in body.parameters[0].users
            if user.opcode is Opcode.GET_TUPLE_ELEMENT and not _is_only_copied(user)
        }
        results = list(body.root.operands)
        for index, value in enumerate(results):
            if index in read and async_form(value).outer is Opcode.ASYNC_DONE:
                results[index] = body.add(Opcode.COPY, value.shape, [value])
        body.root.set_operands(results)


def _is_only_copied(element: Instruction) -> bool:
    """Whether copies of an element of a state, and the next state, are all that reads it."""
    return all(user.opcode is Opcode.COPY or user.is_root for user in element.users)


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
    copy_into_loop_states(copy)
    ensure_schedule(copy)
    create_pass("legalize-scheduling-annotations").run(copy, context)
    LatencyHidingScheduler(settings.config_for(copy)).run(copy, context)
    return copy, "latency-hiding-scheduler, collectives asynchronous (the module is not scheduled)"
