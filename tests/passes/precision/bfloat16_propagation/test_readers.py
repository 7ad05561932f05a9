"""Which readers of a value let it become bf16."""

from __future__ import annotations

import pytest
from tests.passes.precision.rounded import MATRIX_UNIT, reasons, run_rounded, types

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "bfloat16-propagation"


def program(lines: str, root: str = "d") -> str:
    """A program on two matrices; `s` is their sum, and `d` a product that reads `x`."""
    if "zero" in lines:
        lines = f"zero = f32[] constant(0)\n {lines}"
    return f"""HloModule m
    largest {{ u = f32[] parameter(0) v = f32[] parameter(1) ROOT w = f32[] maximum(u, v) }}
    total {{ u = f32[] parameter(0) v = f32[] parameter(1) ROOT w = f32[] add(u, v) }}
    less {{ u = f32[] parameter(0) v = f32[] parameter(1)
      ROOT w = pred[] compare(u, v), direction=LT }}
    ENTRY e {{
      a = f32[4,4] parameter(0)
      b = f32[4,4] parameter(1)
      i = s32[] parameter(2)
      s = f32[4,4] add(a, b)
      {lines}
      d = f32[4,4] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      ROOT out = f32[4,4] add(d, {root})
    }}"""


def test_what_a_product_reads_becomes_bf16_and_its_result_does_not() -> None:
    module = run_rounded(NAME, program("x = f32[4,4] negate(s)"))
    assert types(module, "x", "s", "d", "a") == ["bf16", "f32", "f32", "f32"]


def test_one_reader_that_needs_it_all_keeps_it() -> None:
    text = program("x = f32[4,4] negate(s)", root="x")
    run_rounded(NAME, text, changes=False)
    both = program("x = f32[4,4] negate(s)\n y = f32[4,4] exponential(x)", root="y")
    assert reasons(NAME, both) == ["x: stays f32: %y reads all of it"]


@pytest.mark.parametrize(
    "moved",
    [
        "f32[4,4] abs(s)",
        "f32[4,4] transpose(s), dimensions={1,0}",
        "f32[4,4] reverse(s), dimensions={0}",
        "f32[4,4] maximum(s, b)",
        "f32[4,4] minimum(b, s)",
        "f32[4,4] clamp(b, s, a)",
        "f32[4,4] copy(s)",
        "f32[4,4] opt-barrier(s)",
        "f32[4,4] reduce-window(s, zero), window={size=2x2 pad=0_1x0_1}, to_apply=largest",
        "f32[4,4] sort(s), dimensions={1}, to_apply=less",
        "f32[4,4] all-gather(s), replica_groups={}, dimensions={0}",
        "f32[4,4] collective-permute(s), source_target_pairs={{0,0}}",
        "f32[4,4] bitcast(s)",
    ],
)
def test_operations_that_pass_elements_on(moved: str) -> None:
    module = run_rounded(NAME, program(f"x = {moved}"))
    assert types(module, "x", "s") == ["bf16", "bf16"]


@pytest.mark.parametrize(
    "made",
    [
        "f32[4,4] negate(s)",
        "f32[4,4] multiply(s, s)",
        "f32[4,4] reduce-window(s, zero), window={size=2x2 pad=0_1x0_1}, to_apply=total",
        "f32[4,4] all-reduce(s), replica_groups={}, to_apply=largest",
        "f32[4,4] reduce-precision(s), exponent_bits=8, mantissa_bits=10",
    ],
)
def test_operations_that_make_new_elements(made: str) -> None:
    module = run_rounded(NAME, program(f"x = {made}"))
    assert types(module, "x", "s") == ["bf16", "f32"]


@pytest.mark.parametrize(
    ("lines", "low"),
    [
        ("z = f32[4,4] negate(b)\n x = f32[4,4] dynamic-slice(z, i, i), "
         "dynamic_slice_sizes={4,4}", "z"),
        ("z = f32[4,4] negate(b)\n x = f32[4,4] dynamic-update-slice(s, z, i, i)", "z"),
        ("z = f32[4,4] negate(b)\n x = f32[4,4] dynamic-update-slice(z, s, i, i)", "z"),
        ("c = pred[4,4] compare(s, b), direction=LT\n z = f32[4,4] negate(b)\n"
         "x = f32[4,4] select(c, a, z)", "z"),
        ("z = f32[4,8] concatenate(a, b), dimensions={1}\n"
         "x = f32[4,4] slice(z), slice={[0:4], [2:6]}", "z"),
        ("z = f32[4] reduce(s, zero), dimensions={1}, to_apply=largest\n"
         "x = f32[4,4] broadcast(z), dimensions={0}", "z"),
        ("z = f32[2,2] slice(s), slice={[0:2], [0:2]}\n"
         "x = f32[4,4] pad(z, zero), padding=1_1x1_1", "z"),
    ],
)  # fmt: skip
def test_operands_that_are_passed_on(lines: str, low: str) -> None:
    module = run_rounded(NAME, program(lines))
    assert types(module, "x", low) == ["bf16", "bf16"]


