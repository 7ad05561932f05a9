"""What the main stream waits for at once, and what it does itself, by the tracker of a preset."""

from __future__ import annotations

import pytest
from tests.analysis.latency.test_run_times import COLLECTIVES, SYNC, TRANSFER, WORK, calling, forms

from hloopt.analysis.latency import Origin
from hloopt.cost_models import CostModelChoice
from hloopt.reports.schedule.run import Preset, ScheduleSettings, run_module
from hloopt.simulation import Simulation
from hloopt.simulation.collectives import collective_runs
from hloopt.text import parse_module

PRESETS: tuple[Preset, ...] = ("xla-gpu", "xla-generic")


def run(entry: str, callees: str, preset: Preset, target: str | None = "h100_sxm") -> Simulation:
    module = parse_module(
        f"""HloModule m, is_scheduled=true, num_partitions=8
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}
{callees}
ENTRY e {{ {entry} }}
"""
    )
    settings = ScheduleSettings(cost_model=CostModelChoice(target=target), preset=preset)
    return run_module(module, settings, settings.config_for(module))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", COLLECTIVES)
def test_a_run_takes_about_the_same_however_its_collective_is_written(
    kind: str, preset: Preset
) -> None:
    makespans = []
    for entry, callees in forms(kind):
        simulation = run(entry, callees, preset)
        (operation,) = simulation.entry.operations
        makespans.append(simulation.makespan)
        assert operation.exposed >= operation.latency - 1
        assert [found.moving for found in collective_runs(simulation)] == [(operation,)]
    assert max(makespans) - min(makespans) <= 2  # a start and a done take 1 us each


@pytest.mark.parametrize("preset", PRESETS)
def test_without_a_target_it_takes_the_same_number_of_cycles(preset: Preset) -> None:
    makespans = [run(*form, preset, None).makespan for form in forms("all-gather")]
    assert set(makespans) <= {5000, 5001, 5002}


def test_what_waits_is_what_is_marked() -> None:
    waits = [run(*form, "xla-gpu").entry.operations[0] for form in forms("all-gather")]
    expected = [True, False, True, True, True, True, True, False, True]
    # A collective in a tuple or a call is none that XLA:GPU's scheduler would split.
    assert [operation.is_synchronous for operation in waits] == expected


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("is_host", [False, True])
def test_transfers_that_are_not_asynchronous_are_waited_for(preset: Preset, is_host: bool) -> None:
    host = ", is_host_transfer=true" if is_host else ""
    both = TRANSFER.replace("%", host)
    for text in (both.replace("#", host), both.replace("#", f"{host}, {SYNC}")):
        simulation = run(text, "", preset)
        send, recv = simulation.entry.operations
        assert (send.start.name, recv.start.name) == ("s", "r")
        assert send.latency == recv.latency > 0.5
        is_waited_for = preset == "xla-generic" or SYNC in text
        assert send.is_synchronous is recv.is_synchronous is is_waited_for
        assert send.done.name == "d"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_call_on_the_same_thread_is_work_of_the_main_stream(preset: Preset) -> None:
    simulation = run(calling("called"), WORK, preset)
    assert simulation.entry.operations == []
    position = simulation.entry.positions
    start = next(i for i in simulation.entry.order if i.name == "s")
    work = simulation.entry.work[position[start]]
    assert work > 5
    assert simulation.exposed == 0
    assert simulation.makespan == pytest.approx(work, abs=0.1)


def test_guesses_are_counted_and_so_is_what_is_unknown() -> None:
    guessed = run("p = f32[1048576] parameter(0) c = f32[1048576] copy(p)", "", "xla-gpu")
    assert [i.name for i in guessed.guessed] == ["c"]
    assert guessed.guessed_share == 1
    known = run(*forms("all-gather")[0], "xla-gpu")
    assert known.guessed_share == 0
    assert known.entry.operations[0].origin is Origin.COLLECTIVE_TABLE
