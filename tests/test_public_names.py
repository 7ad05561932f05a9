"""Names that other packages import stay where they were documented."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (
            "passes.base",
            "pass_framework.base",
            "ModulePass PassContext PassOptions option register",
        ),
        ("pass_framework.base", "options", "Bytes PassOptions Seconds option"),
        ("passes.registry", "pass_framework.registry", "create_pass"),
        ("passes.runner", "pass_framework.runner", "PipelineRunner"),
        ("passes.library", "pass_framework.library", "find_pipeline"),
        ("passes.call_inliner", "passes.call_graph.call_inliner", "inline_call inline_clone"),
        ("passes.fusion_operands", "passes.rewriting.fusion_operands", "permute_fusion_operands"),
        ("ir.shape", "ir.shapes.shape", "Shape array_shape compatible tuple_shape"),
        ("ir.attribute_values", "ir.attributes.values", "parse_ints"),
        ("reports.schedule_findings", "reports.schedule.findings", "ScheduleFindings"),
        ("reports.module_diff", "reports.diff.comparison", "diff_modules"),
    ],
)
def test_a_name_is_where_it_was(old: str, new: str, names: str) -> None:
    before, now = import_module(f"hloopt.{old}"), import_module(f"hloopt.{new}")
    for name in names.split():
        assert getattr(before, name) is getattr(now, name)
