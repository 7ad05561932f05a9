"""What targets do in types of low precision, as float support of passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.diagnostics import PipelineError
from hloopt.ir import Instruction, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.options import option_infos
from hloopt.pass_framework.registry import create_pass, find_pass
from hloopt.passes.precision.float_support import FloatSupport, OpcodeRule, support_of
from hloopt.text import parse_module

HEADER = """HloModule m
sum { x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT r = bf16[] add(x, y) }
least { x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT r = bf16[] minimum(x, y) }
two { a = bf16[] parameter(0) b = bf16[] parameter(1) c = bf16[] parameter(2)
  d = bf16[] parameter(3) x = bf16[] add(a, c) y = bf16[] add(b, d)
  ROOT r = (bf16[], bf16[]) tuple(x, y) }
"""
ROWS = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
PRODUCT = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"


def instruction(line: str) -> Instruction:
    return parse_module(
        f"{HEADER}ENTRY e {{ b = bf16[4] parameter(0) f = f32[4] parameter(1)\n"
        f"s = bf16[] parameter(2) e = f8e5m2[4] parameter(3)\n"
        f"p = f8e5m2[4,32] parameter(4) q = bf16[4,1] parameter(5)\n"
        f"r = f32[4,1] parameter(6) ROOT it = {line} }}"
    ).entry.root


@pytest.mark.parametrize(
    ("line", "targets"),
    [
        ("bf16[4] add(b, b)", ["h100_sxm", "b200"]),
        ("bf16[4] maximum(b, b)", ["a100_sxm_80", "h100_sxm", "b200"]),
        ("bf16[4] divide(b, b)", []),
        (f"bf16[] dot(b, b), {PRODUCT}", ["a100_sxm_80", "h100_sxm", "b200"]),
        ("bf16[] reduce(b, s), dimensions={0}, to_apply=sum", ["h100_sxm", "b200"]),
        (
            "bf16[] reduce(b, s), dimensions={0}, to_apply=least",
            ["a100_sxm_80", "h100_sxm", "b200"],
        ),
        ("(bf16[], bf16[]) reduce(b, b, s, s), dimensions={0}, to_apply=two", []),
        ("bf16[4] opt-barrier(b)", ["a100_sxm_80", "cpu", "h100_sxm", "b200"]),
    ],
)
def test_operations_are_native_to_some_targets(line: str, targets: list[str]) -> None:
    found = instruction(line)
    for target in ("a100_sxm_80", "cpu", "h100_sxm", "b200"):
        support = support_of(None, target)
        assert support.supports_operand(found, 0) is (target in targets)
        assert support.supports_output(found) is (target in targets)


@pytest.mark.parametrize(
    ("line", "mixes"),
    [
        (f"f32[] dot(b, b), {PRODUCT}", True),
        (f"f32[] dot(b, f), {PRODUCT}", False),
        (f"bf16[] dot(f, f), {PRODUCT}", False),
        ("(bf16[4], f32[4]) tuple(b, f)", True),
        ("f32[4] add(b, b)", False),
        (f"f32[4,4] scaled-dot(p, p, q, r), {ROWS}", True),
        (f"bf16[4,4] scaled-dot(p, p, r, r), {ROWS}", True),
    ],
)
def test_products_of_low_operands_may_give_the_high_type(line: str, mixes: bool) -> None:
    found = instruction(line)
    assert support_of(None, "h100_sxm").supports_mixed(found) is mixes
    never = support_of(FloatSupport(mixed=False), "h100_sxm")
    assert not never.supports_mixed(found)


def test_a_rule_that_is_given_goes_before_the_target() -> None:
    divide, add = instruction("bf16[4] divide(b, b)"), instruction("bf16[4] add(b, b)")
    support = support_of(FloatSupport(operand=OpcodeRule(opcodes=(Opcode.DIVIDE,))), "h100_sxm")
    assert [support.supports_operand(each, 0) for each in (divide, add)] == [True, False]
    assert [support.supports_output(each) for each in (divide, add)] == [False, True]
    nothing = support_of(FloatSupport(output=False), "h100_sxm")
    assert not nothing.supports_output(add)


def test_the_type_is_that_of_the_float_support() -> None:
    support = support_of(FloatSupport(low="f8e5m2", high="f16"), "h100_sxm")
    assert support.supports_operand(instruction("f8e5m2[4] copy(e)"), 0)
    assert not support.supports_operand(instruction("f8e5m2[4] add(e, e)"), 0)
    other = support_of(FloatSupport(low="s16", high="s32"), "h100_sxm")
    assert not other.supports_operand(instruction("bf16[4] add(b, b)"), 0)


@pytest.mark.parametrize(
    "name", ["float-normalization", "bfloat16-propagation", "bfloat16-conversion-folding"]
)
def test_a_target_of_which_nothing_is_known_is_refused(name: str) -> None:
    module = parse_module(f"{HEADER}ENTRY e {{ ROOT b = bf16[4] parameter(0) }}")
    expected = "which types are native to target 'tpu_v5p' is not known"
    with pytest.raises(PipelineError, match=expected):
        create_pass(name, {"target": "tpu_v5p"}).run(module, PassContext())
    with pytest.raises(PipelineError, match="no target 'h100'"):
        create_pass(name, {"target": "h100"}).run(module, PassContext())
    assert not create_pass(name, {"target": "h100_sxm"}).run(module, PassContext())


def test_passes_go_by_a_target_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(
        "title: our chip\nmatrix_teraflops: {f32: 1}\nmatrix_source: measured\n"
        "memory: {gigabytes: 8, gigabytes_per_second: 100}\nmemory_source: data sheet\n"
        "native_types: {source: manual, types: {bf16: {opcodes: [divide]}}}\n"
    )
    entry = "ENTRY e { b = bf16[4] parameter(0) d = bf16[4] divide(b, b)"
    for root, changed in (("bf16[4] divide(d, b)", False), ("bf16[4] add(d, b)", True)):
        module = parse_module(f"HloModule m {entry} ROOT a = {root} }}")
        made = create_pass("float-normalization-bf16", {"target": str(path)})
        assert made.run(module, PassContext()) is changed
        assert module.entry.root.opcode is (Opcode.CONVERT if changed else Opcode.DIVIDE)


def test_converts_fold_into_what_the_target_does_in_the_low_type() -> None:
    text = (
        f"{HEADER}ENTRY e {{ b = bf16[4] parameter(0) w = f32[4] convert(b)\n"
        "a = f32[4] OP(w, w) ROOT r = bf16[4] convert(a) }"
    )
    for opcode, changed in (("add", True), ("divide", False)):
        module = parse_module(text.replace("OP", opcode))
        made = create_pass("bfloat16-conversion-folding", {"target": "h100_sxm"})
        assert made.run(module, PassContext()) is changed


@pytest.mark.parametrize(
    "name", ["bfloat16-conversion-folding", "bfloat16-propagation", "float-normalization"]
)
def test_passes_say_what_a_target_is_for(name: str) -> None:
    (info,) = (i for i in option_infos(find_pass(name)) if i.name == "target")
    assert info.doc == "hardware whose native types say what float_support leaves out"
