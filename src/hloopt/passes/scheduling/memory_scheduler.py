"""Give a module a schedule, or take it away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hloopt.ir.module import Module
from hloopt.ir.schedule import drop_schedule, set_schedule
from hloopt.memory.backends import CPU, GPU
from hloopt.memory.schedulers import Algorithm, Schedule, schedule_module
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)


@register(
    "hlo-memory-scheduler",
    preserves="bits",
    xla=XlaPass("HloMemoryScheduler", "xla/hlo/transforms/simplifiers/hlo_memory_scheduler.h"),
)
class MemoryScheduler(ModulePass):
    """Order the instructions of each computation so that little memory is needed.

    `list` takes of all that is ready what frees most bytes, `dfs` walks depth first to what many
    wait for, `post-order` and `bfs` look at the graph alone. `default` tries list, dfs and
    post-order and keeps the one with the smallest peak. A schedule that is there already is
    replaced. With preset xla-gpu asynchronous starts then go up and dones down as far as their
    neighbours allow, and peaks are those of XLA:GPU. Near-linear in the module's size.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        algorithm: Literal["default", "list", "dfs", "post-order", "bfs"] = option(
            "default", "how to find an order"
        )
        pointer_size: int = option(8, "bytes of an entry in the table of a tuple")
        preset: Literal["xla-generic", "xla-gpu"] = option(
            "xla-generic", "whose rules: those all targets share, or XLA:GPU's"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        if context.is_at_limit:
            return False
        schedule = schedule_module(
            module,
            Algorithm(self.options.algorithm),
            backend=GPU if self.options.preset == "xla-gpu" else CPU,
            pointer_size=self.options.pointer_size,
        )
        return _apply(schedule, module, context)


@register(
    "hlo-trivial-scheduler",
    preserves="bits",
    xla=XlaPass(
        "HloTrivialScheduler",
        "xla/hlo/transforms/simplifiers/hlo_memory_scheduler.h",
        compared="nothing",
    ),
)
class TrivialScheduler(ModulePass):
    """Order the instructions of each computation depth first, operands before users.

    What the root does not depend on goes first. Replaces a schedule that is there. Linear.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        if context.is_at_limit:
            return False
        return _apply(schedule_module(module, Algorithm.TRIVIAL), module, context)


@register(
    "hlo-descheduler",
    preserves="bits",
    xla=XlaPass(
        "HloDescheduler",
        "xla/hlo/transforms/simplifiers/hlo_memory_scheduler.h",
        compared="nothing",
    ),
)
class Descheduler(ModulePass):
    """Drop the schedule: the order of the instructions means nothing any more."""

    def run(self, module: Module, context: PassContext) -> bool:
        if not module.is_scheduled or not context.apply(
            module.entry.root, "the module's schedule is dropped", remark=False
        ):
            return False
        return drop_schedule(module)


def _apply(schedule: Schedule, module: Module, context: PassContext) -> bool:
    before = module.version
    context.count("computations reordered", set_schedule(module, schedule.orders))
    changed = module.version != before
    if changed:
        peaks = ", ".join(f"{name} {peak:,}" for name, peak in schedule.peaks.items())
        needs = f" (bytes needed: {peaks})" if peaks else ""
        context.apply(module.entry.root, f"scheduled in {schedule.algorithm} order{needs}")
    return changed
