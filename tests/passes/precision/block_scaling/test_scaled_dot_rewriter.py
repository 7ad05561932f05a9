"""Corners of replacing scaled-dots by dots."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, shown

from hloopt.diagnostics import PassRefused
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

PASS = "scaled-dot-rewriter"
MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"


def scaled_dot(shapes: str, result: str, attributes: str = MATRICES) -> str:
    """A module of one scaled-dot: shapes of both sides, then of their scales."""
    lines = [f"p{n} = {shape} parameter({n})" for n, shape in enumerate(shapes.split())]
    root = f"ROOT d = {result} scaled-dot(p0, p1, p2, p3), {attributes}"
    return "\n".join(["HloModule m", "ENTRY e {", *lines, root, "}"])


def rewritten(text: str) -> Module:
    """The module without scaled-dots, which computes the same."""
    module = run_checked(PASS, text)
    assert not list(module.instructions(Opcode.SCALED_DOT))
    assert Reference(parse_module(text), RunSettings(seeds=1)).compare(module) is None
    return module


def steps(text: str) -> list[str]:
    return [line for line in shown(rewritten(text).entry) if " parameter(" not in line]


def test_the_steps_of_a_product() -> None:
    text = scaled_dot("f8e4m3fn[4,64] bf16[5,64] f8e8m0fnu[4,2] bf16[5,1]", "f32[4,5]")
    assert steps(text) == [
        "convert = bf16[4,64] convert(p0)",
        "convert.1 = bf16[4,2] convert(p2)",
        "broadcast = bf16[4,2,32] broadcast(convert.1), dimensions={0,1}",
        "reshape = bf16[4,64] reshape(broadcast)",
        "multiply = bf16[4,64] multiply(convert, reshape)",
        "broadcast.1 = bf16[5,1,64] broadcast(p3), dimensions={0,1}",
        "reshape.1 = bf16[5,64] reshape(broadcast.1)",
        "multiply.1 = bf16[5,64] multiply(p1, reshape.1)",
        f"ROOT dot = f32[4,5] dot(multiply, multiply.1), {MATRICES}",
    ]


@pytest.mark.parametrize(
    ("shapes", "result", "types"),
    [
        ("f8e4m3fn f8e5m2 f8e8m0fnu f8e8m0fnu", "f32", "bf16 bf16 f32"),
        ("f8e4m3fn f8e4m3fn f8e8m0fnu f8e8m0fnu", "bf16", "bf16 bf16 bf16"),
        ("f8e4m3fn f8e4m3fn f8e8m0fnu f8e8m0fnu", "f16", "bf16 bf16 f32"),
        ("f8e4m3fn f8e4m3fn f8e8m0fnu f8e8m0fnu", "f8e4m3fn", "bf16 bf16 bf16"),
        ("f8e4m3fn f8e4m3fn f8e8m0fnu f8e8m0fnu", "f64", "bf16 bf16 f64"),
        ("f16 f16 f16 f16", "bf16", "f16 f16 f32"),
        ("bf16 f16 bf16 f16", "bf16", "f32 f32 f32"),
        ("bf16 bf16 f16 bf16", "bf16", "f32 f32 f32"),
        ("f32 bf16 f32 bf16", "bf16", "f32 f32 f32"),
        ("f64 f64 f64 f64", "f32", "f64 f64 f64"),
        ("s4 s8 bf16 s8", "f32", "bf16 bf16 f32"),
        ("s32 s32 s8 s8", "s32", "s32 s32 s32"),
        ("s32 s32 f32 f32", "s32", "f32 f32 f32"),
        ("c64 f32 f32 f32", "c64", "c64 c64 c64"),
    ],
)
def test_types_are_those_that_hold_both(shapes: str, result: str, types: str) -> None:
    sides = ("[4,8]", "[5,8]", "[4,2]", "[5,4]")
    text = scaled_dot(
        " ".join(kind + sizes for kind, sizes in zip(shapes.split(), sides, strict=True)),
        f"{result}[4,5]",
    )
    module = run_checked(PASS, text)
    (dot,) = module.instructions(Opcode.DOT)
    kinds = [*(operand.shape.type_name for operand in dot.operands), dot.shape.type_name]
    assert " ".join(kinds) == types
    assert module.entry.root.shape.type_name == result
    assert (module.entry.root is dot) == (types.split()[-1] == result)


@pytest.mark.parametrize(
    ("scale", "broadcast", "dimensions"),
    [
        ("[4,6,8]", "[4,6,8]", "{0,1,2}"),
        ("[4,6,2]", "[4,6,2,4]", "{0,1,2}"),
        ("[4,3,8]", "[4,3,2,8]", "{0,1,3}"),
        ("[2,3,2]", "[2,2,3,2,2,4]", "{0,2,4}"),
        ("[1,1,1]", "[1,4,1,6,1,8]", "{0,2,4}"),
    ],
)
def test_blocks_may_be_in_any_dimension(scale: str, broadcast: str, dimensions: str) -> None:
    numbers = "lhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_batch_dims={0}, "
    text = scaled_dot(
        f"bf16[4,6,8] bf16[6,4,5] bf16{scale} bf16[6,4,5]",
        "f32[6,8,5]",
        numbers + "rhs_contracting_dims={1}",
    )
    found = next(line for line in steps(text) if "broadcast(p2)" in line)
    assert found == f"broadcast = bf16{broadcast} broadcast(p2), dimensions={dimensions}"


def test_a_scalar_scale_is_none() -> None:
    text = scaled_dot("bf16[4,64] f8e4m3fn[5,64] bf16[] f8e8m0fnu[5,2]", "bf16[4,5]")
    (dot,) = rewritten(text).instructions(Opcode.DOT)
    assert dot.operands[0].name == "p0"


def test_layouts_of_operands_and_result_are_kept() -> None:
    text = scaled_dot(
        "f4e2m1fn[4,64]{0,1:E(4)} f8e4m3fn[5,64]{0,1} f8e8m0fnu[4,2]{0,1} f8e8m0fnu[5,2]",
        "f16[4,5]{0,1}",
    )
    entry = rewritten(text).entry
    shapes = {i.opcode.value + i.name[-2:]: i.shape.text for i in entry.instructions}
    assert shapes["multiplyly"] == "bf16[4,64]{0,1}"
    assert shapes["broadcastst"] == "bf16[4,2,32]{2,1,0}"
    assert shapes["dotot"] == "f32[4,5]{0,1}"
    assert entry.root.shape.text == "f16[4,5]{0,1}"


def test_precision_and_algorithm_are_those_of_the_dot() -> None:
    attributes = f"{MATRICES}, operand_precision={{high,highest,default,high}}"
    text = scaled_dot(
        "bf16[4,8] bf16[5,8] bf16[4,2] bf16[5,2]",
        "f32[4,5]",
        f"{attributes}, algorithm=dot_bf16_bf16_f32",
    )
    (dot,) = rewritten(text).instructions(Opcode.DOT)
    assert dot.attributes["operand_precision"] == "{high,highest}"
    assert dot.attributes["algorithm"] == "dot_bf16_bf16_f32"


@pytest.mark.parametrize("shapes", ["bf16[0,8] bf16[5,8] bf16[0,2] bf16[5,2]"])
def test_there_may_be_nothing(shapes: str) -> None:
    assert rewritten(scaled_dot(shapes, "f32[0,5]")).entry.root.opcode is Opcode.DOT
    empty = "bf16[4,0] bf16[5,0] bf16[4,0] bf16[5,1]"
    assert rewritten(scaled_dot(empty, "f32[4,5]")).entry.root.opcode is Opcode.DOT


def test_schedules_and_control_dependencies_are_kept() -> None:
    text = f"""HloModule m, is_scheduled=true
    ENTRY e {{ p = bf16[4,8] parameter(0)
      s = bf16[4,8] parameter(1)
      d = f32[4,4] scaled-dot(p, p, s, s), {MATRICES}
      e = f32[4,4] scaled-dot(p, p, s, s), {MATRICES}, control-predecessors={{d}}
      ROOT a = f32[4,4] add(d, e) }}"""
    module = rewritten(text)
    first, second = module.instructions(Opcode.DOT)
    assert list(second.control_predecessors) == [first]


def test_a_filter_chooses() -> None:
    text = f"""HloModule m
    ENTRY e {{ p = bf16[4,8] parameter(0)
      s = bf16[4,8] parameter(1)
      t = f16[4,8] parameter(2)
      d = f32[4,4] scaled-dot(p, p, s, s), {MATRICES}
      e = f32[4,4] scaled-dot(p, p, t, t), {MATRICES}
      ROOT a = f32[4,4] add(d, e) }}"""

    def is_f16(dot: Instruction) -> bool:
        return dot.operands[2].shape.type_name == "f16"

    module = run_checked(PASS, text, filter=is_f16)
    assert [dot.name for dot in module.instructions(Opcode.SCALED_DOT)] == ["d"]
    assert reasons_to_stay(PASS, text, filter=False) == 2 * ["the filter leaves it out"]


@pytest.mark.parametrize("filter", [True, "not-in-cudnn"])
def test_dynamic_dimensions_are_a_reason_to_stay(filter: object) -> None:
    text = scaled_dot("bf16[<=4,8] bf16[5,8] bf16[4,2] bf16[5,2]", "f32[<=4,5]")
    assert reasons_to_stay(PASS, text, filter=filter) == ["it has a dynamic dimension"]


@pytest.mark.parametrize("scale", ["bf16[8]", "bf16[4,3]", "bf16[4,0]"])
def test_sizes_that_do_not_fit_are_refused(scale: str) -> None:
    module = parse_module(scaled_dot(f"bf16[4,8] bf16[5,8] {scale} bf16[5,2]", "f32[4,5]"))
    with pytest.raises(PassRefused) as refused:
        create_pass(PASS).run(module, PassContext(PASS))
    assert refused.value.message.startswith(
        "%d: the sizes of %p0, bf16[4,8]{1,0}, are not multiples of those of its scale %p2, bf16["
    )
