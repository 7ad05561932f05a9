"""Each pass says what it preserves, where it is registered."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from hloopt.pass_framework.registry import PASSES, find_pass
from hloopt.preserves import PRESERVES


@pytest.mark.parametrize("name", sorted(PASSES))
def test_a_pass_declares_what_it_preserves(name: str) -> None:
    path = import_module(find_pass(name).__module__).__file__
    assert path is not None
    calls = [
        node
        for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "register" and ast.literal_eval(node.args[0]) == name
    ]
    (call,) = calls
    (said,) = [ast.literal_eval(k.value) for k in call.keywords if k.arg == "preserves"]
    assert said == find_pass(name).preserves
    assert said in PRESERVES
