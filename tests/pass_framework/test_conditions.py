"""Conditions of steps: present ones hold when they did, selectors ask for the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import ValidationError
from tests.pass_framework.pipeline_files import check_content
from tests.properties.strategies.every_opcode import modules_of_all_opcodes
from tests.properties.strategies.modules import module_texts
from tests.query.programs import module

from hloopt.diagnostics import HloError, Source, render_error
from hloopt.ir.opcode import ASYNC, COLLECTIVES, OPCODES, Opcode
from hloopt.pass_framework.conditions import unmet_condition
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.query.grammar import parse_terms
from hloopt.text import parse_module

ASYNC_COLLECTIVES = {o for o in COLLECTIVES | ASYNC if o.endswith(("-start", "-done"))}


@settings(max_examples=100)
@given(
    st.one_of(module_texts(), modules_of_all_opcodes()),
    st.lists(st.sampled_from(sorted(OPCODES)), max_size=40),
)
def test_conditions_hold_by_the_opcodes_in_the_module(text: str, names: list[str]) -> None:
    found = parse_module(text)
    present = {instruction.opcode for instruction in found.instructions()}
    for key, wanted in {
        "has_calls": {Opcode.CALL},
        "has_loops": {Opcode.WHILE},
        "has_collectives": COLLECTIVES,
        "has_async_collectives": ASYNC_COLLECTIVES,
    }.items():
        holds = not present.isdisjoint(wanted)
        assert unmet_condition(found, {key: holds}) is None
        assert unmet_condition(found, {key: not holds}) == f"{key}: {str(not holds).lower()}"
    assert (unmet_condition(found, {"has_opcode": names}) is None) is bool(present & {*names})


HOLD = [
    {"has": "all-gather, bytes>500"},
    {"has": ["all-gather", "in-loop, opcode=negate"]},
    {"has_no": "all-gather, in-loop"},
    {"has_no": ["dot", "bytes>1GiB"]},
    {"count": {"of": "copy", "min": 2}},
    {"count": {"of": "copy", "max": 2}},
    {"count": {"of": "copy", "min": 2, "max": 2}},
    {"count": {"of": "dot", "max": 0}},
    {"has": "copy", "has_no": "dot", "min_instructions": 10},
]
DO_NOT_HOLD = [
    ({"has": "all-gather, bytes>1GiB"}, "has: all-gather, bytes>1GiB"),
    ({"has": ["all-gather", "dot"]}, "has: ['all-gather', 'dot']"),
    ({"has_no": "copy"}, "has_no: copy"),
    ({"has_no": ["dot", "copy"]}, "has_no: ['dot', 'copy']"),
    ({"count": {"of": "copy", "min": 3}}, 'count: {"of": "copy", "min": 3}'),
    ({"count": {"of": "copy", "max": 1}}, 'count: {"of": "copy", "max": 1}'),
    ({"has": "copy", "has_loops": False}, "has_loops: false"),
]


@pytest.mark.parametrize("when", HOLD)
def test_a_condition_holds(when: dict[str, object], tmp_path: Path) -> None:
    assert unmet_condition(module(), when) is None
    accept(when, tmp_path)


@pytest.mark.parametrize(("when", "said"), DO_NOT_HOLD)
def test_a_condition_does_not_hold(when: dict[str, object], said: str, tmp_path: Path) -> None:
    assert unmet_condition(module(), when) == said
    accept(when, tmp_path)


def accept(when: object, folder: Path) -> None:
    """Find that a pipeline with these conditions is one, for its schema, too."""
    content = {"passes": [{"dce": {}, "when": when}]}
    pipeline = folder / "p.yaml"
    pipeline.write_text(json.dumps(content), encoding="utf-8")
    (step,) = find_pipeline(str(pipeline)).steps
    assert step.when == when
    check_content(content)


@pytest.mark.parametrize(
    "when",
    [{"has": 3}, {"has": []}, {"has": ""}, {"has": [1]}, {"has_no": {}}, {"count": "copy"},
     {"count": {"of": "copy"}}, {"count": {"min": 1, "max": 2}}, {"count": {"of": "copy", "mn": 1}},
     {"count": {"of": 1, "min": 1}}, {"count": {"of": "copy", "min": -1}},
     {"count": {"of": "copy", "min": "1"}}],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(when: object, tmp_path: Path) -> None:
    content = {"passes": [{"dce": {}, "when": when}]}
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(HloError) as caught:
        find_pipeline(str(pipeline))
    assert caught.value.code == "HLO607"
    with pytest.raises(ValidationError):
        check_content(content)


@pytest.mark.parametrize(
    ("when", "code", "marked", "message"),
    [
        ("{has: opcode=al-gather}", "HLO609", "al-gather", "'al-gather' is not an opcode"),
        ('{has: "opcode=al-gather"}', "HLO609", "al-gather", "is not an opcode"),
        ("{has: 'copy, in-lop'}", "HLO609", "in-lop", "neither an opcode nor a key"),
        ('{has_no: [copy, "bytes>1x"]}', "HLO609", "1x", "expected a size"),
        ("{count: {min: 1, of: copz}}", "HLO609", "copz", "neither an opcode nor a key"),
        ('{has: "na\\u006De=a b"}', "HLO609", '"na\\u006De=a b"', "expected ',' or 'or'"),
        ("{count: {of: copy, max: 1, min: 2}}", "HLO607", "count", "'max' is less than"),
        ("{has_mo: copy}", "HLO607", "has_mo", "unknown condition 'has_mo'"),
    ],
)
def test_a_mistake_is_shown_where_the_file_has_it(
    when: str, code: str, marked: str, message: str, tmp_path: Path
) -> None:
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(f"passes:\n  - dce:\n    when: {when}\n", encoding="utf-8")
    with pytest.raises(HloError) as caught:
        find_pipeline(str(pipeline))
    lines = render_error(caught.value).splitlines()
    assert lines[0].startswith(f"error[{code}]: ")
    assert message in lines[0]
    assert "p.yaml:3:" in lines[1]
    line, carets = lines[3:5]
    assert line[carets.index("^") : carets.rindex("^") + 1] == marked


def test_a_selector_in_a_fixpoint_is_parsed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def count(source: Source) -> object:
        parsed.append(source.text)
        return parse_terms(source)

    monkeypatch.setattr("hloopt.query.selector.parse_terms", count)
    wanted = f'opcode=parameter, name!="{tmp_path}"'  # a text of this test run alone
    steps = [{"dce": {}, "when": {"has": wanted}}]
    pipeline = tmp_path / "p.yaml"
    content = {"passes": [{"fixpoint": {"passes": steps}}]}
    pipeline.write_text(json.dumps(content), encoding="utf-8")
    dead = parse_module(
        "HloModule m ENTRY e { p = f32[] parameter(0) d = f32[] negate(p) ROOT r = f32[] copy(p) }"
    )
    result = PipelineRunner().run(find_pipeline(str(pipeline)), dead)
    assert [(run.changed, run.skipped) for run in result.runs] == [(True, None), (False, None)]
    assert parsed == [wanted]
