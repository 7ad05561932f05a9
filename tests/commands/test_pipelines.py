"""`hloopt pipelines`: shipped pipelines, their text form, the JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from jsonschema import ValidationError
from tests.pass_framework.pipeline_files import check_content

from hloopt.cli import main
from hloopt.diagnostics import PipelineError
from hloopt.driver import Settings
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.options import parse_seconds
from hloopt.pass_framework.pipeline_text import format_passes, parse_passes
from hloopt.pass_framework.schema import pipeline_schema
from hloopt.pass_framework.shipped import pipeline_names, shipped_folder

Capture = pytest.CaptureFixture[str]


def test_the_schema_is_printed(capsys: Capture) -> None:
    assert main(["pipelines", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == pipeline_schema()


@pytest.mark.parametrize("name", pipeline_names())
def test_a_shipped_pipeline_has_a_text_form_that_means_the_same(name: str, capsys: Capture) -> None:
    assert main(["pipelines", name]) == 0
    text = capsys.readouterr().out.strip()
    wanted = [step.made.name for step in find_pipeline(name).passes()]
    again = parse_passes(text, find_pipeline)
    assert [step.made.name for step in again.passes()] == wanted
    assert format_passes(again.steps) == text


@pytest.mark.parametrize("name", pipeline_names())
def test_a_shipped_pipeline_follows_the_schema(name: str) -> None:
    content = yaml.safe_load(Path(shipped_folder(), f"{name}.yaml").read_text())
    check_content(content)


@pytest.mark.parametrize(
    "content",
    [
        {"passes": ["dec"]},
        {"pases": ["dce"]},
        {"passes": [{"dce": {"x": 1}}]},
        {"passes": [{"dce": None, "on_error": "skp"}]},
        {"passes": [{"fixpoint": {"passes": ["dce"], "max_iterations": 0}}]},
    ],
)
def test_the_schema_refuses_mistakes(content: object) -> None:
    with pytest.raises(ValidationError):
        check_content(content)


def test_pipelines_are_listed(capsys: Capture) -> None:
    assert main(["pipelines"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in pipeline_names())
    assert main(["pipelines", "--format", "json"]) == 0
    assert [p["name"] for p in json.loads(capsys.readouterr().out)] == pipeline_names()


def test_text_values_of_options_survive_the_text_form(tmp_path: Path) -> None:
    for value in ('a"b', "a\\", "a b", "a,b", "", '\\"', "plain"):
        path = tmp_path / "p.yaml"
        path.write_text(
            f"passes:\n  - dce: {{execution_threads: [{json.dumps(value)}]}}\n", encoding="utf-8"
        )
        pipeline = find_pipeline(str(path))
        again = parse_passes(format_passes(pipeline.steps), find_pipeline)
        options = [step.made.options for p in (pipeline, again) for step in p.passes()]
        assert options[0] == options[1]
        assert options[0].execution_threads == (value,)


SEARCH = {"budget": "2min", "iterations": 50, "objective": "exposed", "memory_limit": "1GiB"}


def test_options_may_have_options(tmp_path: Path) -> None:
    content = {"passes": [{"latency-hiding-scheduler": {"search": SEARCH}}]}
    check_content(content)
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(json.dumps(content))
    for passes in (find_pipeline(str(pipeline)), parse_passes(_text_of(SEARCH), find_pipeline)):
        (step,) = passes.passes()
        search = step.made.options.search
        assert (search.budget, search.iterations, search.objective) == (120.0, 50, "exposed")
        assert search.memory_limit == 1 << 30
        assert format_passes(passes.steps) == _text_of(SEARCH)


def _text_of(search: dict[str, object]) -> str:
    options = ",".join(f"{name}={value}" for name, value in search.items())
    return f"latency-hiding-scheduler{{search={{{options}}}}}"


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"budgt": 3}, "option 'search' has no option 'budgt'"),
        ({"budget": "3 weeks"}, "option 'budget' takes a time such as 30s, not \"3 weeks\""),
        ({"budget": {}}, "option 'budget' takes a time such as 30s, not {}"),
        (
            {"memory_limit": "lots"},
            "option 'memory_limit' takes bytes, such as 80GiB | null, not \"lots\"",
        ),
        ("fast", "option 'search' takes options | null, not \"fast\""),
        ([1], "option 'search' takes options | null, not [1]"),
    ],
)
def test_mistakes_in_options_of_options(search: object, message: str, tmp_path: Path) -> None:
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(json.dumps({"passes": [{"latency-hiding-scheduler": {"search": search}}]}))
    with pytest.raises(PipelineError, match=re.escape(message)) as caught:
        find_pipeline(str(pipeline))
    assert caught.value.span is not None


@pytest.mark.parametrize("make", [lambda inner: f"{{x={inner}}}", lambda inner: f"{{x=[{inner}]}}"])
def test_deep_options_are_one_message(make: Callable[[str], str]) -> None:
    text = "1"
    for _ in range(3000):
        text = make(text)
    with pytest.raises(PipelineError):
        parse_passes(f"dce{text}", find_pipeline)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("2min", 120), ("1.5 h", 5400), ("250ms", 0.25), ("7", 7), ("-1s", None)],
)
def test_times(text: str, seconds: float | None) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("fori_loop.before_optimizations", "3"),
        ("ring_matmul_8dev.before_optimizations", "3"),
        ("ring_matmul_8dev.after_spmd_partitioning", "3"),
        pytest.param("transformer_scan_8dev.after_spmd_partitioning", "1", marks=pytest.mark.slow),
    ],
)
def test_steps_compute_the_same_with_pipelined_collectives(
    name: str, seeds: str, root: Path, tmp_path: Path, capsys: Capture
) -> None:
    """In double precision, as sums are taken in another order."""
    before, after = tmp_path / "step.hlo", tmp_path / "after.hlo"
    text = (root / "testdata" / f"{name}.hlo").read_text(encoding="utf-8")
    before.write_text(re.sub(r"\bb?f(16|32)\[", "f64[", text), encoding="utf-8")
    chosen = ["-p", "pipeline-collectives", "--validate", "--seeds", seeds]
    assert main(["opt", str(before), *chosen, "-o", str(after)]) == 0
    assert "validated: the module computes what it did" in capsys.readouterr().err
    assert main(["analyze", "overlap", str(before), str(after)]) == 0
    assert "collectives" in capsys.readouterr().out


def test_pipelines_that_include_pipelines_have_one_budget(tmp_path: Path) -> None:
    for level in range(8):
        inner = f"pipeline: {tmp_path}/{level + 1}.yaml" if level < 7 else "dce"
        (tmp_path / f"{level}.yaml").write_text("passes:\n" + f"  - {inner}\n" * 10)
    with pytest.raises(PipelineError, match="files at each inclusion") as caught:
        find_pipeline(str(tmp_path / "0.yaml"))
    assert caught.value.code == "HLO608"
    assert caught.value.span is not None


def test_pipelines_of_one_command_line_share_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text("passes:\n" + "  - dce\n" * 6000)
    assert len(Settings(pipelines=(str(path),)).pipeline().steps) == 1
    with pytest.raises(PipelineError, match="files at each inclusion"):
        Settings(pipelines=(str(path), str(path))).pipeline()
    path.write_text("#" + " " * 6_000_000 + "\npasses:\n  - dce\n")
    with pytest.raises(PipelineError, match="10,000,000 characters"):
        Settings(pipelines=(str(path), str(path))).pipeline()


def test_pipelines_include_each_other_only_so_deeply(tmp_path: Path) -> None:
    for level in range(200):
        (tmp_path / f"{level}.yaml").write_text(
            f"passes:\n  - pipeline: {tmp_path}/{level + 1}.yaml\n"
        )
    with pytest.raises(PipelineError, match="too deeply"):
        find_pipeline(str(tmp_path / "0.yaml"))
