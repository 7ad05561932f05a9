"""What the hand-written pages show works as shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.page_examples import assert_printed, blocks, work_in

import hloopt
from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.checks.configuration import read_section
from hloopt.checks.effective import effective_settings
from hloopt.checks.lint.configuration import settings_of
from hloopt.cli import main
from hloopt.diagnostics import Source
from hloopt.interpreter.kernels import custom_call
from hloopt.interpreter.machine import run_module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.conditions import unmet_condition
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.options import make_options
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.pipeline_yaml import parse_pipeline
from hloopt.passes.scheduling.latency_hiding_scheduler import LatencyHidingScheduler
from hloopt.query import parse_selector
from hloopt.text import parse_module, print_module

MODULE = """HloModule m
inner { q = f32[] parameter(0)  ROOT c = f32[] copy(q) }
ENTRY e { p = f32[] parameter(0)  d = f32[] copy(p)  ROOT k = f32[] call(d), to_apply=inner }
"""


@pytest.mark.parametrize("number", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_readme_shows_what_is_printed(
    number: int,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    work_in(tmp_path, root, monkeypatch)
    assert_printed(blocks(root, "../README.md", "console")[number], capsys)


def test_the_page_of_lint_shows_what_is_printed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work_in(tmp_path, root, monkeypatch)
    assert_printed(blocks(root, "lint.md", "console")[0], capsys)


def test_the_settings_of_lint_on_its_page_are_some(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(blocks(root, "lint.md", "toml")[0], encoding="utf-8")
    settings = settings_of(read_section(str(path), "lint"))
    assert settings.target == "h100_sxm"
    assert settings.ignore == ("HLL402",)
    assert len(settings.per_op_name_ignores) == len(settings.per_module_ignores) == 1


def test_the_settings_on_their_page_are_some(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "hloopt.toml"
    path.write_text(blocks(root, "configuration.md", "toml")[0], encoding="utf-8")
    found = {
        (each.section, each.setting): each.value
        for each in effective_settings(str(path))
        if each.file
    }
    table = (root / "docs" / "configuration.md").read_text(encoding="utf-8")
    for section, setting in found:
        assert section == "lint" or f"| `{section}` | `{setting}` |" in table
    assert found["expect", "cost-model"] == "sol"
    assert found["test", "jobs"] == 4


def test_the_example_pipeline_is_one(root: Path) -> None:
    text = blocks(root, "pipelines.md", "yaml")[0]
    pipeline = parse_pipeline(Source("tidy.yaml", text), find_pipeline)
    names = [step.made.name for step in pipeline.passes()]
    assert names[:2] == ["call-inliner", "tuple-simplifier"]


def test_the_example_conditions_are_some(root: Path) -> None:
    text = blocks(root, "pipelines.md", "yaml")[1]
    pipeline = parse_pipeline(Source("conditions.yaml", text), find_pipeline)
    module = parse_module(MODULE)
    unmet = [unmet_condition(module, step.when) for step in pipeline.steps]
    assert [text and text.partition(":")[0] for text in unmet] == ["has", "count", "has"]


def test_the_example_selectors_are_some(root: Path) -> None:
    lines = blocks(root, "selectors.md", "text")[0].splitlines()
    assert len(lines) > 10
    for line in lines:
        list(parse_selector(re.sub(r" {2,}#.*", "", line)).select(parse_module(MODULE)))


def test_the_example_of_selectors_from_python_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(MODULE, encoding="utf-8")
    exec(blocks(root, "selectors.md", "python")[0], {})
    assert capsys.readouterr().out == "d f32[]\nFalse\n"


def test_the_passes_text_is_one(root: Path) -> None:
    page = (root / "docs" / "pipelines.md").read_text(encoding="utf-8")
    text = re.search(r'--passes\s+"([^"]+)"', page)
    assert text
    assert len(parse_passes(text[1], find_pipeline).steps) == 3


def test_the_example_of_the_replication_analysis_runs(root: Path) -> None:
    module = parse_module(
        "HloModule m ENTRY e { p = f32[] parameter(0) ROOT t = (f32[]) tuple(p) }"
    )
    names: dict[str, object] = {"module": module, "instruction": module.entry.root}
    exec(blocks(root, "replication.md", "python")[0], names)
    assert isinstance(names["analysis"], ReplicationAnalysis)


def test_the_example_of_the_memory_report_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(MODULE, encoding="utf-8")
    exec(blocks(root, "memory.md", "python")[0], {})
    assert capsys.readouterr().out.splitlines()[0].startswith("4 f32[]")


def test_the_example_of_the_schedule_is_what_it_prints(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    page = (root / "docs" / "schedule.md").read_text(encoding="utf-8")
    commands = re.findall(r"`hloopt (schedule tests/[^`]*)`", page)
    assert len(commands) == 2
    pairs, _, explain = blocks(root, "schedule.md", "text")
    for command, text in zip(commands, (pairs, explain), strict=True):
        assert main([*command.split(), "--color", "never"]) == 0
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert text.splitlines() == printed


def test_the_examples_of_lines_of_the_program_are_what_it_prints(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    (text,) = blocks(root, "sources.md", "console")
    command = re.search(r"\$ hloopt (cost testdata/.*)", text)
    assert command
    assert main([*command[1].split(), "--color", "never"]) == 0
    assert text.split("⋮\n")[1] in capsys.readouterr().out


def test_the_example_of_lines_from_python_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = (root / "tests" / "golden" / "sources" / "lines.hlo").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(golden, encoding="utf-8")
    exec(blocks(root, "sources.md", "python")[0], {})
    assert "loop /home/me/project/model.py:20 metadata" in capsys.readouterr().out


def test_the_example_of_what_passes_buy_is_what_it_prints(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "schedule.md").read_text(encoding="utf-8")
    ((name, target),) = re.findall(
        r"`hloopt analyze overlap (tests/[^` ]*) after.hlo --target (\w+)`", page
    )
    before = str(root / name)
    assert main(["opt", before, "-p", "pipeline-collectives", "-o", "after.hlo"]) == 0
    capsys.readouterr()
    command = ["analyze", "overlap", before, "after.hlo", "--target", target, "--color", "never"]
    assert main(command) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert blocks(root, "schedule.md", "text")[1].splitlines() == printed


def test_the_example_of_schedules_from_python_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = (root / "tests" / "golden" / "schedule" / "pairs.hlo").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(golden, encoding="utf-8")
    exec(blocks(root, "schedule.md", "python")[0], {})
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_example_pass_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = ModuleType("my_pass")
    monkeypatch.setitem(sys.modules, "my_pass", example)
    exec(blocks(root, "pipelines.md", "python")[0], vars(example))
    pass_class = example.RemoveCopies
    module = parse_module(MODULE)
    made = pass_class(make_options(pass_class, {"keep_in_entry": "true"}))
    context = PassContext()
    assert made.run(module, context)
    told = [(remark.kind, remark.instruction) for remark in context.remarks]
    assert told == [("applied", "c"), ("missed", "d")]
    assert "ROOT q = " in print_module(module)
    assert hloopt.verify_module(module) == []
    assert not made.run(module, PassContext())


def test_the_example_rule_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = [t for t in blocks(root, "pipelines.md", "python") if "my_rules.py" in t]
    example = ModuleType("my_rules")
    monkeypatch.setitem(sys.modules, "my_rules", example)
    exec(text, vars(example))
    module = parse_module(
        "HloModule m\nENTRY e { p = f32[4] parameter(0) two = f32[] constant(2) "
        "b = f32[4] broadcast(two), dimensions={} ROOT r = f32[4] multiply(b, p) }"
    )
    assert example.MyRules().run(module, PassContext())
    assert "ROOT %add = f32[4]{0} add(%p, %p)" in print_module(module)
    assert not example.MyRules().run(module, PassContext())


def test_the_example_pass_leaves_copies_that_are_needed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = ModuleType("my_pass")
    monkeypatch.setitem(sys.modules, "my_pass", example)
    exec(blocks(root, "pipelines.md", "python")[0], vars(example))
    module = parse_module(
        "HloModule m ENTRY e { p = f32[2,3]{1,0} parameter(0)  n = f32[2,3]{1,0} negate(p)  "
        "c = f32[2,3]{0,1} copy(p)  k = f32[2,3]{1,0} copy(p), control-predecessors={n}  "
        "ROOT t = (f32[2,3]{1,0}, f32[2,3]{0,1}, f32[2,3]{1,0}) tuple(n, c, k) }"
    )
    context = PassContext()
    assert not example.RemoveCopies().run(module, context)
    assert [remark.instruction for remark in context.remarks] == ["c", "k"]


def test_the_example_scheduler_follows_its_hooks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = ModuleType("my_scheduler")
    monkeypatch.setitem(sys.modules, "my_scheduler", example)
    exec(blocks(root, "pipelines.md", "python")[1], vars(example))
    text = (
        "HloModule m, is_scheduled=true ENTRY e { p = f32[8,8]{1,0} parameter(0)  "
        "n = f32[8,8]{1,0} negate(p)  "
        "d = f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}  "
        'c = f32[8,8]{1,0} custom-call(p), custom_call_target="f"  '
        "s = (f32[8,8]{1,0}, f32[8,8]{1,0}) collective-permute-start(p), "
        "source_target_pairs={{0,1}}  q = f32[8,8]{1,0} collective-permute-done(s)  "
        "ROOT t = (f32[8,8]{1,0}, f32[8,8]{1,0}, f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(n, d, c, q) }"
    )
    plain, own = (parse_module(text) for _ in range(2))
    LatencyHidingScheduler().run(plain, PassContext())
    context = PassContext()
    assert example.MyScheduler().run(own, context)
    order = [i.name for i in own.entry.instructions]
    assert order.index("c") < order.index("n") < order.index("d")
    assert [i.name for i in plain.entry.instructions] != order
    assert context.statistics["decisions by kPreferDot"]


def test_the_example_of_running_from_python_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("step.hlo", "optimized.hlo"):
        Path(name).write_text(MODULE, encoding="utf-8")
    found: dict[str, object] = {}
    exec(blocks(root, "running.md", "python")[1], found)
    results = found["results"]
    assert isinstance(results, list)
    assert len(results) == 1
    assert "[('output', None)]" in capsys.readouterr().out


def test_the_example_custom_call_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_call, "_TARGETS", dict(custom_call._TARGETS))
    exec(blocks(root, "running.md", "python")[0], {})
    call = 'ROOT c = f32[2] custom-call(p), custom_call_target="scale"'
    module = parse_module(f"HloModule m ENTRY e {{ p = f32[2] parameter(0) {call} }}")
    (result,) = run_module(module, [[np.array([1, 2], np.float32)]])
    assert result.tolist() == [2, 4]


def api_table(root: Path) -> list[tuple[list[str], list[str]]]:
    """The rows of the table of the Python API: names, and the modules that have them."""
    lines = (root / "docs" / "python_api.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| `")]
    remarks = re.compile(r"\([^)]*\)|: .*")
    return [
        (re.findall(r"`(\w+)`", remarks.sub("", what)), re.findall(r"`([\w.]+)`", where))
        for what, where in rows
    ]


def test_what_the_docs_say_of_the_python_api_is_there(root: Path) -> None:
    for names, modules in api_table(root):
        known = {name for module in modules for name in dir(import_module(module))}
        assert [name for name in names if name not in known] == []


def test_the_package_lists_what_the_docs_say_it_has(root: Path) -> None:
    documented = {name for names, where in api_table(root) for name in names if where == ["hloopt"]}
    assert documented == {*hloopt.__all__} - {"__version__"}
    listed = {name for name in dir(hloopt) if not name.startswith("__")}
    assert listed == documented


def test_a_star_imports_the_python_api() -> None:
    names: dict[str, object] = {}
    exec("from hloopt import *", names)
    assert {*hloopt.__all__} <= names.keys()
    assert names["load"] is hloopt.load


def test_listing_the_python_api_imports_nothing() -> None:
    code = (
        "import sys, hloopt; dir(hloopt); print(sum(n.startswith('hloopt.') for n in sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(hloopt.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == "0\n"
