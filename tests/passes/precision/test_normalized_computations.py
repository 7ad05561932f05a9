"""Conversions of operations with several results, and of what operations apply."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import shown
from tests.passes.precision.normalized import SUM, entry, lines, normalize, support

from hloopt.ir import Module, Opcode
from hloopt.ir.ordering import post_order
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

# -- operations that give an element for each operand ---------------------------------------------

LESS = """less { a = bf16[] parameter(0) b = bf16[] parameter(1) p = TYPE[] parameter(2)
  q = TYPE[] parameter(3) ROOT c = pred[] compare(a, b), direction=LT }"""


def sort(other: str, value: str, **options: Any) -> Module:
    text = entry(
        f"ROOT r = (bf16[4], {other}[4]) sort(x, {value}), dimensions={{0}}, to_apply=less",
        LESS.replace("TYPE", other),
    )
    return normalize(text, **options)


def test_a_sort_of_several_operands() -> None:
    module = sort("s32", "i")
    assert lines(module) == [
        "c0 = f32[4] convert(x)",
        "r = (f32[4], s32[4]) sort(c0, i), dimensions={0}, to_apply=less.clone",
        "g1 = f32[4] get-tuple-element(r), index=0",
        "g2 = s32[4] get-tuple-element(r), index=1",
        "c3 = bf16[4] convert(g1)",
        "ROOT t4 = (bf16[4], s32[4]) tuple(c3, g2)",
    ]
    assert [p.shape.text for p in module.computations["less.clone"].parameters] == [
        *("f32[]", "f32[]", "s32[]", "s32[]")
    ]
    assert "less" not in module.computations


def test_a_sort_that_takes_low_alone_but_not_beside_high() -> None:
    low = {"opcodes": ["sort", "compare"]}
    rules = support(operand=low, output=low)
    for other, value in (("bf16", "x"), ("s32", "i")):
        text = entry(
            f"ROOT r = (bf16[4], {other}[4]) sort(x, {value}), dimensions={{0}}, to_apply=less",
            LESS.replace("TYPE", other),
        )
        normalize(text, changes=False, **rules)
    module = sort("f32", "y", **rules)
    (found,) = module.instructions(Opcode.SORT)
    assert found.shape.text == "(f32[4]{0}, f32[4]{0})"
    normalize(
        entry("ROOT r = (bf16[4], f32[4]) sort(x, y), dimensions={0}, to_apply=less",
              LESS.replace("TYPE", "f32")),
        changes=False, **support(operand=low, output=low, mixed={"opcodes": ["sort"]}),
    )  # fmt: skip


def test_an_unsupported_operand_raises_the_others_unless_types_may_mix() -> None:
    some = {"opcodes": ["compare"], "operands": {"sort": [0]}}
    low = {"opcodes": ["sort", "compare"]}
    module = sort("bf16", "x", **support(operand=some, output=low))
    (found,) = module.instructions(Opcode.SORT)
    assert [o.shape.type_name for o in found.operands] == ["f32", "f32"]
    assert found.shape.text == "(f32[4]{0}, f32[4]{0})"
    assert module.computations["less.clone"].parameters[0].shape.type_name == "f32"


def test_only_unsupported_operands_of_a_mixing_operation_are_raised() -> None:
    some = {"operands": {"all-reduce": [0]}}
    low = {"opcodes": ["all-reduce"]}
    module = normalize(
        entry("ROOT r = (bf16[4], bf16[4]) all-reduce(x, x), replica_groups={}, to_apply=sum", SUM),
        **support(operand=some, output=low, mixed=low),
    )
    assert lines(module) == [
        "c0 = f32[4] convert(x)",
        "ROOT r = (bf16[4], bf16[4]) all-reduce(x, c0), replica_groups={}, to_apply=sum",
    ]


def test_an_unsupported_result_raises_supported_operands() -> None:
    low = {"opcodes": ["all-reduce"]}
    body = "ROOT r = (bf16[4], s32[4]) all-reduce(x, i), replica_groups={}, to_apply=sum"
    module = normalize(entry(body, SUM), **support(operand=low))
    (found,) = module.instructions(Opcode.ALL_REDUCE)
    assert found.shape.text == "(f32[4]{0}, s32[4]{0})"
    assert found.operands[0].shape.type_name == "f32"
    mixing = normalize(entry(body, SUM), **support(operand=low, mixed=low))
    (found,) = mixing.instructions(Opcode.ALL_REDUCE)
    assert found.shape.text == "(f32[4]{0}, s32[4]{0})"
    assert found.operands[0].shape.type_name == "bf16"


@pytest.mark.parametrize(
    ("shape", "rest"),
    [
        ("(bf16[4], s32[4])", "all-reduce(x, i), replica_groups={{0,1}}, to_apply=sum"),
        ("(bf16[2], s32[2])",
         "reduce-scatter(x, i), replica_groups={{0,1}}, dimensions={0}, to_apply=sum"),
        ("bf16[4]", "all-reduce(x), replica_groups={{0,1}}, to_apply=sum"),
        ("bf16[2]", "reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=sum"),
    ],
)  # fmt: skip
def test_reductions_over_devices_keep_their_computation(shape: str, rest: str) -> None:
    module = normalize(entry(f"ROOT r = {shape} {rest}", SUM, header=", replica_count=2"))
    (found,) = (i for i in module.instructions() if i.called)
    assert "bf16" not in found.shape.text
    assert "to_apply=%sum" in str(found)
    assert shown(module.computations["sum"]) == [
        "a = bf16[] parameter(0)", "b = bf16[] parameter(1)", "ROOT c = bf16[] add(a, b)"
    ]  # fmt: skip


# -- applied computations -------------------------------------------------------------------------


REDUCE = "z = bf16[] constant(0) r = bf16[] reduce(x, z), dimensions={0}, to_apply=sum"


def test_what_is_applied_is_converted_in_a_copy() -> None:
    module = normalize(entry(REDUCE, SUM))
    assert list(module.computations) == ["e", "sum.clone"]
    body = shown(module.computations["sum.clone"])
    assert body[:2] == ["a.1 = f32[] parameter(0)", "b.1 = f32[] parameter(1)"]
    assert body[2] == "c.1 = f32[] add(a.1, b.1)"
    assert [line.split(" = ")[1].split("(")[0] for line in body[3:]] == [
        "bf16[] convert",
        "f32[] convert",
    ]


def test_an_applied_parameter_that_is_the_root() -> None:
    last = "last { a = bf16[] parameter(0) ROOT b = bf16[] parameter(1) }"
    module = normalize(entry(REDUCE.replace("sum", "last"), last))
    assert shown(module.computations["last.clone"]) == [
        "a.1 = f32[] parameter(0)",
        "ROOT b.1 = f32[] parameter(1)",
    ]
    rounded = normalize(entry(REDUCE.replace("sum", "last"), last), allow_excess_precision=False)
    assert len(rounded.computations["last.clone"]) == 4


def test_two_users_of_a_computation_get_a_copy_each_and_others_keep_it() -> None:
    module = normalize(
        entry(
            f"{REDUCE} s = bf16[] reduce(x, r), dimensions={{0}}, to_apply=sum "
            "ROOT c = bf16[] call(r, s), to_apply=sum",
            SUM,
        )
    )
    assert list(module.computations) == ["sum", "e", "sum.clone", "sum.clone.1"]
    assert {p.shape.text for p in module.computations["sum"].parameters} == {"bf16[]"}


def test_a_reduction_of_several_values_converts_elements_of_its_root() -> None:
    step = """step { a = bf16[] parameter(0) i = s32[] parameter(1) b = bf16[] parameter(2)
      j = s32[] parameter(3) c = pred[] compare(a, b), direction=GE v = bf16[] select(c, a, b)
      k = s32[] select(c, i, j) ROOT r = (bf16[], s32[]) tuple(v, k) }"""
    module = normalize(
        entry(
            "z = bf16[] constant(0) k = s32[] constant(0) ROOT r = (bf16[], s32[]) "
            "reduce(x, i, z, k), dimensions={0}, to_apply=step",
            step,
        )
    )
    (reduce,) = module.instructions(Opcode.REDUCE)
    assert reduce.shape.text == reduce.called[0].root.shape.text == "(f32[], s32[])"
    assert module.entry.root.shape.text == "(bf16[], s32[])"


def test_low_parameters_of_what_is_applied_count_though_no_operand_is_low() -> None:
    """An accumulator of low type beside values of high type."""
    total = "total { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(a, b) }"
    module = parse_module(
        entry("z = f32[] constant(0) ROOT r = f32[] reduce(y, z), dimensions={0}, to_apply=total",
              total)
    )  # fmt: skip
    low = {"opcodes": ["add"]}
    assert create_pass("float-normalization", support(operand=low, output=low)).run(
        module, PassContext()
    )
    (reduce,) = module.instructions(Opcode.REDUCE)
    assert {p.shape.text for p in reduce.called[0].parameters} == {"f32[]"}
    assert verify_module(module) == []


def test_shared_reductions_are_separated_once_and_only_the_other_is_converted() -> None:
    everywhere = "all-reduce(x), replica_groups={}, to_apply=sum"
    module = normalize(
        entry(
            f"a = bf16[4] {everywhere} b = bf16[4] {everywhere} {REDUCE} "
            "ROOT t = (bf16[4], bf16[4], bf16[]) tuple(a, b, r)",
            SUM,
        )
    )
    assert list(module.computations) == ["e", "sum.clone", "sum.clone.1"]
    one, other = (i.called[0] for i in module.instructions(Opcode.ALL_REDUCE))
    assert one is other
    assert {p.shape.text for p in one.parameters} == {"bf16[]"}


def test_computations_inside_of_a_reduction_are_visited() -> None:
    product = (
        "times { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] multiply(a, b) }"
    )
    outer = (
        "outer { a = bf16[] parameter(0) b = bf16[] parameter(1) "
        "ROOT c = bf16[] call(a, b), to_apply=times }"
    )
    body = "ROOT r = bf16[4] all-reduce(x), replica_groups={}, to_apply=outer"
    module = normalize(entry(body, product, outer))
    assert module.computations["outer"].root.opcode is Opcode.CALL
    assert module.computations["times"].root.opcode is Opcode.CONVERT


def test_bodies_of_fusions_loops_and_branches_are_visited_but_keep_their_types() -> None:
    fused = "fused { p = bf16[4] parameter(0) ROOT n = bf16[4] negate(p) }"
    module = normalize(entry("ROOT f = bf16[4] fusion(x), kind=kLoop, calls=fused", fused))
    assert module.entry.root.shape.text == "bf16[4]{0}"
    assert [i.opcode for i in post_order(module.computations["fused"])][1:] == [
        *(Opcode.CONVERT, Opcode.NEGATE, Opcode.CONVERT)
    ]
