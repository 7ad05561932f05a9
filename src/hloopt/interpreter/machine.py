"""All devices of a program, run in lock-step: each goes on until it has to wait for others."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from hloopt.diagnostics import counted
from hloopt.interpreter.devices.deadlock import deadlock
from hloopt.interpreter.devices.exchange import grid_of
from hloopt.interpreter.devices.meetings import Going, Meetings
from hloopt.interpreter.effects import RunRecord
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.evaluation import Device, Evaluation, Feed, Observer, Run
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.rounding_noise import RoundingNoise
from hloopt.interpreter.values import Value
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.module import Module


def devices_of(replicas: int, partitions: int) -> list[Device]:
    """The devices of a program, by number. Raises RunError for more than MOST_DEVICES."""
    count = replicas * partitions
    if count > MOST_DEVICES:
        raise RunError(
            f"the program is for {counted(count, 'device')}, {MOST_DEVICES:,} is the most it can "
            "be run on",
            help="--devices RxP: run it on fewer",
        )
    return [
        Device(replica * partitions + partition, replica, partition)
        for replica in range(replicas)
        for partition in range(partitions)
    ]


def run_module(
    module: Module,
    arguments: Sequence[Sequence[Value]],
    *,
    devices: Sequence[Device] | None = None,
    limits: Limits | None = None,
    observer: Observer | None = None,
    stand_ins: bool = False,
    noise: RoundingNoise | None = None,
    record: RunRecord | None = None,
    feed: Feed | None = None,
) -> list[Value]:
    """Run a module's entry on all `devices`, by default those of its header.

    `arguments` has the values of the entry's parameters for each device. Returns the value of the
    entry's root for each device. Raises RunError, also where devices wait for each other for ever.

    With `stand_ins`, custom calls that nobody can compute give made-up values, the same for the
    same operands, and so do constants printed as `{...}`: fit to compare programs. With `noise`,
    what operations round is disturbed. `record` is filled with what else there is to compare.
    `feed` gives what the host does; without it, infeeds and the like cannot run.
    """
    if devices is None:
        devices = devices_of(module.replica_count, module.num_partitions)
    plans = Plans(limits, stand_ins=stand_ins, noise=noise)
    evaluations = [Evaluation(device, plans, observer, feed) for device in devices]
    runs = [
        evaluation.run(module.entry, values)
        for evaluation, values in zip(evaluations, arguments, strict=True)
    ]
    with np.errstate(all="ignore"):
        results = _run_all(runs, Meetings(grid_of(devices), plans))
    if record is not None:
        record.effects = {run.device.number: run.effects for run in evaluations}
        record.ran.update(plans.has_run())
        record.made_up.update(plans.made_up)
        record.is_fed = any(run.is_fed for run in evaluations)
        record.steps = plans.limits.done
    return results


def _run_all(runs: Sequence[Run], meetings: Meetings) -> list[Value]:
    """Run each device as far as it can, again and again. O(1) per turn beside the devices' work."""
    results: dict[int, Value] = {}
    ready = deque(Going(device, None) for device in range(len(runs)))
    while ready:
        device, value = ready.popleft()
        try:
            meeting = runs[device].send(value)
        except StopIteration as finished:
            results[device] = finished.value
        else:
            ready.extend(meetings.meet(device, meeting))
    if meetings.waiting or any(meetings.unreceived()):
        raise deadlock(meetings, finished=results.keys())
    return [results[device] for device in range(len(runs))]
