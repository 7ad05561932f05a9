"""The rule about values that are widened before they have to be."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.analysis.cost import CostAnalysis
from hloopt.checks.results import Verdict
from hloopt.text import parse_module

WIDE = """HloModule m, is_scheduled=true
widen {{
  a = {narrow}[1024] parameter(0)
  ROOT w = {wide}[1024] convert(a)
}}
two {{
  a2 = bf16[1024] parameter(0)
  w2 = f32[1024] convert(a2)
  ROOT b2 = f32[32,32] bitcast(w2)
}}
other {{
  a3 = bf16[1024] parameter(0)
  w3 = f32[1024] convert(a3)
  ROOT n3 = f32[1024] negate(w3)
}}
read {{
  r = {wide}[1024] parameter(0)
  ROOT m = {wide}[1024] negate(r)
}}
update {{
  t = f32[1024] parameter(0)
  u = f32[8] parameter(1)
  z = s32[] constant(0)
  ROOT d = f32[1024] dynamic-update-slice(t, u, z)
}}
ENTRY e {{
  p = {narrow}[1024] parameter(0)
  q = f32[8] parameter(1)
  v = {value}
  {root}
}}
"""
FUSED = "f32[1024] fusion(p), kind=kLoop, calls=widen"
READ = "ROOT o = f32[1024] fusion(v), kind=kLoop, calls=read"


def module(value: str = FUSED, root: str = READ, narrow: str = "bf16", wide: str = "f32") -> str:
    return WIDE.format(value=value, root=root, narrow=narrow, wide=wide)


def test_a_value_is_widened_before_it_is_read_and_the_bytes_of_that() -> None:
    (found,) = violations("HLL305", module(), size=4096)
    assert found.message == (
        "%v writes f32 what is bf16 and is widened by its last operation; %o could widen it "
        "(4.0 KiB moved)"
    )
    narrow = module("bf16[1024] fusion(p), kind=kLoop, calls=keep").replace(
        "read {\n  r = f32[1024] parameter(0)",
        "keep {\n  k = bf16[1024] parameter(0)\n  ROOT l = bf16[1024] copy(k)\n}\n"
        "read {\n  s = bf16[1024] parameter(0)\n  r = f32[1024] convert(s)",
    )
    costs = [CostAnalysis(parse_module(text)).module() for text in (module(), narrow)]
    assert found.impact.moved == costs[0].bytes_accessed - costs[1].bytes_accessed
    assert not violations("HLL305", module(), size=4097)


@pytest.mark.parametrize(
    "text",
    [
        module("f32[1024] convert(p)"),
        module(root="ROOT o = f32[1024] negate(v)"),
        module(root="ROOT o = f32[512] slice(v), slice={[0:512]}"),
        module(root="b = f32[32,32] bitcast(v)\n  ROOT o = f32[32,32] negate(b)"),
        module("f32[32,32] fusion(p), kind=kLoop, calls=two", "ROOT o = f32[32,32] negate(v)"),
        module(narrow="pred"),
        module(narrow="s8"),
    ],
)
def test_kernels_that_end_with_a_convert_and_fusible_readers(text: str) -> None:
    assert found_names("HLL305", text, size=1) == ["v"]


@pytest.mark.parametrize(
    "text",
    [
        # no convert, or none to more bits, at the end
        module("f32[1024] fusion(p), kind=kLoop, calls=other"),
        module(narrow="f32", wide="f32", value="f32[1024] copy(p)"),
        module(
            narrow="f32",
            wide="bf16",
            value="bf16[1024] fusion(p), kind=kLoop, calls=widen",
            root="ROOT o = bf16[1024] negate(v)",
        ),
        module(narrow="s32"),
        # a result, or nobody reads it
        module(root="n = f32[1024] negate(v)\n  ROOT t = (f32[1024], f32[1024]) tuple(n, v)"),
        module(root="ROOT o = f32[8] negate(q)"),
        module(root="ROOT b = f32[32,32] bitcast(v)"),
        # readers that need it in memory, one of two
        module(root='ROOT o = f32[1024] custom-call(v), custom_call_target="f"'),
        module(
            root="n = f32[1024] negate(v)\n"
            '  c = f32[1024] custom-call(v), custom_call_target="f"\n'
            "  ROOT t = (f32[1024], f32[1024]) tuple(n, c)"
        ),
        # a reader that writes over it
        module(root="ROOT o = f32[1024] fusion(v, q), kind=kLoop, calls=update"),
    ],
)
def test_other_kernels(text: str) -> None:
    assert not violations("HLL305", text, size=1)


def test_each_reader_reads_the_wide_value() -> None:
    root = "n = f32[1024] negate(v)\n  k = f32[1024] abs(v)\n  ROOT s = f32[1024] add(n, k)"
    (found,) = violations("HLL305", module(root=root), size=1)
    assert found.impact.moved == 3 * 2048
    assert [each.instruction for each in found.related] == ["n", "k"]


def test_before_fusion_there_is_no_verdict() -> None:
    text = module("f32[1024] convert(p)", "n = f32[1024] negate(v)\n  ROOT a = f32[1024] abs(n)")
    found = check("HLL305", text.replace(", is_scheduled=true", ""))
    assert found.verdict is Verdict.NONE
    assert found.reason.startswith("the module is not fused")
