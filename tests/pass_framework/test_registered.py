"""Passes that a script or notebook registers are found by name; the newest of a name counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hloopt
from hloopt.cli import main
from hloopt.diagnostics import PassFailure, PipelineError
from hloopt.pass_framework import registry
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.pass_framework.registry import create_pass, find_pass, pass_names, register_pass

MODULE = "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT a = f32[] abs(p)\n}\n"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget afterwards what a test registers."""
    with monkeypatch.context() as patch:
        patch.setattr(registry, "_REGISTERED", {})
        yield


def register_renaming(name: str, to: str) -> type[ModulePass]:
    """Run the cell of a notebook that defines a pass: it gives the root another name."""

    @register_pass(name, preserves="bits")
    class Renaming(ModulePass):
        """Rename the root."""

        def run(self, module: hloopt.Module, context: PassContext) -> bool:
            if module.entry.root.name == to:
                return False
            module.entry.root.take_name(to)
            return True

    return Renaming


def test_a_registered_pass_is_found_wherever_names_are_read(tmp_path: Path) -> None:
    made = register_renaming("my_renaming", "b")
    assert find_pass("my-renaming") is find_pass("my_renaming") is made
    assert made.name == "my-renaming"
    assert made.preserves == "bits"
    assert "my-renaming" in pass_names()
    assert isinstance(create_pass("my-renaming"), made)
    pipeline = tmp_path / "mine.yaml"
    pipeline.write_text("passes:\n  - my-renaming\n  - dce\n")
    for passes in ("my-renaming", "fixpoint(my_renaming,dce)", str(pipeline)):
        module = hloopt.parse_module(MODULE)
        assert hloopt.opt(module, passes).changed
        assert module.entry.root.name == "b"


def test_the_command_line_of_the_same_process_finds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register_renaming("my-renaming", "b")
    step = tmp_path / "step.hlo"
    step.write_text(MODULE)
    assert main(["opt", str(step), "--passes", "my-renaming"]) == 0
    assert "ROOT %b = " in capsys.readouterr().out


def test_a_cell_that_runs_again_replaces_its_pass() -> None:
    for name in ("b", "c"):
        register_renaming("my-renaming", name)
        module = hloopt.parse_module(MODULE)
        hloopt.opt(module, "my-renaming")
        assert module.entry.root.name == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dce", "'dce' is a pass of hloopt: choose another name"),
        ("call_inliner", "'call_inliner' is a pass of hloopt"),
        ("algebraic-simplifier", "'algebraic-simplifier' is a pass of hloopt"),
        ("fixpoint", "'fixpoint' is a word or a pipeline of hloopt: choose another name"),
        ("simplify", "'simplify' is a word or a pipeline of hloopt"),
        ("my pass", "'my pass' cannot be the name of a pass"),
        ("", "'' cannot be the name of a pass"),
    ],
)
def test_names_that_are_taken_or_cannot_be_are_refused(name: str, said: str) -> None:
    known = pass_names()
    with pytest.raises(PipelineError, match=said):
        register_renaming(name, "b")
    assert pass_names() == known
    assert find_pass("dce").__module__.startswith("hloopt.")


def test_what_is_not_a_pass_is_refused() -> None:
    def run(module: hloopt.Module, context: PassContext) -> bool:
        return False

    not_a_pass: Any = run
    with pytest.raises(PipelineError, match=r"run is not a subclass of ModulePass"):
        register_pass("mine")(not_a_pass)


def test_a_near_name_is_told() -> None:
    register_renaming("my-renaming", "b")
    with pytest.raises(PipelineError) as caught:
        find_pass("my-renamign")
    assert caught.value.help == "did you mean 'my-renaming'?"


def test_a_failure_names_the_line_of_the_script() -> None:
    @register_pass("broken")
    class Broken(ModulePass):
        def run(self, module: hloopt.Module, context: PassContext) -> bool:
            module.entry.root.take_name("gone")
            raise RuntimeError("so what")

    module = hloopt.parse_module(MODULE)
    with pytest.raises(PassFailure, match="pass 'broken' failed: RuntimeError: so what") as caught:
        hloopt.opt(module, "broken")
    assert caught.value.note is not None
    assert __file__ in caught.value.note
    assert hloopt.print_module(module) == MODULE
