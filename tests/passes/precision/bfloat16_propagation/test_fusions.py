"""Propagation through fusions, and what stays inside of them."""

from __future__ import annotations

from tests.passes.precision.rounded import MATRIX_UNIT, line, run_rounded, types

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "bfloat16-propagation"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def fused(body: str, after: str, shape: str = "f32[4,4]", kind: str = "kLoop") -> str:
    """A program with a fusion `c` of two operands, the sum `s` and the product `t`."""
    return f"""HloModule m
    f {{ p = f32[4,4] parameter(0)
      q = f32[4,4] parameter(1)
      {body} }}
    ENTRY e {{ a = f32[4,4] parameter(0)
      b = f32[4,4] parameter(1)
      s = f32[4,4] add(a, b)
      t = f32[4,4] multiply(a, b)
      c = {shape} fusion(s, t), kind={kind}, calls=f
      {after} }}"""


AFTER = f"ROOT d = f32[4,4] dot(c, c), {DOT}"
BOTH = f"""c0 = f32[4,4] get-tuple-element(c), index=0
      c1 = f32[4,4] get-tuple-element(c), index=1
      ROOT d = f32[4,4] dot(c0, c1), {DOT}"""
PAIR = "(f32[4,4], f32[4,4])"


def test_types_go_through() -> None:
    module = run_rounded(NAME, fused("ROOT r = f32[4,4] maximum(p, q)", AFTER))
    assert types(module, "c", "r", "p", "q", "s", "t") == ["bf16"] * 6


def test_each_operand_is_on_its_own() -> None:
    body = "n = f32[4,4] negate(q)\n ROOT r = f32[4,4] maximum(p, n)"
    module = run_rounded(NAME, fused(body, AFTER))
    assert types(module, "p", "s", "n", "q", "t") == ["bf16", "bf16", "f32", "f32", "f32"]


def test_an_operand_that_others_need_comes_in_as_it_was() -> None:
    after = AFTER.replace("ROOT d", "k") + "\n ROOT d = f32[4,4] add(k, s)"
    module = run_rounded(NAME, fused("ROOT r = f32[4,4] maximum(p, q)", after))
    assert types(module, "c", "r", "p", "q", "s", "t") == ["bf16"] * 2 + ["f32", "bf16"] * 2


def test_outputs_that_only_some_need_in_full() -> None:
    after = BOTH.replace("dot(c0, c1)", "dot(c0, c0)").replace("ROOT d", "d")
    after += "\n ROOT out = (f32[4,4], f32[4,4]) tuple(d, c1)"
    body = f"n = f32[4,4] negate(q)\n ROOT r = {PAIR} tuple(p, n)"
    module = run_rounded(NAME, fused(body, after, PAIR))
    assert types(module, "c", "r", "s", "n") == ["(bf16, f32)", "(bf16, f32)", "bf16", "f32"]


def test_an_output_that_the_fusion_itself_reads_is_converted() -> None:
    body = f"n = f32[4,4] negate(p)\n m = f32[4,4] add(n, q)\n ROOT r = {PAIR} tuple(n, m)"
    module = run_rounded(NAME, fused(body, BOTH, PAIR))
    assert types(module, "c", "n", "m") == ["(bf16, bf16)", "f32", "bf16"]
    converted, other = module.computations["f"].root.operands
    assert (converted.opcode, converted.operands[0].name, other.name) == (
        Opcode.CONVERT,
        "n",
        "m",
    )


def test_a_root_that_cannot_change_is_converted() -> None:
    body = """u = u32[4,4] bitcast-convert(p)
      v = u32[4,4] bitcast-convert(q)
      w = u32[4,4] xor(u, v)
      ROOT r = f32[4,4] bitcast-convert(w)"""
    module = run_rounded(NAME, fused(body, AFTER))
    root = module.computations["f"].root
    assert line(module, root.name) == "bf16[4,4] convert(r)"
    assert types(module, "c", "r", "s") == ["bf16", "f32", "f32"]


def test_changes_that_stay_inside_are_taken_back() -> None:
    body = f"""n = f32[4,4] add(p, q)
      m = f32[4,4] transpose(n), dimensions={{1,0}}
      ROOT r = f32[4,4] dot(n, m), {DOT}"""
    text = fused(body, "ROOT out = f32[4,4] negate(c)")
    module = run_rounded(NAME, text, changes=False)
    assert types(module, "n", "m") == ["f32", "f32"]


def test_changes_behind_a_parameter_that_changes_stay() -> None:
    body = f"""m = f32[4,4] transpose(p), dimensions={{1,0}}
      n = f32[4,4] negate(q)
      ROOT r = f32[4,4] dot(n, m), {DOT}"""
    module = run_rounded(NAME, fused(body, "ROOT out = f32[4,4] negate(c)"))
    assert types(module, "s", "p", "m", "n", "t") == ["bf16"] * 3 + ["f32"] * 2


