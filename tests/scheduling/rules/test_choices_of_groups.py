"""The scheduler makes the choices of a slow one that is written straight from XLA's description:
scheduling groups."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduling.mixed_programs import mixed_program
from tests.scheduling.rules.plain_comparison import assert_as_plain

CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"preset": "xla-gpu", "parallel_collective_overlap_limit": 2},
    {
        "flexible_scheduling_annotation_scheduling": True,
        "aggressive_flexible_annotation_scheduling": True,
        "schedule_send_recvs": True,
    },
    {"deannotate_group_if_blocked": True, "all_to_all_overlap_limit": 2},
    {
        "top_down_scheduling": True,
        "flexible_scheduling_annotation_scheduling": True,
        "aggressive_flexible_annotation_scheduling": True,
        "collective_permute_overlap_limit": 2,
    },
)


@pytest.mark.parametrize("options", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_groups_are_scheduled_as_described(seed: int, options: dict[str, Any]) -> None:
    text = mixed_program(seed, grouped=True, calls=seed % 2 == 0)
    assert_as_plain(text, options, times=seed if seed % 3 else None)
