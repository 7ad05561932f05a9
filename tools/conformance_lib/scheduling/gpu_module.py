"""Runs the shipped pipeline that stands for XLA:GPU's scheduling, with the flags of a record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.scheduling.outcome import RunOutcome
from hloopt.ir import Module
from hloopt.memory.backends import GPU
from hloopt.memory.gpu.arrangement import arrange_for_gpu
from hloopt.memory.schedulers import schedule_module
from hloopt.memory.scheduling_limit import scheduling_limit
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline import PassStep, Pipeline, PipelineStep, Step
from hloopt.pass_framework.registry import create_pass
from hloopt.pass_framework.runner import PipelineRunner

_SCHEDULER = "latency-hiding-scheduler"
_PREPARATION = "latency-hiding-scheduler-preparation"
_MEMORY = "hlo-memory-scheduler"
_FENCING = "scheduler-memory-fencing"
_DEVICE_MEMORY = "device_memory_size"
_LATENCY_STEPS = ("legalize-scheduling-annotations", _FENCING, _SCHEDULER)

_EXPERIMENTAL = "xla_gpu_experimental_"
_OPTIONS = {
    f"{_EXPERIMENTAL}parallel_collective_overlap_limit": "parallel_collective_overlap_limit",
    f"{_EXPERIMENTAL}parallel_async_compute_limit": "parallel_async_compute_limit",
    f"{_EXPERIMENTAL}enable_collective_multi_streaming": "enable_collective_multi_streaming",
    f"{_EXPERIMENTAL}collective_start_as_early_as_possible": (
        "collective_start_as_early_as_possible"
    ),
    "xla_gpu_enable_pipelined_p2p": "enable_pipelined_p2p",
}
"""Flags that are options of the scheduler."""
_ENABLE = "xla_gpu_enable_latency_hiding_scheduler"
_PARALLELISM = f"{_EXPERIMENTAL}pipeline_parallelism_opt_level"
_SELECTIVE = f"{_EXPERIMENTAL}enable_selective_memcpy_overlap"
_THRESHOLD = f"{_EXPERIMENTAL}scheduler_memory_fencing_threshold_bytes"
_CHECKER = "xla_gpu_pgle_accuracy_checker"
_WITHOUT_EFFECT = (
    "xla_gpu_enable_analytical_sol_latency_estimator",  # the devices of the records have no such
    _CHECKER,  # is an option of the profile
)
_PARALLELISM_LEVEL = "PIPELINE_PARALLELISM_OPT_LEVEL_"


def gpu_schedule_module(outcome: RunOutcome, fields: Mapping[str, Any]) -> None:
    """Run the pipeline on the module of `outcome`. Raises RecordError for an unknown flag."""
    with TemporaryDirectory() as folder:
        _schedule(outcome, fields, _cost_model(fields, Path(folder)))


def _cost_model(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The options of the scheduler that say how long things take: a profile, or constants."""
    if "pgle_profile" not in fields:
        return {"cost_model": "fixed"}
    costs = fields["pgle_profile"]["costs"]
    entries = [{"name": name, "costUs": cost} for name, cost in costs.items()]
    path = folder / "profile.json"
    path.write_text(json.dumps({"costs": entries}))
    checker = fields.get("debug_options", {}).get(_CHECKER, "")
    level = "error" if checker.endswith("_ERROR") else "warn"
    return {"cost_model": "profile", "profile": str(path), "pgle_accuracy_checker": level}


def _schedule(
    outcome: RunOutcome, fields: Mapping[str, Any], cost_model: Mapping[str, Any]
) -> None:
    module = outcome.module
    (whole,) = (
        step
        for step in find_pipeline("schedule-gpu").steps
        if isinstance(step, PipelineStep) and step.pipeline.name == "gpu-schedule-module"
    )
    steps = tuple(_steps(whole.pipeline.steps, fields, cost_model))
    part = whole._replace(pipeline=whole.pipeline._replace(steps=steps))
    if not module.is_scheduled:
        outcome.peak_memory = min(schedule_module(module, backend=GPU).peaks.values())
        outcome.memory_limit = _limit(module, whole.pipeline, fields)
    result = PipelineRunner(verify=False).run(Pipeline("record", (part,)), module)
    outcome.changed = result.changed


def gpu_post_process(module: Module) -> None:
    """The passes after the memory scheduler, for the order that the module has."""
    for computation in module.computations.values():
        if not computation.is_fusion:
            computation.reorder(arrange_for_gpu(list(computation.instructions)))


def _steps(
    steps: tuple[Step, ...], fields: Mapping[str, Any], cost_model: Mapping[str, Any]
) -> Iterator[PassStep]:
    """The steps that run with the flags of a record, with the options they stand for."""
    flags = dict(fields.get("debug_options", {}))
    is_enabled = flags.pop(_ENABLE, False) or "pgle_profile" in fields
    options = {_SCHEDULER: _scheduler_options(flags)}
    options[_SCHEDULER] |= {**_device_memory(fields), **cost_model}
    if _THRESHOLD in flags:
        options[_FENCING] = {"threshold_bytes": flags.pop(_THRESHOLD)}
    for flag in _WITHOUT_EFFECT:
        flags.pop(flag, None)
    if flags:
        raise RecordError(f"unknown debug option: {', '.join(flags)}")
    for step in steps:
        assert isinstance(step, PassStep)
        name = step.made.name
        if name == _MEMORY and options[_SCHEDULER].get("enable_pipelined_p2p"):
            yield PassStep(create_pass(_PREPARATION))
        if is_enabled or name not in _LATENCY_STEPS:
            given = {**step.options, **options.get(name, {})}
            yield step._replace(made=create_pass(name, given), options=given)


def _scheduler_options(flags: dict[str, Any]) -> dict[str, Any]:
    options = {_OPTIONS[flag]: flags.pop(flag) for flag in list(flags) if flag in _OPTIONS}
    if _PARALLELISM in flags:
        level = flags.pop(_PARALLELISM).removeprefix(_PARALLELISM_LEVEL)
        options["pipeline_parallelism_opt_level"] = level.lower()
    if flags.pop(_SELECTIVE, False):
        options |= {"enable_selective_resources": True, "max_hops_to_closest_selective_overlap": 1}
    return options


def _device_memory(fields: Mapping[str, Any]) -> dict[str, int]:
    stated = fields.get("module_config", {})
    return {name: stated[name] for name in (_DEVICE_MEMORY,) if name in stated}


def _limit(module: Module, pipeline: Pipeline, fields: Mapping[str, Any]) -> int:
    (step,) = (step for step in pipeline.passes() if step.made.name == _SCHEDULER)
    options: dict[str, Any] = {**step.options, **_device_memory(fields)}
    return scheduling_limit(module, options[_DEVICE_MEMORY], options["memory_limit_slop_factor"])
