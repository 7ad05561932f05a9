"""A pass of another package that fails names its package, its file and its line."""

from __future__ import annotations

import importlib
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hloopt.cli import main
from hloopt.pass_framework.registry import ENTRY_POINTS

MODULE = "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT a = f32[] abs(p)\n}\n"
IMPORTS = """\
from dataclasses import dataclass, field

from hloopt.diagnostics import PassRefused
from hloopt.ir import Opcode
from hloopt.pass_framework.base import ModulePass, PassOptions, option

"""
Capture = pytest.CaptureFixture[str]


class Run(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> Iterator[Callable[..., Run]]:
    """Install a package `plug-in 1.2` with one pass, `my-pass`, and run a command line."""
    step = tmp_path / "step.hlo"
    step.write_text(MODULE)
    info = tmp_path / "plug_in-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nmy_pass = plug_in.passes:MyPass\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def install_and_run(code: str, *arguments: str) -> Run:
        package = tmp_path / "plug_in"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "helpers.py").write_text("def divide(a, b):\n    return a / b\n")
        (package / "passes.py").write_text(IMPORTS + textwrap.dedent(code))
        for name in [name for name in sys.modules if name.startswith("plug_in")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        given = arguments or ("opt", str(step), "--passes", "my-pass", "--repro-dir", str(tmp_path))
        exit_code = main(given)
        return Run(exit_code, *capsys.readouterr())

    yield install_and_run
    for name in [name for name in sys.modules if name.startswith("plug_in")]:
        del sys.modules[name]


GOOD = """\
class MyPass(ModulePass):
    "Do nothing."
    def run(self, module, context):
        return False
"""


def line_of(code: str, text: str) -> int:
    lines = (IMPORTS + textwrap.dedent(code)).splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_pass_of_another_package_runs(run: Callable[..., Run]) -> None:
    assert run(GOOD)[:2] == (0, MODULE)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("0 / 0", "ZeroDivisionError: division by zero"),
        ("module.entry.root.no_such_thing", "AttributeError: "),
        ("module.entry.root.replace_operand(7, None)", "IndexError: "),
        ("__import__('sys').exit(0)", "SystemExit: 0"),
        ("raise RuntimeError('so\\nwhat')", "RuntimeError: so"),
    ],
)
def test_what_it_raises_is_told_with_file_line_and_package(
    run: Callable[..., Run], tmp_path: Path, statement: str, said: str
) -> None:
    code = f"""\
    class MyPass(ModulePass):
        def run(self, module, context):
            {statement}
            return False
    """
    result = run(code)
    assert result.code == 3
    assert result.out == ""
    place = f"{tmp_path}/plug_in/passes.py:{line_of(code, statement[:20])}"
    assert f"pass 'my-pass' failed: {said}" in result.err
    assert f"   = note: raised at {place}, of plug-in 1.2" in result.err
    assert "Traceback" not in result.err
    assert "--repro" in result.err


def test_the_place_is_the_innermost_of_the_package(run: Callable[..., Run], tmp_path: Path) -> None:
    code = """\
    from plug_in.helpers import divide

    class MyPass(ModulePass):
        def run(self, module, context):
            return divide(1, 0)
    """
    assert f"raised at {tmp_path}/plug_in/helpers.py:2, of plug-in 1.2" in run(code).err


