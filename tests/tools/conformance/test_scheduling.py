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


def outcome_of(text: str = TEXT, **fields: Any) -> Outcome:
    return run(**{"hlo": text, "expect": [{"ok": True}], **fields})


def test_an_input_that_is_not_valid_has_to_say_so() -> None:
    text = TEXT.replace("ROOT r = f32[16]", "ROOT r = f32[17]")
    (failure,) = outcome_of(text).failures
    assert "the text is not valid, and verify_input is not false" in failure
    assert outcome_of(text, verify_input=False).failures == []


def test_a_computation_without_schedule_gets_none_from_the_scheduler() -> None:
    text = TEXT.replace(
        "ENTRY e", "h { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }\nENTRY e"
    )
    with_schedule = {"expect": [{"has_schedule": "h"}, {"has_schedule": "e"}]}
    assert outcome_of(text, **with_schedule).failures == []
    (failure,) = outcome_of(text, unschedule=["h"], **with_schedule).failures
    assert failure == "has_schedule h: %h has no schedule"
    (failure,) = outcome_of(text, unschedule=["nobody"]).failures
    assert "computation %nobody is not in the module" in failure


PERMUTE = """
HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  cp = f32[8] collective-permute(p), source_target_pairs={{0,1}}
  ROOT n = f32[8] negate(cp)
}
"""
PASSES = ["async-collective-creator", "latency-hiding-scheduler"]
CREATE = {"async-collective-creator": {"convert_collective_permute": True}}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"cp": ["collective-permute-start", "collective-permute-done"]}, None),
        ({"cp": ["other-start", "collective-permute-done"]}, "there is no %other-start for %cp"),
        ({"cp": ["collective-permute-done", "collective-permute-start"]}, "are no pair"),
        ({"n": ["collective-permute-start", "collective-permute-done"]}, "%n was not made"),
    ],
)
def test_asynchronous_pairs_have_the_names_of_the_record(
    names: dict[str, Any], message: str | None
) -> None:
    outcome = outcome_of(PERMUTE, passes=PASSES, pass_options=CREATE, async_names=names)
    assert [message is not None and message in one for one in outcome.failures] == (
        [True] if message else []
    )


def test_the_kind_of_an_error_is_compared() -> None:
    config = {"latency_estimator": "approximate", "memory_limit": -1}
    for kind, is_right in (("invalid_argument", True), ("internal", False)):
        expected = [{"error": "", "error_kind": kind}]
        assert (outcome_of(config=config, expect=expected).failures == []) is is_right
    (failure,) = outcome_of(expect=[{"ok": True, "error_kind": "internal"}]).failures
    assert "error_kind without error" in failure


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expect": []}, "the list is empty"),
        ({"expect": None}, "the record expects nothing"),
        ({"passes": ["latency-hiding-schedule"]}, "is not one of"),
        ({"config": {"latency_estimators": "gpu"}}, "did you mean 'latency_estimator'?"),
        ({"expect": [{"max_in_flight": {"start": "add", "done": "add", "most": 1}}]}, "most"),
        ({"expect": [{"position_diff": {"from": "s", "to": "a"}}]}, "no bound"),
        ({"expect": [{"before": ["s", {"oprand": ["a", 0]}]}]}, "did you mean 'operand'?"),
        ({"variants": [{"name": "v", "configs": {}}]}, "did you mean 'config'?"),
        ({"then": [{"passes": ["hlo-descheduler"], "expects": []}]}, "did you mean 'expect'?"),
        ({"pass_options": {"hlo-descheduler": {}}}, "unknown pass with options"),
        ({"async_names": {"p": ["a", "b"]}}, "without async-collective-creator"),
        ({"expect": [{"max_in_flight": {"start": "send", "done": "recv", "at_most": 1}}]}, "send"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value),
)
def test_words_of_scheduling_records_are_checked(fields: dict[str, Any], message: str) -> None:
    record = {"hlo": TEXT, "expect": [{"ok": True}], **fields}
    failures = run(**{name: value for name, value in record.items() if value is not None}).failures
    assert len(failures) == 1
    assert message in failures[0]


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ({"name_at": [0, "p"]}, {"name_at": [-1, "p"]}),
        ({"peak_memory_at_least": 1}, {"peak_memory_at_least": 1 << 40}),
        ({"control_successors": ["p", []]}, {"control_successors": ["p", ["s"]]}),
        (
            {"max_in_flight": {"start": ["all-gather-start"], "done": ["add"], "at_most": 1}},
            {"max_in_flight": {"start": ["all-gather-start"], "done": ["add"], "equals": 2}},
        ),
        (
            {
                "ops_between_pairs": {
                    **{"start": "all-gather-start", "done": "all-gather-done"},
                    "count": "negate",
                    "counts": [1],
                    "non_overlapping": True,
                }
            },
            {
                "ops_between_pairs": {
                    **{"start": "all-gather-start", "done": "all-gather-done"},
                    "count": "negate",
                    "pairs": 2,
                }
            },
        ),
    ],
)
def test_further_expectations_about_schedules(true: dict[str, Any], false: dict[str, Any]) -> None:
    assert outcome_of(expect=[true]).failures == []
    assert len(outcome_of(expect=[false]).failures) == 1
    unscheduled = outcome_of(
        then=[{"passes": ["hlo-descheduler"], "expect": [{"no_schedule": True}]}]
    )
    assert unscheduled.failures == []
    assert len(outcome_of(expect=[{"no_schedule": True}]).failures) == 1
