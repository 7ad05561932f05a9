"""Mistakes in pipelines: YAML files and `--passes`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bad_input.refusals import GOOD, Refuse

BOMB = "passes:\n  - fixpoint: &a0 {passes: [dce, dce, dce, dce, dce, dce, dce]}\n" + "".join(
    f"  - fixpoint: &a{i} {{passes: [{', '.join([f'fixpoint: *a{i - 1}'] * 7)}]}}\n"
    for i in range(1, 19)
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("pases: [dce]", "1:1", "unknown key 'pases' in a pipeline", "did you mean 'passes'?"),
        ("name: x\n", "1:1", "a pipeline needs the key 'passes'", ""),
        ("- dce\n", "1:1", "expected a pipeline (a mapping)", ""),
        ("", "1:1", "the pipeline is empty", "passes:"),
        ("passes: dce", "1:9", "expected a list of passes", ""),
        ("passes:\n  - dec", "2:5", "unknown pass 'dec'", "did you mean 'dce'?"),
        ("passes:\n  - dce: {x: 1}", "2:11", "pass 'dce' has no option 'x'", "it has "),
        ("passes:\n  - dce: 3", "2:10", "expected the options of 'dce' (a mapping)", ""),
        (
            "passes:\n  - call-inliner: {single_call_site: 1}", "2:20",
            "option 'single_call_site' takes true or false, not 1", "",
        ),
        (
            "passes:\n  - call-inliner: {single_call_site: [a, 2]}", "2:20",
            "option 'single_call_site' takes true or false, not [\"a\", 2]", "",
        ),
        (
            "passes:\n  - call-inliner: {single_call_site: !!python/name:os.system x}", "2:20",
            'not "x"', "",
        ),
        ("passes:\n  - call-inliner: {single_call_site: !!int x}", "2:38", "not fit", ""),
        ("passes:\n  - call-inliner: {single_call_site: {a: 1}}", "2:20", "true or false, not", ""),
        ("passes:\n  - dce:\n    on_eror: skip", "2:5", "names dce, on_eror", "'on_error'"),
        ("passes:\n  - dce:\n    on_error: skp", "3:15", "on_error is fail or skip", ""),
        ("passes:\n  - dce:\n    when: {has_cals: true}", "3:12", "'has_cals'", "'has_calls'"),
        ("passes:\n  - dce:\n    when: {has_calls: 1}", "3:12", "true or false, not 1", ""),
        ("passes:\n  - dce:\n    when: {has_opcode: [adt]}", "3:12", '"adt"', "did you mean"),
        ("passes:\n  - dce:\n    when: {has_opcode: [[a]]}", "3:25", "single value", ""),
        ("passes:\n  - fixpoint: {passes: [dce], max_iteration: 3}", "2:31", "", "max_iterations"),
        ("passes:\n  - fixpoint: {passes: [dce], max_iterations: 0}", "2:47", "from 1 on", ""),
        ("passes:\n  - pipeline: simplif", "2:15", "no pipeline 'simplif'", "'simplify'"),
        ("passes:\n  - pipeline: dce", "2:15", "no pipeline 'dce'", "it is a pass: --passes dce"),
        ("passes:\n  - simplify", "2:5", "unknown pass 'simplify'", "it is a pipeline: -p"),
        ("passes: [dce]\npasses: [cse]", "2:1", "key 'passes' is given twice", ""),
        ("passes: [dce\n", "2:1", "not YAML", ""),
        ("\tpasses: [dce]", "1:1", "not YAML", ""),
        ("passes: [dce]\n---\npasses: [cse]", "2:1", "single document", ""),
        ("passes: [\x01]", "1:10", "characters are not allowed", ""),
        ("passes: &p\n  - fixpoint: {passes: *p}", "1:9", "nested too deeply", ""),
        (BOMB, "3:29", "more than 10,000 values", ""),
    ],
)  # fmt: skip
def test_a_mistake_in_yaml_is_shown_with_line_column_and_hint(
    refuse: Refuse, tmp_path: Path, text: str, place: str, message: str, hint: str
) -> None:
    hlo = tmp_path / "step.hlo"
    hlo.write_text(GOOD)
    pipeline = tmp_path / "pipeline.yaml"
    pipeline.write_text(text)
    stderr = refuse("opt", hlo, "-p", pipeline, "-o", tmp_path / "out.hlo")
    assert message in stderr.splitlines()[0]
    assert hint in stderr
    assert f"--> {pipeline}:{place}\n" in stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"passes: [\xff]", "byte 9 is not UTF-8"),
        (b"passes: " + b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
    ],
)
def test_what_is_no_yaml_text_is_refused(
    refuse: Refuse, tmp_path: Path, text: bytes, message: str
) -> None:
    pipeline = tmp_path / "pipeline.yaml"
    pipeline.write_bytes(text)
    assert message in refuse("opt", tmp_path / "out.hlo", "-p", pipeline)


def test_a_pipeline_that_contains_itself_is_refused(refuse: Refuse, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(f"passes:\n  - pipeline: {second}\n")
    second.write_text(f"passes:\n  - dce\n  - pipeline: {first}\n")
    stderr = refuse("opt", tmp_path / "out.hlo", "-p", first)
    assert f"pipeline '{first}' contains itself" in stderr
    assert f"--> {second}:3:15" in stderr


@pytest.mark.parametrize(
    ("passes", "column", "message", "hint"),
    [
        ("dec", 1, "unknown pass 'dec'", "did you mean 'dce'?"),
        ("cse,dce{x=1}", 9, "pass 'dce' has no option 'x'", "it has "),
        ("dce{", 5, "expected the name", ""),
        ("dce)", 4, "expected ','", ""),
        ("dce cse", 5, "expected ','", ""),
        ("fixpoint(dce", 13, "expected ')'", ""),
        ("fixpoint(dce){max_iterations=0}", 15, "from 1 on", ""),
        (f"fixpoint(dce){{max_iterations={'9' * 5000}}}", 15, "from 1 on", ""),
        ("fixpoint(dce){limit=1}", 15, "no option 'limit'", "max_iterations"),
        ('call-inliner{single_call_site="a}', 31, "expected a value", ""),
        ("call-inliner{single_call_site=[[a]]}", 14, 'not [["a"]]', ""),
        ("call-inliner{single_call_site=[a,b]}", 14, 'not ["a", "b"]', ""),
        ("call-inliner{single_call_site=maybe}", 14, 'not "maybe"', ""),
        ("pipeline(simplif)", 10, "no pipeline 'simplif'", "did you mean 'simplify'?"),
        ("fixpoint(" * 1000 + "dce" + ")" * 1000, 451, "nested too deeply", ""),
    ],
)
def test_a_mistake_in_passes_text_is_shown_with_its_column(
    refuse: Refuse, tmp_path: Path, passes: str, column: int, message: str, hint: str
) -> None:
    stderr = refuse("opt", tmp_path / "out.hlo", "--passes", passes)
    assert message in stderr.splitlines()[0]
    assert hint in stderr
    assert f"--> --passes:1:{column}\n" in stderr
