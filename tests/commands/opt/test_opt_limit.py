"""`hloopt opt --opt-limit N`: stop after N applications, and say which was the last."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from hloopt.cli import main
from hloopt.ir import Module
from hloopt.pass_framework.base import ModulePass, PassContext, register
from hloopt.pass_framework.registry import PASSES, create_pass

TEXT = """HloModule m

ENTRY %main (p: f32[4]) -> f32[4] {
  p = f32[4]{0} parameter(0)
  a = f32[4]{0} negate(p)
  b = f32[4]{0} negate(p)
  c = f32[4]{0} abs(a)
  d = f32[4]{0} abs(b)
  ROOT r = f32[4]{0} add(c, d)
}
"""
AFTER_ONE = TEXT.replace("  b = f32[4]{0} negate(p)\n", "").replace(
    "d = f32[4]{0} abs(b)", "%d = f32[4]{0} abs(%a)"
)
AFTER_TWO = AFTER_ONE.replace("  %d = f32[4]{0} abs(%a)\n", "").replace(
    "r = f32[4]{0} add(c, d)", "%r = f32[4]{0} add(%c, %c)"
)


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Result:
        code = main(["opt", *map(str, arguments)])
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("limit", "text", "said"),
    [
        (0, TEXT, "0 applications made, the limit of 0 is reached"),
        (
            1,
            AFTER_ONE,
            "1 application made, the limit of 1 is reached; the last: cse: %b: equals %a",
        ),
        (
            2,
            AFTER_TWO,
            "2 applications made, the limit of 2 is reached; the last: cse: %d: equals %c",
        ),
        (
            2000,
            AFTER_TWO,
            "2 applications made, the limit of 2,000 is not reached; the last: cse: %d: equals %c",
        ),
    ],
)
def test_the_passes_stop_at_the_limit(
    run: Run, step: Path, limit: int, text: str, said: str
) -> None:
    result = run(step, "--passes", "cse,dce", "--opt-limit", limit)
    assert result == (0, text, f"{said}\n")


def test_without_the_option_nothing_is_said(run: Run, step: Path) -> None:
    assert run(step, "--passes", "cse,dce") == (0, AFTER_TWO, "")
    record = _json(run(step, "--passes", "cse", "--check", "--format", "json").out)
    assert "applications" not in record


def test_json_has_the_number_and_the_last(run: Run, step: Path) -> None:
    options = ("--passes", "cse,dce", "--check", "--format", "json")
    assert _json(run(step, *options, "--opt-limit", 1).out)["applications"] == {
        "limit": 1,
        "made": 1,
        "last": {"pass": "cse", "instruction": "b", "what": "equals %a"},
    }
    assert _json(run(step, *options, "--opt-limit", 0).out)["applications"] == {
        "limit": 0,
        "made": 0,
        "last": None,
    }


def test_the_limit_is_for_each_module_of_a_file(run: Run, step: Path) -> None:
    step.write_text(f"{TEXT}// -----\n{TEXT}")
    result = run(step, "--split-input-file", "--passes", "cse", "--opt-limit", 1)
    assert result.out == f"{AFTER_ONE}// -----\n{AFTER_ONE}"
    assert result.err.count("1 application made") == 2


@pytest.mark.parametrize("limit", ["-1", "many"])
def test_a_limit_is_a_number(run: Run, step: Path, limit: str) -> None:
    result = run(step, "--passes", "cse", "--opt-limit", limit)
    assert result.code == 2
    assert "--opt-limit" in result.err


@register("spoils")
class Spoils(ModulePass):
    """Fail once cse has merged two pairs."""

    def run(self, module: Module, context: PassContext) -> bool:
        changed = create_pass("cse").run(module, context)
        if context.applications.made > 1 and len(module.entry) < 5:
            raise ValueError("too few left")
        return changed


@pytest.fixture
def _spoils(monkeypatch: pytest.MonkeyPatch) -> None:
    home = ModuleType("opt_limit_passes")
    home.__dict__["Spoils"] = Spoils
    monkeypatch.setitem(sys.modules, home.__name__, home)
    monkeypatch.setitem(PASSES, "spoils", f"{home.__name__}:Spoils")


@pytest.mark.usefixtures("_spoils")
def test_a_reproducer_repeats_with_the_limit_that_was_left(
    run: Run, step: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "repro"
    limited = ("--opt-limit", 3)
    failed = run(step, "--passes", "spoils", "--repro-dir", folder, *limited)
    assert failed.code == 3
    (reproducer,) = folder.iterdir()
    assert '"--opt-limit", "3"' in reproducer.read_text()
    assert run("--repro", reproducer, "--repro-dir", tmp_path / "again").code == 3
    fewer = run("--repro", reproducer, "--opt-limit", 1)  # looking for the one that matters
    assert (fewer.code, fewer.out) == (0, AFTER_ONE)


def _json(text: str) -> dict[str, Any]:
    ((record,),) = [file["modules"] for file in json.loads(text)]
    assert isinstance(record, dict)
    return record
