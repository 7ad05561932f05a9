"""Records of the scheduler: runs, references, expectations, and that nothing is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_lib.records import Record
from conformance_lib.runner import Outcome, run_record
from hloopt.pass_framework.registry import create_pass

TEXT = """
HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  a = f32[16] negate(q)
  ROOT r = f32[16] add(d, a)
}
"""


def run(**fields: Any) -> Outcome:
    record = {
        **{"id": "t", "hlo": TEXT, "passes": ["latency-hiding-scheduler"]},
        **{"config": {"latency_estimator": "approximate"}, **fields},
    }
    return run_record(Record("t", record), create_pass)


@pytest.mark.parametrize(
    "expected",
    [
        {"before": ["s", "a"]},
        {"position_diff": {"from": "d", "to": "r", "equals": 1}},
        {"any_of": [[{"before": ["d", "s"]}], [{"opcode_at": [-1, "add"]}]]},
        {"opcode_of": [{"operand": [{"root": "e"}, 0]}, "all-gather-done"]},
        {"max_in_flight": {"start": "all-gather-start", "done": "all-gather-done", "equals": 1}},
    ],
)
def test_what_holds_passes(expected: dict[str, Any]) -> None:
    assert run(expect=[expected]).failures == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expect": [{"before": ["a", "s"]}]}, "they are at"),
        ({"expect": [{"error": "x"}]}, "the run did not fail"),
        ({"expect": [{"afterwards": 1}]}, "unknown expectation: afterwards"),
        ({"expect": [{"before": ["s", "nobody"]}]}, "nobody is not in"),
        ({"expect": [], "colour": 1}, "unknown record field: colour"),
        ({"config": {"latency_estimator": "tea"}, "expect": []}, "latency_estimator tea"),
        (
            {
                "config": {"latency_estimator": "approximate", "all_gather_overlap_limit": 0},
                "expect": [{"ok": True}],
            },
            "failed to find a node",
        ),
    ],
)
def test_what_does_not_hold_fails(fields: dict[str, Any], message: str) -> None:
    failures = run(**fields).failures
    assert len(failures) == 1
    assert message in failures[0]


def test_what_is_not_modelled_is_skipped() -> None:
    record = {"id": "t", "unit": "profile_accuracy_check", "cases": [1]}
    outcome = run_record(Record("t", record), create_pass)
    assert outcome.status == "skipped"
    assert outcome.skip == "nothing answers the question 'profile_accuracy_check'"
    outcome = run_record(Record("t", record | {"unit": "weather"}), create_pass)
    assert outcome.failures == ["unknown unit: weather"]


ENABLE = "xla_gpu_enable_latency_hiding_scheduler"


def run_gpu(text: str, flags: dict[str, Any], **fields: Any) -> Outcome:
    return run(hlo=text, passes=["gpu-schedule-module"], debug_options=flags, **fields)


def test_flags_choose_passes_and_options_of_the_shipped_pipeline() -> None:
    text = TEXT.replace(", is_scheduled=true", "")
    hidden = [{"before": ["s", "a"]}, {"before": ["a", "d"]}, {"fingerprint_before_lhs": True}]
    assert run_gpu(text, {ENABLE: True}, expect=hidden).failures == []
    only_memory = [{"has_schedule": "e"}, {"peak_memory_at_least": 1}]
    assert run_gpu(text, {}, expect=only_memory).failures == []
    (unknown,) = run_gpu(text, {"xla_gpu_nothing": True}, expect=[{"ok": True}]).failures
    assert "unknown debug option: xla_gpu_nothing" in unknown
    limit = {"xla_gpu_experimental_parallel_collective_overlap_limit": 0, ENABLE: True}
    failures = run_gpu(text, limit, expect=[{"ok": True}]).failures
    assert "more than parallel_collective_overlap_limit" in failures[0]


def test_runs_are_compared_with_each_other() -> None:
    fields: dict[str, Any] = {
        "runs": [
            {"name": "one", "hlo_subst": [["negate", "sine"]]},
            {"name": "other", "hlo_subst": [["negate", "cosine"]]},
        ],
        "expect_across_runs": [{"same_fingerprint_before_lhs": ["one", "other"]}],
    }
    text = TEXT.replace(", is_scheduled=true", "")
    (failure,) = run_gpu(text, {}, **fields).failures
    assert "fingerprints" in failure
    fields["runs"][1] = {"name": "other", "hlo_subst": [["negate", "sine"]]}
    assert run_gpu(text, {}, **fields).failures == []
