"""The difference that smoothing makes to the times of a run."""

from __future__ import annotations

import pytest

from hloopt.cost_models import CostModelChoice
from hloopt.reports.schedule.comparison_record import totals_to_json
from hloopt.reports.schedule.notes import notes_on
from hloopt.reports.schedule.run import ScheduleSettings, run_module
from hloopt.simulation import Simulation
from hloopt.simulation.table_times import TableTimes
from hloopt.text import parse_module

TEXT = """
HloModule m, is_scheduled=true, num_partitions=2
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}
ENTRY e {{
  p = f32[{size}] parameter(0)
  s = f32[{size}] all-reduce-start(p), replica_groups=[1,2]<=[2], to_apply=add
  ROOT d = f32[{size}] all-reduce-done(s)
}}
"""


def settings(*, smooth: bool, target: str = "h100_sxm") -> ScheduleSettings:
    choice = CostModelChoice(target=target, smooth_tables=smooth)
    return ScheduleSettings(cost_model=choice)


def simulated(size: int, chosen: ScheduleSettings) -> Simulation:
    module = parse_module(TEXT.format(size=size))
    return run_module(module, chosen, chosen.config_for(module))


@pytest.mark.parametrize("smooth", [False, True])
def test_a_time_out_of_order_is_named_with_both(smooth: bool) -> None:
    chosen = settings(smooth=smooth)
    simulation = simulated(256, chosen)
    times = TableTimes.of(simulation)
    assert times is not None
    assert times.count == times.differing == 1
    assert times.largest is not None
    assert times.times is not None
    assert times.largest.name == "s"
    assert times.times.measured == pytest.approx(122.7, abs=0.1)
    assert times.times.smoothed < 45  # no more than 4 MiB take
    (note,) = [note for note in notes_on(simulation, chosen) if "tables of measurements" in note]
    assert note.startswith("1 time is from tables of measurements")
    assert "most %s, 122.7 us raw" in note
    assert ("would differ with --smooth-tables" in note) is not smooth
    assert ("made monotone in size; 1 of them differ from the raw ones" in note) is smooth
    largest = totals_to_json(simulation)["table_times"]["largest"]
    assert largest["instruction"] == "s"
    taken = times.times.smoothed if smooth else times.times.measured
    assert simulation.makespan == pytest.approx(taken, abs=3)


@pytest.mark.parametrize(("smooth", "other"), [(False, "smoothed"), (True, "raw")])
def test_a_time_in_order_stays(smooth: bool, other: str) -> None:
    chosen = settings(smooth=smooth)
    simulation = simulated(1 << 28, chosen)
    times = TableTimes.of(simulation)
    assert times is not None
    assert (times.count, times.differing, times.largest) == (1, 0, None)
    assert any(f"{other} ones would be the same" in note for note in notes_on(simulation, chosen))
    assert times.to_json() == {"times": 1, "differing": 0, "largest": None}


def test_no_tables_no_word() -> None:
    chosen = settings(smooth=False, target="tpu_v5p")
    simulation = simulated(256, chosen)
    assert TableTimes.of(simulation) is None
    assert totals_to_json(simulation)["table_times"] is None
