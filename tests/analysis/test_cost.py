"""What instructions cost; figures are those XLA gives for the same text."""

from __future__ import annotations

from hloopt.analysis.cost import CostAnalysis
from hloopt.text import parse_module


def test_a_dot_is_a_multiply_add_per_result_and_contracted_element() -> None:
    module = parse_module(
        "ENTRY e { a = f32[10,20] parameter(0) b = f32[20,30] parameter(1) "
        "ROOT r = f32[10,30] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
    )
    cost = CostAnalysis(module).of(module.entry.root)
    assert (cost.flops, cost.bytes_accessed) == (12000, 4400)
    assert CostAnalysis(module).module().flops == 12000
