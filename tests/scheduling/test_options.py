"""The options of the latency-hiding scheduler: XLA's defaults, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.scheduling.programs import GATHER, scheduled

from hloopt.analysis.latency import FixedModel
from hloopt.diagnostics import PassRefused, PipelineError
from hloopt.options import Bytes, Seconds
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.search_options import SearchOptions
from hloopt.scheduling.times import model_of
from hloopt.text import parse_module

OFF = (
    *("collective_start_as_early_as_possible", "enable_collective_multi_streaming"),
    *("enable_pipelined_p2p", "enable_approx_costly_collectives", "hard_memory_limit"),
    *("force_send_recv_to_use_same_resource", "use_real_cost_model"),
    *("prioritize_async_depth_over_stall", "enable_release_start_policy", "resource_sharing"),
    *("resource_serializing", "enable_selective_resources"),
    *("depth_based_memory_pressure_reduction", "flexible_scheduling_annotation_scheduling"),
    *("aggressive_flexible_annotation_scheduling", "deannotate_group_if_blocked"),
    *("force_delay_over_memory_pressure", "enable_schedule_by_structure"),
    "smooth_tables",
    *("estimate_fragmentation_size", "track_sync_op_resource_usage", "top_down_scheduling"),
)
ONE = (
    *("collective_broadcast", "collective_permute", "all_to_all", "ragged_all_to_all"),
    *("all_gather", "all_reduce", "reduce_scatter", "copy", "send_recv", "send_recv_host"),
    "parallel_collective",
)
NOT_GIVEN = (
    *("cost_model", "target", "profile", "cost_table", "memory_limit", "device_memory_size"),
    *("schedule_send_recvs", "aggressive_scheduling_policies", "search"),
    *("collective_perf_table", "matmul_perf_table"),
)
OTHERS = {
    "preset": "xla-generic",
    "pgle_accuracy_checker": "warn",
    "parallel_async_compute_limit": 2,
    "separate_memcpy_stream": True,
    "pipeline_parallelism_opt_level": "disable",
    "memory_limit_slop_factor": 95,
    "rerun": 0,
    "max_hops_to_closest_selective_overlap": 0,
    "explain": (),
    "log_computation_re": "",
}


def config_of(**options: Any) -> SchedulerConfig:
    return SchedulerConfig(**options)


def test_the_defaults_are_those_of_xla() -> None:
    config = SchedulerConfig()
    expected = {
        **dict.fromkeys(OFF, False),
        **{f"{kind}_overlap_limit": 1 for kind in ONE},
        **dict.fromkeys(NOT_GIVEN),
        **OTHERS,
    }
    assert {field.name: getattr(config, field.name) for field in fields(config)} == expected


def test_a_search_takes_half_a_minute_and_shortens_all_waiting() -> None:
    assert SearchOptions() == SearchOptions(
        budget=Seconds(30),
        iterations=None,
        seed=0,
        objective="makespan",
        memory_limit=None,
        solver=None,
        solver_limit=60,
        solver_time=Seconds(60),
    )


@pytest.mark.parametrize("options", [{"iterations": 0}, {"budget": Seconds(0)}])
def test_a_search_may_take_no_time(options: dict[str, Any]) -> None:
    SearchOptions(**options)


def test_a_search_must_not_take_forever() -> None:
    with pytest.raises(PipelineError, match="the search's budget is infs: it has"):
        SearchOptions(budget=Seconds(float("inf")))


@pytest.mark.parametrize(
    "kind",
    ["collective_broadcast", "all_to_all", "all_gather", "all_reduce", "reduce_scatter"],
)
def test_on_a_gpu_no_kind_has_more_in_flight_than_all_together(kind: str) -> None:
    option = f"{kind}_overlap_limit"
    for limit in (1, 2):
        config_of(preset="xla-gpu", parallel_collective_overlap_limit=2, **{option: limit})
    with pytest.raises(PipelineError) as caught:
        config_of(preset="xla-gpu", parallel_collective_overlap_limit=2, **{option: 3})
    assert caught.value.message == (
        f"{option} is 3, more than parallel_collective_overlap_limit, which is 2"
    )
    assert config_of(**{option: 3}).parallel_collective_overlap_limit == 1


@pytest.mark.parametrize("kind", ["collective_permute", "ragged_all_to_all", "copy"])
def test_some_kinds_are_not_counted_with_all_together(kind: str) -> None:
    config_of(preset="xla-gpu", **{f"{kind}_overlap_limit": 3})


@pytest.mark.parametrize(
    "name", ["rerun", "memory_limit", "device_memory_size", "memory_limit_slop_factor"]
)
def test_no_number_is_negative(name: str) -> None:
    config_of(**{name: 0})
    with pytest.raises(PipelineError) as caught:
        config_of(**{name: -1})
    assert caught.value.message == f"{name} is -1: it takes 0 or more"


def test_a_hard_memory_limit_needs_one_of_the_two_limits() -> None:
    for name in ("memory_limit", "device_memory_size"):
        config_of(hard_memory_limit=True, **{name: Bytes(8)})
    with pytest.raises(PipelineError, match="hard_memory_limit needs a memory_limit"):
        config_of(hard_memory_limit=True)


@pytest.mark.parametrize("preset", ["xla-generic", "xla-gpu"])
@pytest.mark.parametrize("name", ["schedule_send_recvs", "aggressive_scheduling_policies"])
def test_the_preset_decides_only_about_what_is_not_given(name: str, preset: Any) -> None:
    assert getattr(config_of(preset=preset).resolved(), name) == (preset == "xla-gpu")
    for value in (False, True):
        given = config_of(preset=preset, **{name: value}).resolved()
        assert getattr(given, name) is value


def test_without_a_module_the_size_of_the_memory_says_nothing_yet() -> None:
    config = config_of(preset="xla-gpu", device_memory_size=Bytes(64)).resolved()
    assert (config.memory_limit, config.device_memory_size) == (None, 64)
    assert not config.minds_memory
    assert config.limit == (1 << 64) - 1
    assert config_of(memory_limit=Bytes(0)).minds_memory
    assert config_of(memory_limit=Bytes(7)).limit == 7


def test_a_file_that_its_model_does_not_read_is_refused_with_the_options() -> None:
    with pytest.raises(PipelineError) as caught:
        config_of(cost_model="profile")
    assert caught.value.help


def test_the_accuracy_of_a_profile_is_checked_where_there_is_one(tmp_path: Path) -> None:
    module = parse_module(scheduled(GATHER))
    without = config_of(pgle_accuracy_checker="error").resolved()
    assert isinstance(model_of(without, module), FixedModel)
    profile = tmp_path / "profile.pbtxt"
    profile.write_text('costs { name: "a" cost_us: 1 }')
    lax = config_of(preset="xla-gpu", profile=str(profile)).resolved()
    model_of(lax, module)
    strict = config_of(
        preset="xla-gpu", profile=str(profile), pgle_accuracy_checker="error"
    ).resolved()
    for known, missing in (("a", "%b, %r, %s"), ("abrsd", "")):
        profile.write_text("".join(f'costs {{ name: "{name}" cost_us: 1 }}' for name in known))
        if not missing:
            model_of(strict, module)
            continue
        with pytest.raises(PassRefused) as caught:
            model_of(strict, module)
        assert caught.value.message == "Found 3 missing instructions. Discarding the profile."
        assert caught.value.help == f"the profile does not name {missing}"


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " …")])
def test_of_many_missing_instructions_five_are_named(count: int, more: str, tmp_path: Path) -> None:
    names = [f"n{n}" for n in range(count)]
    work = "\n".join(f"{name} = f32[16] negate(q)" for name in names)
    text = scheduled(f"{GATHER}\n{work}").replace("ROOT r", "x")
    text = text.replace("n0 =", "ROOT n0 =")
    profile = tmp_path / "profile.pbtxt"
    profile.write_text("".join(f'costs {{ name: "{name}" cost_us: 1 }}' for name in "absdx"))
    config = config_of(
        preset="xla-gpu", profile=str(profile), pgle_accuracy_checker="error"
    ).resolved()
    with pytest.raises(PassRefused) as caught:
        model_of(config, parse_module(text))
    assert caught.value.help == f"the profile does not name %n0, %n1, %n2, %n3, %n4{more}"