def test_a_run_that_says_nothing_is_named_by_its_definition(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    code = """\
    class MyPass(ModulePass):
        def run(self, module, context):
            pass
    """
    result = run(code)
    assert result.code == 3
    assert "run() returned None, not whether it changed the module" in result.err
    assert f"passes.py:{line_of(code, 'def run')}, of plug-in 1.2" in result.err


def test_a_failure_that_is_skipped_is_told_the_same_way(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    code = GOOD.replace("return False", "raise KeyError('x')")
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text("passes:\n  - my-pass: {}\n    on_error: skip\n")
    result = run(code, "opt", str(tmp_path / "step.hlo"), "-p", str(pipeline))
    assert result[:2] == (0, MODULE)
    joined = " ".join(result.err.split())
    assert "warning: pass 'my-pass' failed and was skipped: KeyError: 'x'" in joined
    assert f"passes.py:{line_of(code, 'raise KeyError')}, of plug-in 1.2" in joined


def test_a_pass_that_refuses_is_no_crash(run: Callable[..., Run]) -> None:
    result = run(GOOD.replace("return False", "raise PassRefused('not on a Sunday')"))
    assert result.code == 3
    assert "not on a Sunday" in result.err
    assert "raised at" not in result.err


@pytest.mark.parametrize(
    ("code", "said", "line"),
    [
        ("value = 1 / 0\n" + GOOD, "ZeroDivisionError: division by zero", "value ="),
        ("def broken(:\n" + GOOD, "SyntaxError: ", "def broken"),
        ("raise SystemExit(0)\n" + GOOD, "SystemExit: 0", "raise SystemExit"),
        ("from plug_in.helpers import nothing\n" + GOOD, "ImportError: ", "from plug_in"),
        ("MyPas = 1\n", "AttributeError: module 'plug_in.passes' has no attribute", None),
        (
            GOOD + "    @dataclass(frozen=True)\n"
            "    class Options(PassOptions):\n"
            "        needed: int\n",
            "TypeError: option 'needed' has no default",
            None,
        ),
    ],
)
def test_a_pass_that_cannot_be_loaded_names_the_line(
    run: Callable[..., Run], tmp_path: Path, code: str, said: str, line: str | None
) -> None:
    result = run(code)
    assert result.code == 2
    assert f"pass 'my-pass' cannot be loaded from plug_in.passes:MyPass: {said}" in result.err
    if line is None:
        assert "= note: the package is plug-in 1.2" in result.err
    else:
        place = f"{tmp_path}/plug_in/passes.py:{line_of(code, line)}"
        assert f"raised at {place}, of plug-in 1.2" in result.err
    assert "= help: mend or uninstall plug-in 1.2" in result.err


def test_what_a_package_prints_when_it_is_imported_does_not_spoil_results(
    run: Callable[..., Run],
) -> None:
    result = run("print('loaded')\n" + GOOD)
    assert result == (0, MODULE, "loaded\n")


def test_a_docstring_that_is_no_text_is_named(run: Callable[..., Run]) -> None:
    result = run(GOOD + "    __doc__ = 7\n", "passes", "my-pass")
    assert result.code == 2
    assert "the docstring of plug_in.passes:MyPass is no text" in result.err


OPTIONS = """\
class MyPass(ModulePass):
    "Do nothing so many times."
    @dataclass(frozen=True, kw_only=True)
    class Options(PassOptions):
        times: int = option(1, "how often")
        plain: int = 3
        names: tuple[str, ...] = field(default_factory=lambda: ("a",))
        def __post_init__(self):
            if self.times > 9:
                raise ValueError(f"{self.times} times")
    def run(self, module, context):
        return False
"""


def test_options_that_are_not_taken_name_the_line(run: Callable[..., Run], tmp_path: Path) -> None:
    step = str(tmp_path / "step.hlo")
    assert run(OPTIONS, "opt", step, "--passes", "my-pass{times=2,plain=4}").code == 0
    result = run(OPTIONS, "opt", step, "--passes", "my-pass{times=10}")
    assert result.code == 2
    assert "pass 'my-pass' does not take its options: ValueError: 10 times" in result.err
    assert f"passes.py:{line_of(OPTIONS, 'raise ValueError')}, of plug-in 1.2" in result.err
    assert run(OPTIONS, "passes", "my-pass").code == 0


@pytest.mark.parametrize("error", ["ZeroDivisionError", "SystemExit", "BaseException"])
def test_a_broken_pass_is_named_and_left_out_of_a_list(
    run: Callable[..., Run], tmp_path: Path, error: str
) -> None:
    code = f"value = 1; raise {error}(0)\n" + GOOD
    listed = run(code, "passes")
    assert listed.code == 0
    assert "my-pass" not in listed.out
    assert "call-inliner" in listed.out
    assert "warning[HLO602]: pass 'my-pass' cannot be loaded from" in listed.err
    assert f"raised at {tmp_path}/plug_in/passes.py:{line_of(code, 'value =')}, of" in listed.err
    entries = json.loads(run(code, "passes", "--format", "json").out)
    (broken,) = [entry for entry in entries if entry["name"] == "my-pass"]
    assert error in broken["error"]
    assert "passes.py" in broken["note"]
    schema = run(code, "pipelines", "--schema")
    assert schema.code == 0
    assert "my-pass" not in schema.out
    assert "my-pass" in run(GOOD, "pipelines", "--schema").out
