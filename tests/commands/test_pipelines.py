"""`hloopt pipelines`: shipped pipelines, their text form, the JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hloopt.cli import main
from hloopt.passes.library import find_pipeline, pipeline_names, shipped_folder
from hloopt.passes.pipeline_text import format_passes, parse_passes

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def schema(capsys: Capture) -> Any:
    assert main(["pipelines", "--schema"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", pipeline_names())
def test_a_shipped_pipeline_has_a_text_form_that_means_the_same(name: str, capsys: Capture) -> None:
    assert main(["pipelines", name]) == 0
    text = capsys.readouterr().out.strip()
    wanted = [step.made.name for step in find_pipeline(name).passes()]
    again = parse_passes(text, find_pipeline)
    assert [step.made.name for step in again.passes()] == wanted
    assert format_passes(again.steps) == text


@pytest.mark.parametrize("name", pipeline_names())
def test_a_shipped_pipeline_follows_the_schema(name: str, schema: Any) -> None:
    content = yaml.safe_load(Path(shipped_folder(), f"{name}.yaml").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(content, schema)


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
def test_the_schema_refuses_mistakes(content: object, schema: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema)


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
