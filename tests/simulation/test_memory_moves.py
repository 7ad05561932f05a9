"""Copies and asynchronous slices between memory spaces run beside the main stream, on their own."""

from __future__ import annotations

import pytest
from tests.memory.spaces.spaced_modules import MODULES

from hloopt.cost_models import CostModelChoice
from hloopt.ir import Opcode
from hloopt.reports.schedule.notes import notes_on
from hloopt.reports.schedule.run import ScheduleSettings, run_module
from hloopt.simulation import Simulation
from hloopt.simulation.bandwidth import Bandwidth
from hloopt.targets import load_target
from hloopt.text import parse_module

TEXT = MODULES["sliced_prefetch"]
SIZE = 64 * 256 * 4


def run(text: str, target: str | None = "tpu_v5e") -> Simulation:
    module = parse_module(text)
    settings = ScheduleSettings(cost_model=CostModelChoice(target=target))
    return run_module(module, settings, settings.config_for(module))


def test_a_slice_is_hidden_by_what_runs_until_it_is_done() -> None:
    simulation = run(TEXT)
    (operation,) = simulation.entry.operations
    assert operation.stream.name == "HBM to VMEM"
    assert operation.kind is Opcode.SLICE
    assert operation.size == SIZE  # of an operand twice as large
    assert operation.latency == pytest.approx(SIZE / 819e9 * 1e6)  # VMEM has no rate
    assert operation.exposed == 0
    assert operation.hidden == operation.latency
    assert not simulation.guessed


def test_a_slice_that_is_done_at_once_is_exposed() -> None:
    done = next(line for line in TEXT.splitlines() if "slice-done" in line)
    start = next(line for line in TEXT.splitlines() if "slice-start" in line)
    text = TEXT.replace(done + "\n", "").replace(start, start + "\n" + done)
    (operation,) = run(text).entry.operations
    assert operation.exposed == pytest.approx(operation.latency)


def test_dynamic_slices_move_too() -> None:
    text = TEXT.replace(
        "(p), slice={[0:64], [0:256]}\n  x =", "(p, z, z), dynamic_slice_sizes={64,256}\n  x ="
    )
    text = text.replace("slice-start", "dynamic-slice-start").replace(
        "slice-done", "dynamic-slice-done"
    )
    text = text.replace("ENTRY main {\n", "ENTRY main {\n  z = s32[] constant(0)\n")
    text = text.replace(
        "((f32[128,256]{1,0:T(8,128)}),", "((f32[128,256]{1,0:T(8,128)}, s32[], s32[]),"
    )
    (operation,) = run(text).entry.operations
    assert operation.stream.name == "HBM to VMEM"
    assert operation.kind is Opcode.DYNAMIC_SLICE


def test_a_slice_within_one_memory_is_what_its_scheduler_says() -> None:
    text = TEXT.replace("T(8,128)S(1)", "T(8,128)")
    assert not run(text).entry.operations


def test_without_a_target_a_slice_takes_the_constant_of_an_asynchronous_operation() -> None:
    (operation,) = run(TEXT, target=None).entry.operations
    assert operation.latency == 5000


def test_a_memory_without_a_rate_is_named() -> None:
    settings = ScheduleSettings(cost_model=CostModelChoice(target="tpu_v5e"))
    notes = notes_on(run(TEXT), settings)
    assert sum(note.startswith("the target has no rate of VMEM:") for note in notes) == 1
    elsewhere = TEXT.replace("S(1)", "")
    assert not any("rate of VMEM" in note for note in notes_on(run(elsewhere), settings))


def test_a_move_wants_the_bandwidth_of_main_memory_for_its_one_end_there() -> None:
    simulation = run(TEXT)
    bandwidth = Bandwidth(simulation.module, load_target("tpu_v5e"), 1.0)
    (operation,) = simulation.entry.operations
    assert bandwidth.of_operation(operation) == pytest.approx(1)
    reader = next(i for i in simulation.entry.order if i.name == "r")
    assert bandwidth.of_work(reader) == pytest.approx(1)  # it writes to main memory


def test_moves_in_one_direction_follow_each_other() -> None:
    simulation = run(MODULES["prefetch_3"])
    operations = simulation.entry.operations
    assert {operation.stream.name for operation in operations} == {"HBM to VMEM"}
    assert [operation.begin for operation in operations] == [
        0.0,
        *(operation.finish for operation in operations[:-1]),
    ]
    size = 128 * 256 * 4
    assert operations[0].latency == pytest.approx(size / 819e9 * 1e6)


def test_each_direction_has_a_stream() -> None:
    operations = run(MODULES["eviction_and_prefetch"]).entry.operations
    assert [operation.stream.spaces for operation in operations] == [
        ("VMEM", "HBM"),
        ("HBM", "VMEM"),
    ]


def test_a_copy_within_a_memory_is_on_the_stream_of_copies() -> None:
    operations = run(MODULES["prefetch_2"].replace("S(1)", "")).entry.operations
    assert {operation.stream.name for operation in operations} == {"copy"}


def test_the_preset_of_gpus_has_its_own_streams() -> None:
    module = parse_module(MODULES["prefetch_2"])
    settings = ScheduleSettings(preset="xla-gpu")
    simulation = run_module(module, settings, settings.config_for(module))
    assert all(operation.stream.spaces is None for operation in simulation.entry.operations)
