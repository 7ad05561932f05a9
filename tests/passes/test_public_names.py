"""Names that other packages import from `hloopt.passes` stay there."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("base", "pass_framework.base", "ModulePass PassContext PassOptions option register"),
        ("registry", "pass_framework.registry", "create_pass"),
        ("runner", "pass_framework.runner", "PipelineRunner"),
        ("library", "pass_framework.library", "find_pipeline"),
        ("call_inliner", "passes.call_graph.call_inliner", "inline_call inline_clone"),
        ("fusion_operands", "passes.rewriting.fusion_operands", "permute_fusion_operands"),
    ],
)
def test_a_name_is_where_it_was(old: str, new: str, names: str) -> None:
    before, now = import_module(f"hloopt.passes.{old}"), import_module(f"hloopt.{new}")
    for name in names.split():
        assert getattr(before, name) is getattr(now, name)
