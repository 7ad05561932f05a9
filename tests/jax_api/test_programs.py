"""Programs of JAX as modules, texts, runs, passes and reports."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.page_examples import blocks

import hloopt.jax
from hloopt.diagnostics import HloError, PipelineError
from hloopt.ir.opcode import Opcode
from hloopt.text import parse_module, print_module

jax = pytest.importorskip("jax", reason="needs the extra xla")
programs = pytest.importorskip("tests.jax_api.programs", reason="needs the extra xla")

pytestmark = pytest.mark.oracle

PROGRAMS = {
    "mlp": (programs.mlp, programs.mlp_arguments()),
    "scan": (programs.scan, programs.scan_arguments()),
}
DEAD = """HloModule m
ENTRY e {
  p = f32[4]{0} parameter(0)
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(p, p)
}
"""


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> tuple[Any, tuple[Any, ...]]:
    return PROGRAMS[request.param]


# -- stages ---------------------------------------------------------------------------------------


def test_each_stage_of_a_program(program: tuple[Any, tuple[Any, ...]]) -> None:
    function, args = program
    before = hloopt.jax.module(function, *args, stage="before")
    after = hloopt.jax.module(function, *args)
    assert before.name == after.name == f"jit_{function.__name__}"
    assert not before.is_scheduled
    assert after.is_scheduled
    assert print_module(after) == hloopt.jax.text(function, *args)
    assert "stablehlo." in hloopt.jax.text(function, *args, stage="stablehlo")
    with pytest.raises(HloError, match="no stage 'spmd': XLA did not partition it"):
        hloopt.jax.module(function, *args, stage="spmd")


def test_what_is_lowered_or_compiled_is_a_program() -> None:
    function, args = PROGRAMS["mlp"]
    lowered = function.lower(*args)
    compiled = lowered.compile()
    before = hloopt.jax.text(function, *args, stage="before")
    assert hloopt.jax.text(lowered, stage="before") == before
    assert hloopt.jax.text(lowered) == hloopt.jax.text(compiled)
    assert [each.name for each in hloopt.jax.modules(compiled)] == ["jit_mlp"]
    with pytest.raises(HloError, match="no stage but 'after'"):
        hloopt.jax.text(compiled, stage="before")
    for given in (lowered, compiled):
        with pytest.raises(HloError, match="takes no arguments here"):
            hloopt.jax.module(given, *args)


def test_shapes_are_arguments_and_large_constants_have_their_values() -> None:
    table = np.random.default_rng(0).permutation(4096).astype(np.float32)
    function = jax.jit(lambda x: x + table)
    shape = jax.ShapeDtypeStruct((4096,), jax.numpy.float32)
    for stage in ("before", "after"):
        assert "4095" in hloopt.jax.text(function, shape, stage=stage)


def test_mistakes_are_told() -> None:
    function, args = PROGRAMS["mlp"]
    with pytest.raises(HloError, match="no stage 'befor': there are stablehlo") as failure:
        hloopt.jax.module(function, *args, stage="befor")  # type: ignore[arg-type]  # a mistake
    assert failure.value.help == "did you mean 'before'?"
    with pytest.raises(HloError, match="'stablehlo' is MLIR") as failure:
        hloopt.jax.module(function, *args, stage="stablehlo")
    assert "hloopt.jax.text" in str(failure.value.help)
    with pytest.raises(HloError, match="double is not a jitted function") as failure:
        hloopt.jax.module(double, 1.0)
    assert failure.value.help == "jit it first: jax.jit(…)"
    for given in (3, "step.hlo"):
        with pytest.raises(HloError, match=r"(int|str) is not a jitted function"):
            hloopt.jax.text(given)


def double(x: float) -> float:
    return x * 2


def test_no_jax_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name == "jax":
            raise ModuleNotFoundError("No module named 'jax'")
        return original(name, *args)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(HloError, match="jax cannot be imported") as failure:
        hloopt.jax.run(double, 1.0)
    assert failure.value.help == "pip install 'hloopt[xla]'"


def test_importing_imports_no_jax() -> None:
    code = (
        "import sys, hloopt.jax; print([m for m in ('jax', 'numpy', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# -- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_run_is_what_jax_computes(program: tuple[Any, tuple[Any, ...]], stage: Any) -> None:
    function, args = program
    run = hloopt.jax.run(function, *args, stage=stage)
    assert run.difference < 1e-5
    assert jax.tree.structure(run.ours) == jax.tree.structure(run.theirs)
    for ours, theirs in zip(
        jax.tree.leaves(run.ours), jax.tree.leaves(function(*args)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_keywords_donation_keys_and_scalars() -> None:
    x = jax.numpy.ones(4)
    function = jax.jit(lambda x, *, scale: x * scale, donate_argnums=0)
    run = hloopt.jax.run(function, x, scale=2.0)
    assert run.ours.tolist() == [2] * 4
    assert not x.is_deleted()
    lowered = function.lower(x, scale=2.0)
    for made in (lowered, lowered.compile()):
        assert hloopt.jax.run(made, x, scale=2.0).difference == 0
    keys = hloopt.jax.run(jax.jit(jax.random.split), jax.random.key(0))
    assert keys.difference == 0


def test_another_result_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = jax.jit(lambda x: x * 2).lower(1.0)
    other = jax.jit(lambda x: x * 3).lower(1.0).compile()
    monkeypatch.setattr(type(lowered), "compile", lambda _: other)
    monkeypatch.setattr(hloopt.jax.runs, "lowered_of", lambda *_: lowered)
    assert hloopt.jax.run(double, 1.0, stage="before").difference == 1


def test_what_a_run_does_not_support_is_told() -> None:
    static = jax.jit(lambda x, n: x * n, static_argnums=1)
    with pytest.raises(HloError, match="static arguments"):
        hloopt.jax.run(static, 1.0, 2)
    with pytest.raises(HloError, match="a ShapeDtypeStruct has no values"):
        hloopt.jax.run(jax.jit(double), jax.ShapeDtypeStruct((2,), jax.numpy.float32))


def test_programs_of_several_devices(tmp_path: Path) -> None:
    flag = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("sharded_program.py")), str(tmp_path)],
        env={**os.environ, "XLA_FLAGS": flag, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, whole, part in (
        ("mapped", ["f32[16,8]{1,0}", "f32[8,16]{1,0}"], ["f32[2,8]{1,0}", "f32[8,16]{1,0}"]),
        ("product", ["f32[16,8]{1,0}", "f32[8,16]{1,0}"], ["f32[2,8]{1,0}", "f32[8,2]{1,0}"]),
    ):
        found = json.loads(done.stdout)[name]
        assert [found[stage]["parameters"] for stage in found] == [whole, part, part]
        for stage in found:
            assert found[stage]["partitions"] == 8
            assert found[stage]["difference"] < 1e-5


def test_the_example_of_the_docs_runs(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    function, args = PROGRAMS["mlp"]
    shown: list[object] = []
    names: dict[str, object] = {"step": function, "args": args, "display": shown.append}
    (example,) = [each for each in blocks(root, "python_api.md", "python") if "display(" in each]
    exec(example, names)
    assert [type(each).__name__ for each in shown] == ["Report"] * 3
    assert "jit_mlp" in capsys.readouterr().out


# -- passes and reports ---------------------------------------------------------------------------


def test_passes_by_text_and_pipelines_by_name(program: tuple[Any, tuple[Any, ...]]) -> None:
    function, args = program
    for passes in ("call-inliner,dce", "simplify"):
        module = hloopt.jax.opt(function, *args, passes=passes)
        assert not any(module.instructions(Opcode.CALL))
    with pytest.raises(PipelineError, match="simplfy"):
        hloopt.jax.opt(function, *args, passes="simplfy")


def test_passes_leave_a_given_module_as_it_is() -> None:
    module = parse_module(DEAD)
    assert "dead" not in print_module(hloopt.jax.opt(module, passes="dce"))
    assert print_module(module) == DEAD


def test_reports_are_text_and_html(program: tuple[Any, tuple[Any, ...]]) -> None:
    function, args = program
    reports = {
        "Memory of jit_": hloopt.jax.memory(function, *args, target="h100_sxm"),
        "Schedule of jit_": hloopt.jax.schedule(function, *args, target="h100_sxm"),
        "is_scheduled: true": hloopt.jax.diff(
            function.lower(*args), hloopt.jax.opt(function, *args, passes="dce")
        ),
    }
    for words, report in reports.items():
        assert words in str(report)
        assert repr(report) == str(report)
        assert "\x1b" not in str(report)
        html = report._repr_html_()
        assert html.startswith("<pre style=")
        assert html.endswith("</pre>")
        assert "<script" not in html
    assert "fits" in str(reports["Memory of jit_"])


def test_names_are_no_markup_in_a_report() -> None:
    module = parse_module(DEAD.replace("negate(p)", 'negate(p), metadata={op_name="<b>[red]"}'))
    changed = hloopt.jax.opt(module, passes="dce")
    html = hloopt.jax.diff(module, changed)._repr_html_()
    assert "<b>" not in html


def test_a_limit_is_a_size() -> None:
    assert "RESOURCE_EXHAUSTED" in str(hloopt.jax.memory(SCHEDULED, limit="8B"))
    for limit in ("8", "large", "-1"):
        with pytest.raises(HloError, match=f"limit '{limit}' is no size"):
            hloopt.jax.memory(SCHEDULED, limit=limit)


SCHEDULED = DEAD.replace("HloModule m", "HloModule m, is_scheduled=true")
