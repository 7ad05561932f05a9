"""Memory space assignment as a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir import Module
from hloopt.memory_space.allocation.hints import NO_HINTS
from hloopt.memory_space.allocation.planning import plan_memory_spaces
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.memory_space.assignment import apply_plan
from hloopt.passes.memory_space.option_groups import MEMORY_SPACE_ASSIGNMENT
from hloopt.passes.memory_space.remarks import (
    lost_by_reason,
    outcome_text,
    report_plan,
    times_text,
)
from hloopt.passes.memory_space.report import MemorySpaceReport
from hloopt.passes.memory_space.times import run_times

if TYPE_CHECKING:
    from hloopt.passes.memory_space.search.search import Outcome


@register(
    "memory-space-assignment",
    preserves="bits",
    xla=XlaPass(
        "MemorySpaceAssignment",
        "xla/service/memory_space_assignment/memory_space_assignment.h",
        compared="tests",
    ),
)
class MemorySpaceAssignment(ModulePass):
    """Decide which values of a scheduled module live in a small fast memory, and when.

    Values that stay there, prefetches, evictions and their places are found buffer by buffer; what
    lies in the fast memory gets its memory space in layouts, and asynchronous copies go between the
    two where the schedule hides them. Near-linear in the module's size.
    """

    Options = MemorySpaceOptions
    option_groups = MEMORY_SPACE_ASSIGNMENT
    options: MemorySpaceOptions
    report: MemorySpaceReport | None = None
    """The places found by the last run."""

    def run(self, module: Module, context: PassContext) -> bool:
        if not module.is_scheduled:
            raise PassRefused(
                "memory space assignment needs a schedule",
                help="run hlo-memory-scheduler before it",
            )
        if context.is_at_limit:
            return False
        options, hints = self.options, NO_HINTS
        if options.search is not None:
            found = self._search(module, context).best
            if found is None:
                return False
            options, hints = found.options, found.hints
        before = module.version
        plan = plan_memory_spaces(module, options, hints)
        report_plan(plan, options, context)
        wants_times = context.wants_remarks and options.cost_model is not None
        plain = run_times(module, options).seconds if wants_times else 0.0
        lost = lost_by_reason(plan) if wants_times else []
        self.report = apply_plan(module, plan, options)
        if wants_times:
            text = times_text(plain, run_times(module, options), lost)
            context.analysis(module.entry.root, text)
        changed = module.version != before
        if changed:
            count = len(self.report.chunks)
            context.apply(
                module.entry.root,
                f"{counted(count, 'position')} in memory space "
                f"{self.options.alternate_memory_space}",
            )
        return changed

    def _search(self, module: Module, context: PassContext) -> Outcome:
        """Look for the best assignment and remark on its time."""
        from hloopt.passes.memory_space.search.search import search_assignment

        if self.options.cost_model is None:
            raise PassRefused(
                "the search for places needs a cost model", help="give the option cost_model"
            )
        if self.options.autotuning_config is not None:
            raise PassRefused(
                "autotuning_config gives the order of buffers, which the search looks for",
                help="leave one of the two out",
            )
        found = search_assignment(module, self.options, context.on_progress)
        context.analysis(module.entry.root, outcome_text(found))
        return found
