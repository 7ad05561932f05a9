"""Models of time answer for every instruction and every edge, whatever its opcode."""

from __future__ import annotations

from math import isfinite

import pytest
from hypothesis import given, settings
from tests.properties.strategies.every_opcode import modules_of_all_opcodes

from hloopt.analysis.latency import CostTable, FixedModel, GpuFixedModel, LatencyModel, TableModel
from hloopt.analysis.latency.profile import Profile, ProfileModel
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.targets import load_target
from hloopt.text import parse_module

MODELS: list[LatencyModel] = [
    FixedModel(),
    GpuFixedModel(approx_costly_collectives=True),
    TableModel(CostTable({}, {}), FixedModel()),
    ProfileModel(Profile(), SpeedOfLightModel(load_target("b200"))),
    SpeedOfLightModel(load_target("h100_sxm")),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@given(text=modules_of_all_opcodes())
@settings(max_examples=40)
def test_every_time_is_one(model: LatencyModel, text: str) -> None:
    module = parse_module(text)
    for instruction in module.instructions():
        times = [model.node_time(instruction)]
        times += [model.edge_time(instruction, user) for user in instruction.users]
        assert all(isfinite(time.cycles) and time.cycles >= 0 for time in times)
        assert model.node_cost(instruction) == times[0].cycles
