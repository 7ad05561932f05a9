"""The least time of instructions on a target."""

from __future__ import annotations

import pytest

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.roofline import Bound, Roofline
from hloopt.targets import Target
from hloopt.text import parse_module

TARGET = Target(
    name="t",
    title="t",
    matrix={"bf16": 1000.0, "f32": 500.0},
    vector={"f32": 10.0},
    memory_size=100,
    memory_bandwidth=100.0,
    links=(),
    sources=(),
)


def bound(text: str, target: Target = TARGET) -> Bound:
    module = parse_module(text)
    return Roofline(CostAnalysis(module), target).of(module.entry.root)


def dot(kind: str) -> str:
    return (
        f"a = {kind}[5,10] parameter(0)  b = {kind}[10,20] parameter(1)  ROOT r = {kind}[5,20] "
        "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )


@pytest.mark.parametrize(("kind", "seconds"), [("bf16", 2.0), ("f32", 4.0)])
def test_a_dot_runs_at_the_rate_of_its_type(kind: str, seconds: float) -> None:
    size = {"bf16": 2, "f32": 4}[kind]
    found = bound(f"ENTRY e {{ {dot(kind)} }}")
    assert found == Bound(seconds, size * (50 + 200 + 100) / 100)
    assert found.seconds == max(found)


def test_other_arithmetic_runs_at_the_vector_rate_or_takes_no_time() -> None:
    text = "ENTRY e { a = f32[100] parameter(0)  ROOT r = f32[100] exponential(a) }"
    assert bound(text) == (10.0, 8.0)
    assert bound(text).is_compute
    without = Target("t", "t", TARGET.matrix, {}, 100, 100.0, (), ())
    assert bound(text, without) == (0.0, 8.0)


def test_a_fusion_runs_each_instruction_at_its_own_rate() -> None:
    inner = dot("f32").replace("ROOT r", "r") + "  ROOT n = f32[5,20] negate(r)"
    nested = (
        "a = f32[5,10] parameter(0)  b = f32[10,20] parameter(1)  "
        "f = f32[5,20] fusion(a, b), kind=kLoop, calls=inner  ROOT n = f32[5,20] negate(f)"
    )
    entry = nested.partition("f = ")[0] + "ROOT f = f32[5,20] fusion(a, b), kind=kLoop, calls="
    fused = f"inner {{ {inner} }}\nouter {{ {nested} }}\n"
    assert bound(f"inner {{ {inner} }}\nENTRY e {{ {entry}inner }}").compute == 4.0 + 10.0
    assert bound(f"{fused}ENTRY e {{ {entry}outer }}").compute == 4.0 + 10.0 + 10.0
