"""Every code has an explanation, every explanation a use, and the examples do what they say."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from hloopt.checks.expectations.files import parse_expectations
from hloopt.cli import main
from hloopt.diagnostics import HloError, Source
from hloopt.explanations import FAMILIES, codes, explain
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.ir import Module
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_yaml import parse_pipeline
from hloopt.text import parse_module
from hloopt.verifier import verify_module

GOOD = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
EXAMPLE = re.compile(r"```(\w+)\n(.*?)```", re.S)


def used_codes(root: Path) -> set[str]:
    """The codes the source gives to errors."""
    return {
        node.value
        for path in (root / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"HLO\d{3}", node.value)
    }


def test_codes_and_explanations_belong_together(root: Path) -> None:
    assert used_codes(root) == set(codes())


@pytest.mark.parametrize("code", codes())
def test_an_explanation_begins_with_its_title(code: str) -> None:
    explanation = explain(code)
    assert explanation is not None
    assert explanation.text.startswith(f"# {code}: {explanation.title}\n\n")
    assert explanation.title[0].islower()
    assert explanation.family in FAMILIES.values()
    assert max(map(len, explanation.text.splitlines())) <= 100


def _errors(
    code: str, language: str, text: str, capsys: pytest.CaptureFixture[str]
) -> list[str | None]:
    if language == "sh":
        main(shlex.split(text)[1:])
        return list(re.findall(r"^error\[(\w+)\]", capsys.readouterr().err, re.M))
    try:
        if language == "yaml" and code.startswith("HLO8"):
            parse_expectations(Source("example.yaml", text))
            return []
        if language == "yaml":
            parse_pipeline(Source("example.yaml", text), find_pipeline)
            return []
        assert language == "hlo"
        module = parse_module(text)
        errors = [error.code for error in verify_module(module)]
        if code.startswith("HLO5") and not errors:
            _run(module)
        return errors
    except HloError as error:
        return [error.code]


def _run(module: Module) -> None:
    devices = devices_of(module.replica_count, module.num_partitions)
    arguments = [Inputs().arguments(module.entry, device, 0) for device in devices]
    run_module(module, arguments, limits=Limits(steps=1000))


@pytest.mark.parametrize("code", codes())
def test_the_first_example_makes_the_error_and_the_others_do_not(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explanation = explain(code)
    assert explanation is not None
    monkeypatch.chdir(tmp_path)
    if code != "HLO006":
        for name in ("good.hlo", "other.hlo"):
            Path(name).write_text(GOOD)
    for number, (language, text) in enumerate(EXAMPLE.findall(explanation.text)):
        expected = set() if number else {code}
        assert set(_errors(code, language, text, capsys)) == expected
