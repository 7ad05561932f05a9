"""The scheduler makes the choices of a slow one that is written straight from XLA's description:
resources with hazards."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduling.mixed_programs import mixed_program
from tests.scheduling.rules.plain_comparison import Hazards, assert_as_plain

from hloopt.scheduling.resources.resource import Hazard

_TWO = {"collective_permute_overlap_limit": 2, "all_gather_overlap_limit": 2}
CONFIGS: tuple[tuple[dict[str, Any], Hazards], ...] = (
    (
        {"resource_serializing": True, **_TWO},
        {"collective-permute": Hazard.SERIAL, "all-gather": Hazard.SERIAL},
    ),
    (_TWO, {"collective-permute": Hazard.NONEXTENDABLE, "all-gather": Hazard.NONEXTENDABLE}),
    (
        {"resource_sharing": True, **_TWO},
        {"collective-permute": Hazard.SHAREABLE, "all-gather": Hazard.SHAREABLE},
    ),
    ({"enable_selective_resources": True}, {"collective-permute": Hazard.SELECTIVE}),
    (
        {"enable_selective_resources": True, "max_hops_to_closest_selective_overlap": 2, **_TWO},
        {"collective-permute": Hazard.SELECTIVE, "copy": Hazard.SELECTIVE},
    ),
)


@pytest.mark.parametrize(("options", "hazards"), CONFIGS, ids=str)
@pytest.mark.parametrize("top_down", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_hazards_of_resources_count(
    seed: int, *, top_down: bool, options: dict[str, Any], hazards: Hazards
) -> None:
    options = {
        **options,
        "top_down_scheduling": top_down,
        "aggressive_scheduling_policies": seed % 2 == 0,
    }
    assert_as_plain(mixed_program(seed, 20), options, times=seed, hazards=hazards)
