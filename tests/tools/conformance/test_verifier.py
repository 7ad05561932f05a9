"""Records of the verifier: acceptance, refusal, edits of the module, and that they are strict."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_lib.records import Record
from conformance_lib.runner import Outcome, run_record

TEXT = """
HloModule m
f { x = f32[] parameter(0)  ROOT m = f32[] negate(x) }
ENTRY e {
  p = f32[8] parameter(0)
  z = f32[] constant(0)
  ROOT n = f32[8] pad(p, z), padding=0_0
}
"""


def run(**fields: Any) -> Outcome:
    record = {"id": "t", "pass": "verifier", "hlo": TEXT, **fields}

    def no_pass(*_: object) -> Any:
        raise AssertionError("no pass is made for the verifier")

    return run_record(Record("t", record), no_pass)


OK = [{"ok": True}]
ERROR = [{"error": "f32[8]"}]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"expect": OK}, None),
        ({"expect": ERROR, "mutate": [{"set_shape": ["%n", "f32[9]"]}]}, True),
        ({"expect": [{"error": "XLA's"}], "mutate": [{"set_shape": ["%n", "f32[9]"]}]}, False),
        ({"expect": ERROR, "mutate": [{"replace_operand": ["%n", 0, "%f::x"]}]}, False),
        ({"expect": ERROR, "mutate": [{"set_attr": ["%n", "padding", [[0, 0, -1]]]}]}, False),
        ({"expect": ERROR, "mutate": [{"remove": "%p"}]}, False),  # the library refuses
        ({"expect": [{"parse_error": "oops"}], "hlo": TEXT + "oops"}, False),
        (
            {
                "expect": [{"error": "f32"}, {"error": "f32", "after_step": 1}],
                "mutate": [{"set_shape": ["%n", "f32[9]"]}],
                "also_run": {"then": ["verifier"]},
            },
            True,
        ),
        ({"expect": OK, "options": {"supported_unbounded_dynamic_ops": ["add"]}}, None),
        ({"expect": OK, "config": {"num_partitions": 2, "use_spmd_partitioning": True}}, None),
    ],
)
def test_record_passes(fields: dict[str, Any], words: bool | None) -> None:
    outcome = run(**fields)
    assert outcome.failures == []
    assert outcome.has_xla_words is words


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expect": ERROR}, "expected to be refused"),
        ({"expect": ERROR, "hlo": TEXT + "oops"}, "the parser refuses the text"),
        ({"expect": OK, "hlo": TEXT + "oops"}, "the parser refuses the text"),
        ({"expect": []}, "the record expects nothing"),
        ({"expect": OK, "mutate": [{"set_shape": ["%n", "f32[9]"]}]}, "expected to be accepted"),
        ({"expect": [{"ok": True, "odd": 1}]}, "unknown expectation: odd"),
        ({"expect": OK, "options": {"odd": True}}, "unknown option of the verifier: odd"),
        ({"expect": OK, "config": {"odd": 1}}, "config odd=1 has no meaning"),
        ({"expect": OK, "odd": 1}, "unknown record field: odd"),
        ({"expect": OK, "mutate": [{"odd": 1}]}, "unknown edit: odd"),
        ({"expect": OK, "mutate": [{"set_attr": ["%n", "odd", 1]}]}, "the attribute 'odd'"),
        ({"expect": OK, "mutate": [{"remove": "%odd"}]}, "odd"),
        ({"expect": OK, "also_run": {"then": ["dce"]}}, "only the verifier can run here"),
    ],
)
def test_record_fails_with_a_reason(fields: dict[str, Any], message: str) -> None:
    outcome = run(**fields)
    assert len(outcome.failures) == 1
    assert message in outcome.failures[0]


def test_an_edit_sets_one_dilation_of_a_window() -> None:
    text = """ENTRY e {
  l = f32[1,2,8,8] parameter(0)
  r = f32[3,3,2,4] parameter(1)
  ROOT c = f32[1,4,6,6] convolution(l, r), window={size=3x3}, dim_labels=bf01_01io->bf01
}"""
    outcome = run(
        hlo=text,
        expect=[{"error": "dilat"}],
        mutate=[{"set_attr": ["%c", "window.dimensions.0.window_dilation", -1]}],
    )
    assert outcome.failures == []


def test_edits_set_layouts_and_base_dilations() -> None:
    text = """ENTRY e {
  l = f32[1,2,8,8] parameter(0)
  r = f32[3,3,2,4] parameter(1)
  ROOT c = f32[1,4,6,6] convolution(l, r), window={size=3x3}, dim_labels=bf01_01io->bf01
}"""
    dilated = {"set_attr": ["%c", "window.dimensions.1.base_dilation", 2]}
    swapped = {"set_attr": ["%c", "layout.minor_to_major", [0, 0, 0, 0]]}
    for edit in (dilated, swapped):
        assert run(hlo=text, expect=[{"error": ""}], mutate=[edit]).failures == []
    same = {"set_attr": ["%c", "layout.minor_to_major", [3, 2, 1, 0]]}
    assert run(hlo=text, expect=OK, mutate=[same]).failures == []
    (failure,) = run(hlo=text, expect=OK, mutate=[{"set_attr": ["%c", "layout.tile", 1]}]).failures
    assert "set 'tile' of a layout" in failure