def test_fusions_in_fusions() -> None:
    inner = """HloModule m
    g { u = f32[4,4] parameter(0)
      v = f32[4,4] parameter(1)
      ROOT w = f32[4,4] minimum(u, v) }"""
    body = "ROOT r = f32[4,4] fusion(p, q), kind=kLoop, calls=g"
    module = run_rounded(NAME, fused(body, AFTER).replace("HloModule m", inner))
    assert types(module, "c", "r", "w", "u", "v", "s", "t") == ["bf16"] * 7


def test_a_fusion_in_a_fusion_loses_changes_that_stay_inside() -> None:
    inner = f"""HloModule m
    g {{ u = f32[4,4] parameter(0)
      v = f32[4,4] parameter(1)
      k = f32[4,4] transpose(u), dimensions={{1,0}}
      ROOT w = f32[4,4] dot(k, v), {DOT} }}"""
    body = """n = f32[4,4] add(p, q)
      ROOT r = f32[4,4] fusion(n, n), kind=kLoop, calls=g"""
    text = fused(body, "ROOT out = f32[4,4] negate(c)").replace("HloModule m", inner)
    module = run_rounded(NAME, text, changes=False)
    assert types(module, "n", "u", "v", "k") == ["f32"] * 4
    body = "ROOT r = f32[4,4] fusion(p, q), kind=kLoop, calls=g"
    text = fused(body, "ROOT out = f32[4,4] negate(c)").replace("HloModule m", inner)
    assert types(run_rounded(NAME, text), "s", "t", "k", "r") == ["bf16"] * 3 + ["f32"]


def test_without_mixed_support_fusions_stay() -> None:
    support = {**MATRIX_UNIT, "mixed": {"opcodes": ["dot", "add", "multiply", "maximum"]}}
    text = fused("ROOT r = f32[4,4] maximum(p, q)", AFTER)
    run_rounded(NAME, text, support, changes=False)
    text = fused(f"ROOT r = f32[4,4] dot(p, q), {DOT}", "ROOT out = f32[4,4] negate(c)")
    run_rounded(NAME, text, support, changes=False)
    run_rounded(NAME, text)


def test_custom_fusions() -> None:
    text = fused("ROOT r = f32[4,4] maximum(p, q)", AFTER, kind="kCustom")
    assert types(run_rounded(NAME, text), "c", "s", "t") == ["bf16"] * 3
    kernel = """ROOT r = f32[4,4] custom-call(p, q), custom_call_target="kernel" """
    text = fused(kernel, AFTER, kind="kCustom")
    module = parse_module(text)
    assert not create_pass(NAME, {"float_support": MATRIX_UNIT}).run(module, PassContext(NAME))


def test_fusions_that_update_in_place() -> None:
    body = """zero = s32[] constant(0)
      ROOT r = f32[4,4] dynamic-update-slice(p, q, zero, zero)"""
    module = run_rounded(NAME, fused(body, AFTER))
    assert types(module, "c", "p", "s", "t") == ["bf16"] * 4
    after = AFTER.replace("ROOT d", "k") + "\n ROOT d = f32[4,4] add(k, s)"
    run_rounded(NAME, fused(body, after), changes=False)


def test_outputs_that_lie_over_operands_have_their_type() -> None:
    body = f"n = f32[4,4] negate(p)\n ROOT r = {PAIR} tuple(n, q)"
    after = f"""c0 = f32[4,4] get-tuple-element(c), index=0
      c1 = f32[4,4] get-tuple-element(c), index=1
      d = f32[4,4] dot(c0, c1), {DOT}
      ROOT out = f32[4,4] add(d, c1)"""
    text = fused(body, after, PAIR)
    module = run_rounded(NAME, text)
    assert types(module, "c", "p") == ["(bf16, f32)", "f32"]
    aliased = text.replace("calls=f", "calls=f, output_to_operand_aliasing={{0}: (0, {})}")
    module = run_rounded(NAME, aliased, changes=False)
    assert types(module, "c", "p") == ["(f32, f32)", "f32"]
    # The other way round: a parameter that only a product reads, under a result in f32.
    body = f"n = f32[4,4] dot(p, q), {DOT}\n ROOT r = {PAIR} tuple(n, q)"
    after = "ROOT out = f32[4,4] get-tuple-element(c), index=0"
    text = fused(body, after, PAIR)
    assert types(run_rounded(NAME, text), "p", "s") == ["bf16", "bf16"]
    aliased = text.replace("calls=f", "calls=f, output_to_operand_aliasing={{0}: (0, {})}")
    module = run_rounded(NAME, aliased)
    assert types(module, "p", "s", "q") == ["f32", "f32", "bf16"]
