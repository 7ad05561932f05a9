"""The options of the scheduler: XLA's SchedulerConfig, field by field."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from hloopt.cost_models import CostModelChoice, CostModelName
from hloopt.diagnostics import HloError, PipelineError
from hloopt.ir.module import Module
from hloopt.memory.scheduling_limit import scheduling_limit
from hloopt.options import Bytes, PassOptions, option
from hloopt.scheduling.search_options import SearchOptions

_UNLIMITED = (1 << 64) - 1

_CHECKED = ("collective_broadcast", "all_to_all", "all_gather", "all_reduce", "reduce_scatter")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig(PassOptions):
    """The options of the scheduler. Names and defaults are those of XLA."""

    preset: Literal["xla-generic", "xla-gpu"] = option(
        "xla-generic", "whose resources, times and defaults: those all targets share, or XLA:GPU's"
    )
    cost_model: CostModelName | None = option(
        None,
        "times: `fixed`, constants by kind of instruction; `sol`, speed of light, by formulas and "
        "measurements of `target`; `roofline`, bytes and flops at its rates; `profile`; `table`; "
        "null: what the file given is for, else where a target is given sol, roofline where it has "
        "no figures for that, else fixed, in abstract cycles",
    )
    target: str | None = option(
        None,
        "hardware of the models sol and roofline, and of what a table or profile does not name; "
        "`hloopt targets` lists it",
    )
    profile: str | None = option(
        None, "a profile of XLA (PGLE), text proto or JSON: costs and latencies in microseconds"
    )
    cost_table: str | None = option(
        None,
        'a JSON file {"node": {NAME: TIME}, "latency": {START: TIME}}, in us; may be packed',
    )
    collective_perf_table: str | None = option(
        None,
        "a file of measured collectives for the model sol in place of XLA's: "
        "DeviceHloInstructionProfiles, text proto or JSON",
    )
    matmul_perf_table: str | None = option(
        None, "a file of measured matrix products for the model sol in place of XLA's, in that form"
    )
    smooth_tables: bool = option(
        False, "make times that the model sol takes from tables of measurements monotone in size"
    )
    pgle_accuracy_checker: Literal["warn", "error"] = option(
        "warn", "whether to refuse a profile that leaves out instructions of the module"
    )
    collective_broadcast_overlap_limit: int = option(1, "collective-broadcasts in flight")
    collective_permute_overlap_limit: int = option(1, "collective-permutes in flight")
    all_to_all_overlap_limit: int = option(1, "all-to-alls in flight")
    ragged_all_to_all_overlap_limit: int = option(1, "ragged-all-to-alls in flight")
    all_gather_overlap_limit: int = option(1, "all-gathers in flight")
    all_reduce_overlap_limit: int = option(1, "all-reduces in flight")
    reduce_scatter_overlap_limit: int = option(1, "reduce-scatters in flight")
    copy_overlap_limit: int = option(1, "asynchronous copies in flight")
    send_recv_overlap_limit: int = option(1, "sends and receives between devices in flight")
    send_recv_host_overlap_limit: int = option(
        1, "sends to the host in flight, and as many receives"
    )
    parallel_collective_overlap_limit: int = option(
        1, "preset xla-gpu: collectives of any kind in flight"
    )
    parallel_async_compute_limit: int = option(
        2, "preset xla-gpu: copies and asynchronous computations in flight"
    )
    separate_memcpy_stream: bool = option(
        True,
        "preset xla-gpu: copies of slices have a stream of their own and no limit; false: as in "
        "jaxlib 0.10.2, where parallel_async_compute_limit counts those from and to the host, and "
        "copies on the device hide nothing",
    )
    collective_start_as_early_as_possible: bool = option(
        False,
        "preset xla-gpu, more than one collective in flight, aggressive policies: starts go before "
        "all compute",
    )
    enable_collective_multi_streaming: bool = option(
        False, "preset xla-gpu: collectives overlap only if no groups share several devices"
    )
    enable_pipelined_p2p: bool = option(
        False, "preset xla-gpu: receives of a pipeline go to the end of the program"
    )
    pipeline_parallelism_opt_level: Literal["disable", "enable"] = option(
        "disable", "preset xla-gpu: whether transfers of a loop begin late and end early in it"
    )
    enable_approx_costly_collectives: bool = option(
        False, "preset xla-gpu, fixed costs: all-reduces above 30 MiB take four times as long"
    )
    memory_limit: Bytes | None = option(
        None,
        "above a half of it the order minds memory, above it before all else; null: no limit",
    )
    device_memory_size: Bytes | None = option(
        None, "preset xla-gpu: what programs may use, in place of `memory_limit`"
    )
    memory_limit_slop_factor: int = option(
        95, "the limit in per cent of what arguments and results leave of `device_memory_size`"
    )
    hard_memory_limit: bool = option(
        False, "keep the peak below `memory_limit` where any order can be found, else refuse"
    )
    rerun: int = option(0, "how often to schedule again, with less memory, while above the limit")
    schedule_send_recvs: bool | None = option(
        None, "whether sends and receives are asynchronous; null: true with preset xla-gpu only"
    )
    force_send_recv_to_use_same_resource: bool = option(
        False, "let receives from the host count as sends to it"
    )
    use_real_cost_model: bool = option(False, "has no effect, as in XLA")
    aggressive_scheduling_policies: bool | None = option(
        None, "use rules that look at depth, waste and readiness; null: true with preset xla-gpu"
    )
    prioritize_async_depth_over_stall: bool = option(
        False, "put a start that nothing waits before last even if that stalls"
    )
    enable_release_start_policy: bool = option(
        False, "prefer collective-permutes whose latency is over"
    )
    resource_sharing: bool = option(
        False, "let operations that share a resource slow each other down"
    )
    resource_serializing: bool = option(False, "avoid overlap on serial resources")
    enable_selective_resources: bool = option(
        False, "keep valuable work for windows of selective resources"
    )
    max_hops_to_closest_selective_overlap: int = option(
        0, "how near a selective resource counts as about to be used"
    )
    depth_based_memory_pressure_reduction: bool = option(
        False, "above the memory limit prefer what is deepest among what frees memory"
    )
    flexible_scheduling_annotation_scheduling: bool = option(
        False, "let the last start of a group leave it"
    )
    aggressive_flexible_annotation_scheduling: bool = option(
        False, "and put that start as early in the program as possible"
    )
    deannotate_group_if_blocked: bool = option(
        False, "dissolve the smallest group where nothing else can be scheduled"
    )
    force_delay_over_memory_pressure: bool = option(
        False, "what the target delays goes before the memory limit"
    )
    enable_schedule_by_structure: bool = option(
        False, "among equal preferences schedule starts last"
    )
    estimate_fragmentation_size: bool = option(
        False, "add fragmentation to the peak that decides about reruns"
    )
    track_sync_op_resource_usage: bool = option(
        False, "synchronous collectives need their resource, too"
    )
    search: SearchOptions | None = option(
        None, "look for a better schedule, for a time; null: take that of the rules"
    )
    top_down_scheduling: bool = option(
        False,
        "schedule from the beginning of the program; as in XLA, all-reduces then overlap without "
        "limit, as their starts call a computation",
    )
    explain: tuple[str, ...] = option(
        (), "names of instructions: analysis remarks say why the rules put them where they do"
    )
    log_computation_re: str = option("", "has no effect: a filter for logs of XLA")

    def __post_init__(self) -> None:
        """Raise PipelineError for a model without its file, and limits that make no sense."""
        try:
            self.model_choice.check()
        except HloError as error:
            raise PipelineError(error.message, help=error.help, code=error.code) from None
        if self.preset == "xla-gpu":
            self._check_parallel_limit()
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 0:
                raise PipelineError(f"{field.name} is {value}: it takes 0 or more")
        if self.minds_memory and self.device_memory_size is not None:
            raise PipelineError("memory_limit and device_memory_size cannot both be given")
        if self.hard_memory_limit and not self.minds_memory and self.device_memory_size is None:
            raise PipelineError(
                "hard_memory_limit needs a memory_limit", help="for example memory_limit=60GiB"
            )

    @property
    def minds_memory(self) -> bool:
        return self.memory_limit is not None

    @property
    def limit(self) -> int:
        """`memory_limit`, or more than there is anywhere."""
        return _UNLIMITED if self.memory_limit is None else self.memory_limit

    @property
    def model_choice(self) -> CostModelChoice:
        """The model of time that is meant."""
        return CostModelChoice(
            name=self.cost_model,
            target=self.target,
            cost_table=self.cost_table,
            profile=self.profile,
            collective_perf_table=self.collective_perf_table,
            matmul_perf_table=self.matmul_perf_table,
            smooth_tables=self.smooth_tables,
        )

    def resolved(self, module: Module | None = None) -> SchedulerConfig:
        """The configuration with the defaults of its preset, and the limit for a module, filled in.

        The size of the device's memory counts with a module only.
        """
        is_gpu = self.preset == "xla-gpu"
        limit, size = self.memory_limit, self.device_memory_size
        if size is not None and module is not None:
            limit = scheduling_limit(module, size, self.memory_limit_slop_factor)
            size = None
        return replace(
            self,
            memory_limit=limit,
            device_memory_size=size,
            schedule_send_recvs=_given(self.schedule_send_recvs, default=is_gpu),
            aggressive_scheduling_policies=_given(
                self.aggressive_scheduling_policies, default=is_gpu
            ),
        )

    def _check_parallel_limit(self) -> None:
        parallel = self.parallel_collective_overlap_limit
        for kind in _CHECKED:
            limit = getattr(self, f"{kind}_overlap_limit")
            if limit > parallel:
                raise PipelineError(
                    f"{kind}_overlap_limit is {limit}, more than "
                    f"parallel_collective_overlap_limit, which is {parallel}",
                    help="on a GPU all collectives share the second limit: raise it, or lower "
                    "the first",
                )


def _given(value: bool | None, *, default: bool) -> bool:
    return default if value is None else value
