"""What the XLA engine says without asking XLA."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from hloopt.diagnostics import render_error
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.machine import devices_of
from hloopt.text import parse_module
from hloopt.xla import process
from hloopt.xla.child import hlo_bindings
from hloopt.xla.engine import run_with_xla


def test_without_jaxlib_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "jaxlib.py").write_text("raise ImportError('no jaxlib here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(process, "_running", {})  # what runs already may have found it
    module = parse_module("HloModule m\nENTRY e { ROOT c = f32[] constant(1) }")
    with pytest.raises(RunError) as caught:
        run_with_xla(module, [[]], devices_of(1, 1))
    shown = render_error(caught.value)
    assert shown.startswith("error[HLO505]: XLA cannot be asked: no jaxlib here")
    assert "pip install 'hloopt[xla]'" in shown


def test_constants_without_values_are_not_made_up() -> None:
    module = parse_module("HloModule m\nENTRY e { ROOT c = f32[2,2] constant({...}) }")
    with pytest.raises(RunError, match=r"^%c: its values were left out") as caught:
        run_with_xla(module, [[]], devices_of(1, 1))
    assert caught.value.code == "HLO502"


@pytest.mark.parametrize("name", ["_hlo", "_jax"])
def test_classes_of_hlo_where_this_jaxlib_has_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jaxlib 0.10 has them in `_hlo`, 0.9 in `_jax`."""
    modules = {each: ModuleType(f"jaxlib.{each}") for each in {"_jax", name}}
    package = ModuleType("jaxlib")
    package.__path__ = []  # so that a name that it lacks is looked for in its folder
    for each, module in modules.items():
        setattr(package, each, module)
    monkeypatch.delitem(sys.modules, "jaxlib._hlo", raising=False)
    monkeypatch.setitem(sys.modules, "jaxlib", package)
    assert hlo_bindings() is modules[name]
