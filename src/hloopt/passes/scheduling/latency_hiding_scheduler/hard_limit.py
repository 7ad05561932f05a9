"""Orders that stay below a memory limit: XLA's scheduler alone only bends towards it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir import Computation, Instruction
from hloopt.ir.schedule import set_schedule
from hloopt.memory.backends import CPU, GPU
from hloopt.memory.schedulers import schedule_module
from hloopt.pass_framework.base import PassContext
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.memory.peak import Peak

Orders = Mapping[Computation, Sequence[Instruction]]
_SHARES = (0.9, 0.75, 0.5, 0.25, 0.0)


class _Attempt(NamedTuple):
    """A way to schedule a module with less memory."""

    what: str
    """For people."""
    begin: Orders
    """The order to begin with: it breaks ties."""
    memory_limit: int
    """The limit that the scheduler is told to aim at."""
    preferences: Mapping[Instruction, float]


def keep_limit(
    scheduling: ModuleScheduling,
    computations: list[Computation],
    incoming: Orders,
    context: PassContext,
) -> None:
    """Schedule again while a module that was scheduled needs more than the memory limit.

    The first order that stays below it is kept. Raises PassRefused where none does, with what is
    alive at the peak of the best.
    """
    scheduler = scheduling.scheduler
    limit = scheduler.config.limit
    scheduler.life.restart()
    plain = least = scheduling.peak()
    if plain <= limit:
        return
    best: Orders = scheduling.orders()
    tried = 1
    for attempt in _attempts(scheduling, incoming):
        _begin_with(scheduling, attempt.begin)
        try:
            scheduling.schedule(computations, attempt.memory_limit, attempt.preferences)
        except PassRefused:  # resources do not suffice along this way
            continue
        tried += 1
        scheduler.life.restart()
        peak = scheduling.peak()
        if peak <= limit:
            context.applied(
                scheduling.module.entry.root,
                f"kept the hard memory limit of {counted(limit, 'byte')}: the peak is {peak:,}, "
                "that of "
                f"the plain order {plain:,}; found by {attempt.what}",
            )
            return
        if peak < least:
            least, best = peak, scheduling.orders()
    _begin_with(scheduling, best)
    peak_of_best = Peak.of(scheduler.life)
    raise PassRefused(
        f"no order that needs at most {counted(limit, 'byte')} was found: the best of {tried} "
        "needs "
        f"{least:,}, at '%{peak_of_best.at.name}' in '%{peak_of_best.at.parent.name}' "
        "(the entry's parameters not counted)",
        help=f"alive there: {peak_of_best.largest()}",
        span=scheduling.module.span_of(peak_of_best.at),
    )


def _attempts(scheduling: ModuleScheduling, incoming: Orders) -> Iterator[_Attempt]:
    """Ways that need less and less memory, and hide less and less.

    First the scheduler is told of a smaller limit, beginning with the incoming order and with that
    of the memory scheduler. Then these orders themselves are followed, as far as overlap limits
    and overwritten buffers let it, and at last without work between starts and dones.
    """
    config = scheduling.scheduler.config
    limit = config.limit
    for share in _SHARES:
        what = f"aiming at {share:.0%} of the limit"
        yield _Attempt(what, incoming, int(limit * share), {})
    backend = GPU if config.preset == "xla-gpu" else CPU
    compact = schedule_module(scheduling.module, backend=backend).orders
    for share in (1.0, *_SHARES):
        what = f"aiming at {share:.0%} of the limit, beginning with the memory scheduler's order"
        yield _Attempt(what, compact, int(limit * share), {})
    for name, orders in (
        ("the incoming order", incoming),
        ("the memory scheduler's order", compact),
    ):
        yield _Attempt(f"following {name}", orders, limit, _following(orders))
        late = _with_late_starts(scheduling, orders)
        yield _Attempt(f"following {name} with starts next to their dones", orders, limit, late)


def _begin_with(scheduling: ModuleScheduling, orders: Orders) -> None:
    """Put the module in an order, and forget what was known of the old one."""
    set_schedule(scheduling.module, orders)
    for computation in orders:
        scheduling.scheduler.tracker.forget(computation)
    scheduling.scheduler.life.restart()


def _following(orders: Orders) -> dict[Instruction, float]:
    """Preferences by which the scheduler repeats an order."""
    return {
        instruction: float(position)
        for order in orders.values()
        for position, instruction in enumerate(order)
    }


def _with_late_starts(scheduling: ModuleScheduling, orders: Orders) -> dict[Instruction, float]:
    tracker = scheduling.scheduler.tracker
    preferences = _following(orders)
    for order in orders.values():
        for done in order:
            if tracker.may_be_asynchronous(done.opcode) and tracker.is_done(done):
                preferences[done.operands[0]] = preferences[done] - 0.5
    return preferences
