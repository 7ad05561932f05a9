"""Records of the replication analysis: answers, annotations, and that nothing is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_lib.records import Record
from conformance_lib.runner import Outcome, run_record

TEXT = """
HloModule m
ENTRY e {
  p = (f32[8], f32[8]) parameter(0)
  table = s32[4] constant({0,0,1,1})
  id = u32[] replica-id()
  ROOT d = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
}
"""
KNOWN: list[dict[str, Any]] = [{"replicated": {"d": False}}]
OPTIONS = {"parameter_replicated_at_leaf_buffers": {"p": [True, False]}}


def run(**fields: Any) -> Outcome:
    record = {
        **{"id": "t", "pass": "replication-analysis", "hlo": TEXT, "options": OPTIONS},
        **{"config": {"replica_count": 4}, **fields},
    }

    def no_pass(*_: object) -> Any:
        raise AssertionError("no pass is made for an analysis")

    return run_record(Record("t", record), no_pass)


@pytest.mark.parametrize(
    "expected",
    [
        {"replicated": {"p{0}": True, "p{1}": False, "d": False}},
        {"replicated": {"d": False}, "groups": [[0, 1], [2, 3]]},
        {
            "replicated": {"d": True},
            "groups": [[0, 1], [2, 3]],
            "options": {"partial_replication": True},
        },
    ],
)
def test_answers_are_compared(expected: dict[str, Any]) -> None:
    assert run(expect=[expected]).failures == []
    opposite = {name: not wanted for name, wanted in expected["replicated"].items()}
    failures = run(expect=[{**expected, "replicated": opposite}]).failures
    assert len(failures) == len(opposite)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expect": [{"replicated": {"q": True}}]}, "%q is not in the module"),
        ({"expect": [{"replicated": {"p{0": True}}]}, "'p{0' is no NAME"),
        ({"expect": [{"same": {}}]}, "unknown expectation: same"),
        ({"expect": KNOWN, "options": {"x": 1}}, "unknown option of the analysis: x"),
        ({"expect": [KNOWN[0] | {"options": {"x": True}}]}, "unknown option"),
        ({"expect": KNOWN, "config": {"x": 1}}, "config x has no meaning"),
        ({"expect": KNOWN, "also_run": {"before": ["dce"]}}, "nothing can run beside"),
    ],
)
def test_what_is_not_known_fails_the_record(fields: dict[str, Any], message: str) -> None:
    failures = run(**fields).failures
    assert len(failures) == 1
    assert message in failures[0]


def test_loops_may_be_known_to_run_equally_often() -> None:
    text = """
HloModule m
cond { s = (f32[], u32[]) parameter(0)
  i = u32[] get-tuple-element(s), index=1
  ROOT l = pred[] compare(i, i), direction=LT }
body { b = (f32[], u32[]) parameter(0)
  v = f32[] get-tuple-element(b), index=0
  j = u32[] get-tuple-element(b), index=1
  ROOT t = (f32[], u32[]) tuple(v, j) }
ENTRY e { c = f32[] constant(1)
  id = u32[] replica-id()
  init = (f32[], u32[]) tuple(c, id)
  ROOT loop = (f32[], u32[]) while(init), condition=cond, body=body }
"""
    for loops, answer in (({}, False), ({"loops_known_with_same_iterations": ["%loop"]}, True)):
        expected = [{"replicated": {"loop{0}": answer}}]
        assert run(hlo=text, options=loops, expect=expected).failures == []
