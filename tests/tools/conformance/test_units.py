"""Records that ask one question of the scheduler's parts; devices; steps."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_lib.errors import RecordError
from conformance_lib.records import Record
from conformance_lib.runner import Outcome, run_record
from conformance_lib.scheduling.devices import find_target, gpu_of
from hloopt.pass_framework.registry import create_pass

TEXT = """
HloModule m
f { x = f32[8] parameter(0)
  s = (f32[8], f32[8]) collective-permute-start(x), source_target_pairs={{0,1}}
  ROOT d = f32[8] collective-permute-done(s) }
ENTRY e { p = f32[8] parameter(0)  ROOT c = f32[8] call(p), to_apply=f }
"""


def ask(**fields: Any) -> Outcome:
    return run_record(Record("t", {"id": "t", "platform": "gpu", **fields}), create_pass)


def resources(counts: object) -> list[str]:
    cases = [{"instr": "c", "resource_counts": counts}]
    return ask(unit="gpu_resources", hlo=TEXT, cases=cases).failures


def test_resources_are_counted_with_what_an_instruction_calls() -> None:
    (failure,) = resources({"kNone": 7})
    assert "expected {'kNone': 7}, found {'kGpuAsyncStream" in failure
    found = failure.partition("found ")[2]
    assert resources({found.split("'")[1]: 1}) == []
    assert resources(0) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": "gpu_resources", "cases": [{"inst": "c"}]}, "did you mean 'instr'?"),
        ({"unit": "gpu_resources", "case": []}, "did you mean 'cases'?"),
        ({"unit": "gpu_resources"}, "the record expects nothing"),
        ({"unit": "gpu_resource"}, "did you mean 'gpu_resources'?"),
        ({"unit": "sol_cost_model", "cases": [{"formula": "rings"}]}, "is not one of 'ring'"),
        (
            {
                "unit": "sol_cost_model",
                "cases": [{"formula": "config_for_device", "device_name": "NVIDIA X1"}],
            },
            "unknown device x1",
        ),
    ],
    ids=str,
)
def test_words_of_questions_are_checked(fields: dict[str, Any], message: str) -> None:
    (failure,) = ask(hlo=TEXT, **fields).failures
    assert message in failure


def test_devices_have_the_figures_of_the_document() -> None:
    a6000 = find_target({"name": "rtx_a6000", "compute_capability": "9.0"})
    assert (gpu_of(a6000).cores, gpu_of(a6000).network.lanes) == (84, 0)
    assert find_target("any") == find_target(None)
    with pytest.raises(RecordError, match="unknown device tpu"):
        find_target("tpu")
    case = {"formula": "config_for_device", "device_name": "NVIDIA B200"}
    for tolerance, is_right in ((0.01, True), (0, False)):
        figures = {**case, "chunk_prep_time_us": 2.0, "tolerance_us": tolerance}
        assert (ask(unit="sol_cost_model", cases=[figures]).failures == []) is is_right


def test_an_error_belongs_to_its_step() -> None:
    text = TEXT.replace("HloModule m", "HloModule m, is_scheduled=true")
    good = {"latency_estimator": "approximate"}
    steps = [
        {"config": {**good, "memory_limit": -1}, "expect": [{"error": ""}]},
        {"config": good, "expect": [{"ok": True}]},
    ]
    passes = ["latency-hiding-scheduler"]
    assert ask(hlo=text, passes=passes, steps=steps).failures == []
    assert ask(hlo=text, passes=passes, steps=steps[:1] * 2).failures == []
