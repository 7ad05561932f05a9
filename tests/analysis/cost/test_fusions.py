"""The cost of a fusion: what it reads, and what that would be without it."""

from __future__ import annotations

import pytest
from tests.analysis.cost.modules import named

from hloopt.analysis.cost import Cost, CostAnalysis
from hloopt.text import parse_module

FUSIONS = [
    # parameters, fused instructions, result, bytes of each operand, bytes written
    ("f32[100];f32[100]", "c = f32[100] add(a, b)  ROOT r = f32[100] multiply(c, a)", [400, 400]),
    ("f32[100]", "k = f32[100] constant({...})  ROOT r = f32[100] multiply(a, k)", [400]),
    (
        "f32[100]",
        "s = f32[10] slice(a), slice={[0:10]}  t = f32[10] slice(a), slice={[5:15]}  "
        "ROOT r = f32[10] add(s, t)",
        [80],
    ),
    (
        "f32[100]",
        "s = f32[10] slice(a), slice={[0:10]}  n = f32[100] negate(a)  "
        "t = f32[10] slice(n), slice={[5:15]}  ROOT r = f32[10] add(s, t)",
        [440],
    ),
    (
        "f32[100];f32[10];s32[]",
        "n = f32[10] negate(b)  ROOT r = f32[100] dynamic-update-slice(a, n, c)",
        [0, 40, 4],
    ),
    (
        "(f32[100], f32[50]);f32[10]",
        "x = f32[100] get-tuple-element(a), index=0  s = f32[10] slice(x), slice={[0:10]}  "
        "ROOT r = f32[10] add(s, b)",
        [40 + 16, 40],
    ),
    (
        "f32[100]",
        "s = f32[50,2] reshape(a)  t = f32[10,10] reshape(a)  "
        "ROOT r = (f32[50,2], f32[10,10]) tuple(s, t)",
        [800],
    ),
    ("f32[100];f32[7]", "ROOT r = f32[100] negate(a)", [400, 0]),
]


@pytest.mark.parametrize(("parameters", "body", "read"), FUSIONS)
def test_a_fusion_reads_what_its_instructions_use(
    parameters: str, body: str, read: list[int]
) -> None:
    names = named(parameters.split(";"))
    lines = "  ".join(f"{name} = {shape} parameter({i})" for i, (name, shape) in enumerate(names))
    shape = body.partition("ROOT r = ")[2]
    shape = shape[: shape.index(")") + 1] if shape.startswith("(") else shape.split()[0]
    module = parse_module(
        f"fused {{ {lines}  {body} }}\nENTRY e {{ {lines}  ROOT r = {shape} "
        f"fusion({', '.join(name for name, _ in names)}), kind=kLoop, calls=fused }}"
    )
    assert list(CostAnalysis(module).of(module.entry.root).operand_bytes) == read


def fused(*bodies: str) -> Cost:
    """The cost of the fusion of `f32[100]` that the last body is; the others are nested in it."""
    texts = [f"f{i} {{ {body} }}" for i, body in enumerate(bodies)]
    module = parse_module(
        "\n".join(texts) + "\nENTRY e { a = f32[100] parameter(0)  ROOT r = f32[10] fusion(a), "
        f"kind=kLoop, calls=f{len(bodies) - 1} }}"
    )
    return CostAnalysis(module).of(module.entry.root)


def test_what_a_nested_fusion_passes_on_is_read_as_far_as_it_is_used() -> None:
    inner = "a = f32[100] parameter(0)  ROOT n = f32[100] negate(a)"
    outer = "a = f32[100] parameter(0)  f = f32[100] fusion(a), kind=kLoop, calls=f0  "
    assert fused(inner, outer + "ROOT s = f32[10] slice(f), slice={[0:10]}").bytes_read == 40
    used = inner.replace("ROOT n", "m").replace("negate(a)", "tanh(a)")
    used += "  ROOT n = f32[100] negate(m)"
    assert fused(used, outer + "ROOT s = f32[10] slice(f), slice={[0:10]}").bytes_read == 400


def test_unfused_bytes_are_those_of_the_fused_instructions_one_by_one() -> None:
    cost = fused(
        "a = f32[100] parameter(0)  n = f32[100] negate(a)  e = f32[100] exponential(n)  "
        "ROOT s = f32[10] slice(e), slice={[0:10]}"
    )
    assert (cost.flops, cost.transcendentals) == (100, 100)
    assert (cost.bytes_accessed, cost.unfused_bytes) == (440, 800 + 800 + 80)
