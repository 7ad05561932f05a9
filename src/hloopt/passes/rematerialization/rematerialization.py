"""Lower the memory peak of a scheduled module by computing values again before later uses."""

from __future__ import annotations

from hloopt.diagnostics import PassRefused, PipelineError, counted
from hloopt.ir.module import Module
from hloopt.ir.ordering import repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rematerialization.always import rematerialize_always
from hloopt.passes.rematerialization.options import OPTION_GROUPS, RematerializationOptions
from hloopt.passes.rematerialization.peak_priority import rematerialize_peak
from hloopt.passes.rematerialization.state import State
from hloopt.passes.simplification.dce import DeadCodeElimination

_ALGORITHMS = {"always": rematerialize_always, "peak-priority": rematerialize_peak}


@register(
    "rematerialization",
    preserves="bits",
    xla=XlaPass(
        "HloRematerialization",
        "xla/hlo/transforms/simplifiers/hlo_rematerialization.h",
    ),
)
class Rematerialization(ModulePass):
    """Lower the memory peak of a scheduled module below a limit.

    A value with uses far apart is computed again right before the later ones (`recompute`), kept in
    a more compact layout meanwhile (`compress`), or in host memory (`host_offload`). Of all that
    helps at an instruction, what saves most is taken. Called computations are changed only where
    nothing around the call helps. Memory is counted along the schedule, a buffer for each value,
    without sharing between operand and result. Dead code is removed at the end. Unlike in XLA, what
    only the end of an asynchronous operation may read is not copied elsewhere. Near-linear, apart
    from the way in the schedule between one peak and the next in `peak-priority`.
    """

    Options = RematerializationOptions
    option_groups = OPTION_GROUPS
    options: RematerializationOptions

    def run(self, module: Module, context: PassContext) -> bool:
        options = self.options
        total = options.memory_limit_bytes
        if total is None:
            raise PipelineError(
                "rematerialization needs memory_limit_bytes",
                help="such as memory_limit_bytes=80GiB",
            )
        if not module.is_scheduled:
            raise PassRefused(
                "the module has no schedule, so nothing is known of its memory",
                help="run hlo-memory-scheduler or latency-hiding-scheduler first",
            )
        if not options.has_strategy or context.is_at_limit:
            return False
        state = State(module, options, context)
        result = state.sizes.whole(module.entry.root.shape)
        asynchronous = self._asynchronous_memory(state)
        state.find_peaks(options.execution_threads)
        before = state.peaks.get(module.entry, 0)
        limit = max(0, total - result - asynchronous)
        changed = _ALGORITHMS[options.algorithm](state, module.entry, limit)
        changed |= _remove_dead_code(module, options.execution_threads, context)
        after = self._peak_now(module, context) if changed else before
        around = result + asynchronous
        self._report(context, before + around, after + around)
        return changed

    def _asynchronous_memory(self, state: State) -> int:
        """Bytes that computations need at most which run beside the main program."""
        shares = self.options.async_computation_parallelism or {}
        computations = state.module.computations
        for name in shares:
            if name not in computations:
                raise PassRefused(
                    f"async_computation_parallelism names %{name}, which is no computation of the "
                    "module",
                    help="give the computation that an async-start calls",
                )
        if not shares:
            return 0
        state.find_peaks(
            {computations[name].execution_thread for name in shares}, callees_on_own_thread=True
        )
        most = max(state.peaks.get(computations[n], 0) * count for n, count in shares.items())
        state.peaks.clear()
        return most

    def _peak_now(self, module: Module, context: PassContext) -> int:
        """The peak of the entry counted anew: what came to lie before a walk is in no running peak.

        O(operands and slots).
        """
        state = State(module, self.options, context)
        state.find_peaks(self.options.execution_threads)
        return state.peaks.get(module.entry, 0)

    def _report(self, context: PassContext, before: int, after: int) -> None:
        """The peaks as statistics, and a warning where the module still needs too much."""
        limit = self.options.memory_limit_bytes
        assert limit is not None  # else the pass has refused
        context.count("bytes at the peak before", before)
        context.count("bytes at the peak after", after)
        if after > limit:
            context.note(
                f"the module still needs {counted(after, 'byte')}, {after - limit:,} more than "
                "memory_limit_bytes: remarks of kind missed say why"
            )


def _remove_dead_code(module: Module, threads: tuple[str, ...], context: PassContext) -> bool:
    """Remove what nobody reads any more until nothing is left; whether anything was."""
    options = DeadCodeElimination.Options(execution_threads=threads)
    dead_code = DeadCodeElimination(options)
    changed = False
    while dead_code.run(module, context):
        changed = True
    if changed:
        repair_schedule(module.computations.values())
    return changed
