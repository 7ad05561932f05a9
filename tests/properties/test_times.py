"""`cost --latency` and `schedule` give the same times of the same module on the same target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from tests.properties.strategies.async_modules import async_modules
from tests.properties.strategies.every_opcode import modules_of_all_opcodes

from hloopt.analysis.latency import Time
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import HloError
from hloopt.files import read_module
from hloopt.ir import Instruction, Module
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.latency import analyze_latency
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.text import parse_module
from hloopt.verifier import verify_module

if TYPE_CHECKING:
    from corpus import CorpusEntry

SETTINGS = [
    ScheduleSettings(cost_model=CostModelChoice(target=target), preset=preset)
    for target in ("h100_sxm", None)
    for preset in ("xla-gpu", "xla-generic")
]
_LARGEST = 100_000  # characters of a module of the corpus


def key(instruction: Instruction) -> tuple[str, str]:
    return instruction.parent.name, instruction.name


def assert_same_times(module: Module, again: Module, how: ScheduleSettings) -> int:
    """`again` is the same module: both reports may change it. How many times were compared."""
    schedule = ScheduleFindings.of(module, how).simulation
    cost = analyze_latency(again, how)
    instructions = {key(row.instruction): (row.time, row.runs.times) for row in cost.instructions}
    operations = {key(row.instruction): (row.time, row.runs.times) for row in cost.operations}
    for run in schedule.runs.values():
        if not run.runs:
            continue
        for instruction, work, origin in zip(run.order, run.work, run.origins, strict=True):
            if origin is not None:
                found = instructions.pop(key(instruction))
                assert found == (Time(work, origin), run.runs), instruction.name
        for operation in run.operations:
            rows = instructions if operation.is_synchronous else operations
            found = rows.pop(key(operation.start))
            assert found == (Time(operation.latency, operation.origin), run.runs)
    assert not instructions
    assert not operations
    return len(cost.instructions) + len(cost.operations)


@pytest.mark.parametrize("how", SETTINGS, ids=lambda how: f"{how.cost_model.target} {how.preset}")
@given(text=async_modules())
@settings(max_examples=30)
def test_times_of_asynchronous_modules(how: ScheduleSettings, text: str) -> None:
    assert assert_same_times(parse_module(text), parse_module(text), how)


@pytest.mark.parametrize("how", SETTINGS[:2], ids=lambda how: str(how.preset))
@given(text=modules_of_all_opcodes())
@settings(max_examples=20)
def test_times_of_all_opcodes(how: ScheduleSettings, text: str) -> None:
    try:
        assert assert_same_times(parse_module(text), parse_module(text), how)
    except HloError:  # nothing that can be scheduled: no report has times
        with pytest.raises(HloError):
            analyze_latency(parse_module(text), how)


@pytest.mark.parametrize("how", SETTINGS, ids=lambda how: f"{how.cost_model.target} {how.preset}")
def test_times_of_testdata(how: ScheduleSettings, root: Path) -> None:
    for path in sorted((root / "testdata").glob("*.hlo*")):
        if "unrolled" not in path.name:
            assert assert_same_times(read_module(str(path)), read_module(str(path)), how)


@pytest.mark.slow
def test_times_of_the_corpus(corpus_entries: list[CorpusEntry]) -> None:
    compared = 0
    for number, entry in enumerate(corpus_entries[::40]):
        try:
            text = entry.text()
            if len(text) > _LARGEST or verify_module(parse_module(text)):
                continue
            how = SETTINGS[number % len(SETTINGS)]
            compared += assert_same_times(parse_module(text), parse_module(text), how)
        except HloError:
            continue
    assert compared > 1000
