"""The options by which commands let people say how schedules are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared.cost_model_options import Command, cost_model_options, preset_option
from hloopt.cost_models import CostModelChoice, needs_target

if TYPE_CHECKING:
    from hloopt.ir import Module
    from hloopt.reports.schedule.run import Preset, ScheduleSettings
    from hloopt.simulation import Loops
    from hloopt.targets import Target


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """The options given for runs of schedules."""

    cost_model: CostModelChoice
    preset: Preset | None
    devices: int | None
    share_bandwidth: bool
    scheduler_texts: Sequence[str]

    def settings(
        self, *, loops: Loops = "trips", memory_limit: int | None = None
    ) -> ScheduleSettings:
        """The same, checked. Raises HloError, UsageError."""
        from hloopt.reports.schedule.run import ScheduleSettings
        from hloopt.scheduling.config import SchedulerConfig

        self.cost_model.resolved()
        return ScheduleSettings(
            cost_model=self.cost_model,
            preset=self.preset,
            scheduler=SchedulerConfig(**_scheduler_options(self.scheduler_texts)),
            loops=loops,
            shared_bandwidth=self._shared_bandwidth(),
            memory_limit=memory_limit,
        )

    def _shared_bandwidth(self) -> Target | None:
        """The target whose bandwidth is shared. Raises HloError without one."""
        from hloopt.targets import load_target

        name = self.cost_model.target
        target = None if name is None else load_target(name)
        if not self.share_bandwidth:
            return None
        if target is None:
            raise needs_target("--share-bandwidth")
        return target

    def load(self, path: str) -> Module:
        """Read a module, for as many devices as were asked for. Raises HloError."""
        from hloopt.files import load
        from hloopt.reports.schedule.run import set_devices

        module = load(path)
        if self.devices is not None:
            set_devices(module, self.devices)
        return module


def schedule_options(command: Callable[..., int]) -> Command:
    """The options of the cost model, `--preset`, `--devices`, `--share-bandwidth` and
    `--scheduler`, given as `schedule`."""

    @wraps(command)
    def with_options(
        *arguments: Any,
        cost_model: CostModelChoice,
        preset: Any,
        devices: int | None,
        share_bandwidth: bool,
        scheduler_texts: Sequence[str],
        **others: Any,
    ) -> int:
        schedule = ScheduleOptions(cost_model, preset, devices, share_bandwidth, scheduler_texts)
        return command(*arguments, schedule=schedule, **others)

    result: Command = with_options
    for option in reversed(_OPTIONS):
        result = option(result)
    return cost_model_options(result)


_OPTIONS = (
    preset_option,
    click.option(
        "--devices",
        type=click.IntRange(1),
        metavar="N",
        help="how many devices run the module; default: its replicas times its partitions",
    ),
    click.option(
        "--share-bandwidth",
        is_flag=True,
        help="let what runs at the same time share the memory bandwidth of the target",
    ),
    click.option(
        "--scheduler",
        "scheduler_texts",
        multiple=True,
        metavar="NAME=VALUE,…",
        help="options of latency-hiding-scheduler, such as its overlap limits: "
        "`hloopt passes latency-hiding-scheduler` lists them",
    ),
)


def _scheduler_options(texts: Sequence[str]) -> dict[str, Any]:
    """The configuration of all `--scheduler` options together. Raises HloError, UsageError."""
    if not texts:
        return {}
    from hloopt.diagnostics import Source
    from hloopt.pass_framework.pipeline_text import parse_options

    values = parse_options("latency-hiding-scheduler", Source("--scheduler", ",".join(texts)))
    for name in values:
        if name in _NOT_TAKEN:
            raise click.UsageError(f"--scheduler does not take {name}: {_NOT_TAKEN[name]}")
    return values


_NOT_TAKEN = {
    "search": "schedules are looked at with the rules alone; `hloopt opt` searches",
    "explain": "`hloopt schedule --explain` does",
    **{
        name: f"--{name.replace('_', '-')} does"
        for name in (
            *("preset", "cost_model", "target", "cost_table", "profile"),
            *("collective_perf_table", "matmul_perf_table", "smooth_tables"),
        )
    },
}
"""The options of the scheduler that `--scheduler` leaves to others, and to whom."""
