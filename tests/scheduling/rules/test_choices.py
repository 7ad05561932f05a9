"""The scheduler makes the choices of a slow one that is written straight from XLA's description."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduling.mixed_programs import mixed_program
from tests.scheduling.rules.plain_comparison import assert_as_plain

CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"schedule_send_recvs": True, "send_recv_overlap_limit": 2},
    {
        "aggressive_scheduling_policies": True,
        "schedule_send_recvs": True,
        "force_send_recv_to_use_same_resource": True,
        "collective_permute_overlap_limit": 3,
    },
    {
        "aggressive_scheduling_policies": True,
        "prioritize_async_depth_over_stall": True,
        "enable_release_start_policy": True,
        "track_sync_op_resource_usage": True,
        "collective_permute_overlap_limit": 2,
    },
    {"enable_schedule_by_structure": True, "schedule_send_recvs": True},
    {"memory_limit": 160, "depth_based_memory_pressure_reduction": True},
    {"memory_limit": 300, "aggressive_scheduling_policies": True, "all_gather_overlap_limit": 2},
    {"preset": "xla-gpu"},
    {"preset": "xla-gpu", "memory_limit": 300, "force_delay_over_memory_pressure": True},
    {
        "preset": "xla-gpu",
        "parallel_collective_overlap_limit": 3,
        "parallel_async_compute_limit": 1,
        "collective_start_as_early_as_possible": True,
    },
    {
        "preset": "xla-gpu",
        "parallel_collective_overlap_limit": 2,
        "collective_start_as_early_as_possible": True,
        "enable_schedule_by_structure": True,
    },
    {"top_down_scheduling": True, "schedule_send_recvs": True},
    {
        "top_down_scheduling": True,
        "aggressive_scheduling_policies": True,
        "enable_schedule_by_structure": True,
        "memory_limit": 200,
        "collective_permute_overlap_limit": 2,
    },
    {"top_down_scheduling": True, "preset": "xla-gpu", "parallel_collective_overlap_limit": 2},
)
OF_GPU: tuple[dict[str, Any], ...] = (
    {},
    {"enable_selective_resources": True, "max_hops_to_closest_selective_overlap": 1},
    {"separate_memcpy_stream": False, "parallel_collective_overlap_limit": 2},
    {
        "top_down_scheduling": True,
        "enable_selective_resources": True,
        "max_hops_to_closest_selective_overlap": 2,
    },
    {
        "parallel_collective_overlap_limit": 2,
        "collective_start_as_early_as_possible": True,
        "enable_schedule_by_structure": True,
        "parallel_async_compute_limit": 1,
    },
)


@pytest.mark.parametrize("options", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_every_choice_is_that_of_the_rules(seed: int, options: dict[str, Any]) -> None:
    assert_as_plain(mixed_program(seed), options, times=seed if seed else None)


@pytest.mark.parametrize("part", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_preferences_count_between_two_that_have_some(seed: int, part: float) -> None:
    options = {"preset": "xla-gpu"} if seed % 2 else {"memory_limit": 200}
    assert_as_plain(mixed_program(seed), options, times=seed, preferred=part)


@pytest.mark.parametrize("options", OF_GPU, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_streams_of_a_gpu_count(seed: int, options: dict[str, Any]) -> None:
    text = mixed_program(seed, gpu=True, calls=seed % 2 == 0)
    assert_as_plain(text, {"preset": "xla-gpu", **options}, times=seed if seed else None)
