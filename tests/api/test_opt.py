"""`hloopt.opt` does what the command does."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

import hloopt
from hloopt.cli import main
from hloopt.diagnostics import HloVerifyError, PipelineError

TEXT = """HloModule m

inner {
  q = f32[4]{0} parameter(0)
  ROOT c = f32[4]{0} negate(q)
}

ENTRY e {
  p = f32[4]{0} parameter(0)
  dead = f32[4]{0} sine(p)
  ROOT k = f32[4]{0} call(p), to_apply=inner
}
"""


@pytest.mark.parametrize(
    ("passes", "arguments"),
    [
        ("call-inliner,dce", ["--passes", "call-inliner,dce"]),
        (
            "call-inliner{single_call_site=true}",
            ["--passes", "call_inliner{single_call_site=true}"],
        ),
        (
            "fixpoint(dce,cse){max_iterations=3}",
            ["--passes", "fixpoint(dce,cse){max_iterations=3}"],
        ),
        ("simplify", ["-p", "simplify"]),
        (" pipeline(flatten), dce", ["-p", "flatten", "--passes", "dce"]),
    ],
)
def test_it_leaves_what_the_command_writes(
    passes: str, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = tmp_path / "step.hlo"
    step.write_text(TEXT)
    assert main(["opt", str(step), *arguments]) == 0
    module = hloopt.load(str(step))
    result = hloopt.opt(module, passes)
    assert hloopt.print_module(module) == capsys.readouterr().out
    assert result.changed == (hloopt.print_module(module) != TEXT)


def test_the_result_says_what_was_done_and_why_not() -> None:
    module = hloopt.parse_module(TEXT)
    result = hloopt.opt(module, "dce,call-inliner")
    assert result.changed
    assert ("applied", "call-inliner", "k") in [remark[:3] for remark in result.remarks]
    assert [(run.name, run.changed) for run in result.runs] == [
        ("dce", True),
        ("call-inliner", True),
    ]
    assert result.validation is None
    assert not hloopt.opt(module, "call-inliner,dce").changed


def test_a_pipeline_in_a_file_is_found(tmp_path: Path) -> None:
    pipeline = tmp_path / "mine.yaml"
    pipeline.write_text("passes: [dce]\n")
    module = hloopt.parse_module(TEXT)
    assert hloopt.opt(module, str(pipeline)).changed
    with pytest.raises(KeyError):
        module["dead"]


@pytest.mark.parametrize("when", ["end", "each"])
def test_it_is_validated_on_as_many_inputs_as_asked(when: Literal["end", "each"]) -> None:
    result = hloopt.opt(hloopt.parse_module(TEXT), "simplify", validate=when, seeds=2)
    assert result.validation is not None
    assert result.validation.seeds == 2


@pytest.mark.parametrize(
    ("passes", "message", "column", "help"),
    [
        ("dce,cs", "unknown pass 'cs'", 5, "did you mean 'cse'?"),
        ("dce,cse{x=1}", "pass 'cse' has no option 'x'", 9, None),
        ("simplifyy", "unknown pass 'simplifyy'", 1, "did you mean 'simplify'?"),
        ("", "nothing to run: the text names no pass", None, None),
        ("nothing.yaml", "cannot read pipeline nothing.yaml", None, None),
    ],
)
def test_mistakes_have_a_place_and_leave_the_module(
    passes: str, message: str, column: int | None, help: str | None
) -> None:
    module = hloopt.parse_module(TEXT)
    with pytest.raises(PipelineError, match=message) as caught:
        hloopt.opt(module, passes)
    assert (caught.value.location or (1, None))[1] == column
    assert help is None or caught.value.help == help
    assert hloopt.print_module(module) == TEXT
    if column:
        assert f"<passes>:1:{column}" in hloopt.render_error(caught.value)


def test_an_invalid_module_is_refused_unless_nobody_verifies() -> None:
    module = hloopt.parse_module(TEXT)
    module["k"].set_shape(hloopt.parse_module(TEXT.replace("[4]", "[5]"))["k"].shape)
    with pytest.raises(HloVerifyError):
        hloopt.opt(module, "dce")
    assert hloopt.opt(module, "dce", verify=False).changed