def test_a_convert_to_bf16_reads_bf16() -> None:
    text = program("x = bf16[4,4] convert(s)").replace("f32[4,4] dot", "bf16[4,4] dot")
    text = text.replace("ROOT out = f32[4,4] add", "ROOT out = bf16[4,4] add")
    module = run_rounded(NAME, text, {"operand": True, "output": True, "mixed": True})
    assert types(module, "s") == ["bf16"]
    assert "x" not in [i.name for i in module.instructions()]


def test_a_convert_to_another_type_reads_all_of_it() -> None:
    text = program("y = f64[4,4] convert(s)\n x = f32[4,4] convert(y)")
    module = run_rounded(NAME, text)
    assert types(module, "x", "s") == ["bf16", "f32"]


def test_only_the_operands_that_a_rule_names_are_rounded() -> None:
    support = {**MATRIX_UNIT, "operand_effectively_low": {"operands": {"dot": [1]}}}
    lines = "x = f32[4,4] negate(s)\n y = f32[4,4] negate(b)"
    text = program(lines).replace("dot(x, x)", "dot(x, y)")
    module = run_rounded(NAME, text, support)
    assert types(module, "x", "y") == ["f32", "bf16"]


def test_a_side_effect_reads_all_of_it() -> None:
    lines = """x = f32[4,4] negate(s)
      y = f32[4,4] all-gather(x), channel_id=1, replica_groups={{0}}, dimensions={0},
        use_global_device_ids=true
      z = f32[4,4] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    module = run_rounded(NAME, program(lines, root="z"), changes=False)
    assert types(module, "x", "y") == ["f32", "f32"]


def test_a_channel_between_partitions_of_one_program_is_not_a_side_effect() -> None:
    lines = """part = f32[2,4] slice(s), slice={[0:2], [0:4]}
      x = f32[4,4] all-gather(part), channel_id=1, replica_groups={{0,1}}, dimensions={0},
        use_global_device_ids=true"""
    text = program(lines)
    module = run_rounded(NAME, text.replace("HloModule m", "HloModule m, num_partitions=2"))
    assert types(module, "x", "part", "s") == ["bf16"] * 3


@pytest.mark.parametrize("rule", ["output", "mixed"])
def test_an_operation_that_cannot_give_bf16_stays(rule: str) -> None:
    support = {**MATRIX_UNIT, rule: {"opcodes": ["dot", "transpose"]}}
    lines = "y = f32[4,4] negate(s)\n x = f32[4,4] transpose(y), dimensions={1,0}"
    module = run_rounded(NAME, program(lines), support)
    assert types(module, "x", "y") == ["bf16", "f32"]


def test_where_types_must_not_meet_all_operands_have_to_follow() -> None:
    support = {**MATRIX_UNIT, "mixed": {"opcodes": ["dot", "add"]}}
    lines = "x = f32[4,4] maximum(s, b)\n"
    module = run_rounded(NAME, program(lines), support)
    assert types(module, "x", "s") == ["bf16", "bf16"]
    lines = "y = f32[4,4] multiply(s, b)\n x = f32[4,4] maximum(s, y)"
    run_rounded(NAME, program(lines), support, changes=False)


def test_tuples_are_candidates_whatever_they_hold() -> None:
    support = {**MATRIX_UNIT, "mixed": {"opcodes": ["dot", "add"]}}
    lines = """m = f32[4,4] multiply(a, b)
      both = (f32[4,4], f32[4,4]) tuple(s, m)
      k = f32[4,4] get-tuple-element(both), index=0
      n = f32[4,4] get-tuple-element(both), index=1
      x = f32[4,4] transpose(k), dimensions={1,0}"""
    module = run_rounded(NAME, program(lines, root="n"), support)
    assert types(module, "x", "s", "m") == ["bf16", "bf16", "f32"]


def test_what_is_bf16_is_a_candidate_whatever_it_is_made_of() -> None:
    support = {**MATRIX_UNIT, "mixed": {"opcodes": ["dot", "add"]}}
    lines = """m = f32[4,4] multiply(a, b)
      c = bf16[4,4] convert(m)
      k = f32[4,4] convert(c)
      x = f32[4,4] transpose(k), dimensions={1,0}"""
    module = run_rounded(NAME, program(lines), support)
    assert types(module, "x", "m") == ["bf16", "f32"]


def test_buffers_stay() -> None:
    text = """HloModule m
    ENTRY e {
      a = f32[4,4] parameter(0)
      n = b(f32[4,4]) custom-call(), custom_call_target="AllocateBuffer"
      u = b(f32[4,4]) custom-call(n, a), custom_call_target="fill",
        output_to_operand_aliasing={{}: (0, {})}
      x = f32[4,4] custom-call(u), custom_call_target="Unpin"
      ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    module = parse_module(text)
    assert not create_pass(NAME, {"float_support": MATRIX_UNIT}).run(module, PassContext())


def test_constants_are_converted() -> None:
    lines = "x = f32[2,2] constant({{1, 1.00390625}, {nan, -inf}})"
    text = program(lines).replace("f32[4,4] dot", "f32[2,2] dot")
    text = text.replace("ROOT out = f32[4,4]", "ROOT out = f32[2,2]")
    module = run_rounded(NAME, text)
    constant = module.entry["x"]
    assert constant.payload.split() == ["{", "{", "1,", "1", "},", "{", "nan,", "-inf", "}", "}"]
    assert constant.shape.type_name == "bf16"


def test_constants_whose_values_were_left_out() -> None:
    text = program("x = f32[4,4] constant({...})")
    module = parse_module(text)
    assert create_pass(NAME, {"float_support": MATRIX_UNIT}).run(module, PassContext())
    assert module.entry["x"].payload == "{...}"
    assert module.entry["x"].shape.type_name == "bf16"


def test_other_types_than_bf16_and_f32() -> None:
    support = {**MATRIX_UNIT, "low": "f16", "high": "f64", "operand_effectively_low": False}
    text = """HloModule m
    ENTRY e {
      a = f64[4] parameter(0)
      s = f64[4] add(a, a)
      t = f32[4] convert(s)
      u = f64[4] multiply(a, a)
      v = f16[4] convert(u)
      ROOT out = (f32[4], f16[4]) tuple(t, v)
    }"""
    module = run_rounded(NAME, text, support, reads=())
    assert types(module, "s", "u") == ["f64", "f16"]


def test_scalars_and_empty_arrays() -> None:
    text = """HloModule m
    ENTRY e {
      a = f32[] parameter(0)
      b = f32[0] parameter(1)
      s = f32[] add(a, a)
      t = f32[0] add(b, b)
      u = bf16[] convert(s)
      v = bf16[0] convert(t)
      ROOT out = (bf16[], bf16[0]) tuple(u, v)
    }"""
    module = run_rounded(NAME, text)
    assert types(module, "s", "t") == ["bf16", "bf16"]


def test_the_default_backend_only_moves_bf16() -> None:
    text = """HloModule m
    ENTRY e {
      a = (f32[4], f32[4]) parameter(0)
      x = f32[4] get-tuple-element(a), index=0
      y = f32[4] add(x, x)
      u = (f32[4]) tuple(y)
      t = ((f32[4]), f32[4]) tuple(u, y)
      v = f32[4] get-tuple-element(t), index=1
      ROOT out = bf16[4] convert(v)
    }"""
    run_rounded(NAME, text, {}, changes=False)


def test_a_domain_passes_values_on() -> None:
    text = """HloModule m
    ENTRY e {
      a = f32[4,4] parameter(0)
      t = f32[4,4] transpose(a), dimensions={1,0}
      n = f32[4,4] negate(a)
      both = (f32[4,4], f32[4,4]) tuple(t, n)
      x = f32[4,4] get-tuple-element(both), index=0
      y = f32[4,4] get-tuple-element(both), index=1
      g = f32[4,4] domain(x), domain={kind="sharding", entry={maximal device=0},
        exit={maximal device=1}}
      ROOT d = f32[4,4] dot(g, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    module = run_rounded(NAME, text)
    assert types(module, "t", "n", "g") == ["bf16", "bf16", "bf16"]


def test_the_readers_of_a_reader() -> None:
    lines = """y = f32[4,4] maximum(s, b)
      z = f32[4,4] transpose(y), dimensions={1,0}
      x = f32[4,4] minimum(z, a)
      w = f32[4,4] exponential(z)"""
    module = run_rounded(NAME, program(lines.replace("x =", "k =") + "\n x = f32[4,4] add(k, w)"))
    assert types(module, "x", "k", "s") == ["bf16", "f32", "f32"]
    assert Opcode.CONVERT not in [i.opcode for i in module.instructions()]
