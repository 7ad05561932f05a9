"""Converts that operations take over."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.passes.precision.rounded import line, reasons, run_rounded, types

from hloopt.ir import Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "bfloat16-conversion-folding"
MIXED: Mapping[str, object] = {"operand": True, "output": True, "mixed": True}
PURE: Mapping[str, object] = {**MIXED, "mixed": False}


def around(operation: str, result: str = "ROOT out = bf16[4] convert(x)") -> str:
    """A program around one operation `x` on `wide`, which was bf16, and `f`, which was not."""
    return f"""HloModule m
    total {{ u = f32[] parameter(0) v = f32[] parameter(1) ROOT w = f32[] add(u, v) }}
    same {{ u = f32[4] parameter(0) ROOT w = f32[4] negate(u) }}
    ENTRY e {{
      b = bf16[4] parameter(0)
      f = f32[4] parameter(1)
      i = s32[] parameter(2)
      wide = f32[4] convert(b)
      x = f32[4] {operation}
      {result}
    }}"""


def test_operands_and_results_are_folded() -> None:
    module = run_rounded(NAME, around("negate(wide)"), PURE, reads=())
    assert line(module, "x") == "bf16[4] negate(b)"
    assert module.entry.root.name == "x"
    assert line(module, "wide") == "f32[4] convert(b)"  # it stays, unread
    assert [i.opcode for i in module.entry["x"].users] == [Opcode.CONVERT]


def test_the_readers_of_converts_read_the_result_itself() -> None:
    result = """n = bf16[4] convert(x)
      k = bf16[4] convert(x)
      ROOT out = bf16[4] add(n, k)"""
    module = run_rounded(NAME, around("negate(wide)", result), PURE, reads=())
    assert line(module, "out") == "bf16[4] add(x, x)"


def test_a_chain_is_folded_operands_first() -> None:
    result = """n = bf16[4] convert(x)
      again = f32[4] convert(n)
      y = f32[4] exponential(again)
      ROOT out = bf16[4] convert(y)"""
    module = run_rounded(NAME, around("negate(wide)", result), PURE, reads=())
    assert line(module, "y") == "bf16[4] exponential(x)"
    assert module.entry.root.name == "y"


def test_where_types_can_meet_each_convert_is_on_its_own() -> None:
    module = run_rounded(NAME, around("add(wide, f)"), MIXED, reads=())
    assert line(module, "x") == "bf16[4] add(b, f)"
    module = run_rounded(NAME, around("add(f, wide)", "ROOT out = f32[4] sine(x)"), MIXED, reads=())
    assert line(module, "x") == "f32[4] add(f, b)"
    module = run_rounded(NAME, around("add(wide, wide)", "ROOT out = f32[4] sine(x)"), MIXED)
    assert line(module, "x") == "f32[4] add(b, b)"


@pytest.mark.parametrize(
    ("operation", "result", "reason"),
    [
        ("add(wide, f)", "ROOT out = bf16[4] convert(x)", "%f stays f32"),
        ("negate(wide)", "ROOT out = f32[4] sine(x)", "its result stays f32"),
        ("negate(wide)", "n = bf16[4] convert(x)\n ROOT o = (f32[4], bf16[4]) tuple(x, n)",
         "its result stays f32"),
    ],
)  # fmt: skip
def test_where_types_must_not_meet_it_is_all_or_nothing(
    operation: str, result: str, reason: str
) -> None:
    run_rounded(NAME, around(operation, result), PURE, changes=False)
    assert reasons(NAME, around(operation, result), PURE) == [
        f"x: converts beside it stay: {reason}, and bf16 must not meet it there"
    ]


def test_what_the_backend_cannot_do_stays() -> None:
    support = {**MIXED, "operand": {"operands": {"add": [1]}}, "output": {"opcodes": ["sine"]}}
    module = run_rounded(NAME, around("add(wide, wide)"), support, reads=())
    assert line(module, "x") == "f32[4] add(wide, b)"
    run_rounded(NAME, around("negate(wide)"), support, changes=False)
    assert reasons(NAME, around("negate(wide)"), support) == [
        "x: converts beside it stay: it has neither operands nor results of type bf16"
    ]
    run_rounded(NAME, around("negate(wide)"), {}, changes=False)


def test_the_result_of_the_program_keeps_its_type() -> None:
    text = around("negate(wide)", "").replace("x = f32", "ROOT x = f32")
    module = run_rounded(NAME, text, MIXED, reads=())
    assert line(module, "x") == "f32[4] negate(b)"
    run_rounded(NAME, text, PURE, changes=False)
    assert reasons(NAME, text, PURE) == [
        "x: converts beside it stay: it is the root, and bf16 and f32 must not meet in it"
    ]


@pytest.mark.parametrize(
    "operation",
    [
        "opt-barrier(wide)",
        "call(wide), to_apply=same",
        "fusion(wide), kind=kLoop, calls=same",
        'custom-call(wide), custom_call_target="c"',
        "convert(wide)",
        "copy-me",
    ],
)
def test_what_is_left_alone(operation: str) -> None:
    if operation == "copy-me":
        operation = "get-tuple-element(t), index=0"
        text = around(operation).replace("x =", "t = (f32[4]) tuple(wide)\n x =")
    else:
        text = around(operation)
    module, context = parse_module(text), PassContext(NAME)
    assert not create_pass(NAME, {"float_support": MIXED}).run(module, context)
    assert context.remarks == []


def test_the_inside_of_fusions_is_left_alone() -> None:
    text = around("fusion(b), kind=kLoop, calls=inside").replace(
        "ENTRY",
        """inside { u = bf16[4] parameter(0)
          v = f32[4] convert(u)
          ROOT w = f32[4] negate(v) }
        ENTRY""",
    )
    run_rounded(NAME, text, MIXED, changes=False)


def test_what_writes_over_an_operand_stays() -> None:
    text = around("dynamic-update-slice(wide, wide, i)")
    run_rounded(NAME, text, MIXED, changes=False)
    assert reasons(NAME, text, MIXED) == [
        "x: converts beside it stay: it is written over an operand"
    ]


def test_what_has_a_side_effect_stays() -> None:
    text = around("all-reduce(wide), channel_id=1, replica_groups={}, to_apply=total")
    run_rounded(NAME, text, MIXED, changes=False)
    assert reasons(NAME, text, MIXED) == ["x: converts beside it stay: it has a side effect"]


def test_what_has_one_type_is_folded_as_a_whole() -> None:
    module = run_rounded(NAME, around("copy(wide)"), MIXED, reads=())
    assert line(module, "x") == "bf16[4] copy(b)"
    run_rounded(NAME, around("copy(wide)", "ROOT o = f32[4] sine(x)"), MIXED, changes=False)


def reduced(reads: str, result: str, options: str = "") -> str:
    """An all-reduce `x` of two arrays, the first of which was bf16."""
    text = around("all-reduce(wide, f), replica_groups={}, to_apply=total" + options, reads)
    return text.replace("x = f32[4]", "x = (f32[4], f32[4])").replace("RESULT", result)


READS = """g = f32[4] get-tuple-element(x), index=0
      h = f32[4] get-tuple-element(x), index=1
      n = bf16[4] convert(h)
      ROOT out = RESULT"""


def test_elements_of_an_all_reduce() -> None:
    module = run_rounded(NAME, reduced(READS, "(f32[4], bf16[4]) tuple(g, n)"), MIXED, reads=())
    assert types(module, "x", "g", "h") == ["(f32, bf16)", "f32", "bf16"]
    assert [operand.name for operand in module.entry["x"].operands] == ["b", "f"]
    assert [operand.name for operand in module.entry.root.operands] == ["g", "h"]


def test_elements_that_are_read_twice() -> None:
    twice = READS.replace("n = bf16[4] convert(h)", "k = f32[4] get-tuple-element(x), index=1\n"
                          "n = bf16[4] convert(h)")  # fmt: skip
    module = run_rounded(NAME, reduced(twice, "(f32[4], bf16[4]) tuple(k, n)"), MIXED, reads=())
    assert types(module, "x") == ["(f32, f32)"]  # only the operand was folded
    low = twice.replace("ROOT", "o = bf16[4] convert(k)\n ROOT")
    module = run_rounded(NAME, reduced(low, "(bf16[4], bf16[4]) tuple(o, n)"), MIXED, reads=())
    assert types(module, "x", "h", "k") == ["(f32, bf16)", "bf16", "bf16"]


def test_elements_of_an_all_reduce_in_which_types_must_not_meet() -> None:
    run_rounded(NAME, reduced(READS, "(f32[4], bf16[4]) tuple(g, n)"), PURE, changes=False)


def test_elements_of_an_all_reduce_that_is_read_as_a_whole() -> None:
    whole = READS.replace("ROOT", "o = ((f32[4], f32[4])) tuple(x)\n ROOT")
    text = reduced(whole, "(((f32[4], f32[4])), bf16[4]) tuple(o, n)")
    module = run_rounded(NAME, text, MIXED, reads=())
    assert types(module, "x", "h") == ["(f32, f32)", "f32"]


def test_a_limit_stops_before_a_change() -> None:
    text = around("negate(wide)").replace("ROOT out", "low") + ""
    text = text.replace("low = bf16[4] convert(x)", """low = bf16[4] convert(x)
      y = f32[4] sine(wide)
      high = bf16[4] convert(y)
      ROOT out = bf16[4] add(low, high)""")  # fmt: skip
    for limit in range(4):
        module = parse_module(text)
        context = PassContext(NAME, applications=Applications(limit))
        changed = create_pass(NAME, {"float_support": PURE}).run(module, context)
        assert changed == (limit > 0)
        assert types(module, "x", "y").count("bf16") == min(limit, 2)
        assert len(context.remarks) == min(limit, 2)


def test_remarks_say_what_was_folded() -> None:
    context = PassContext(NAME)
    text = around("add(wide, wide)")
    create_pass(NAME, {"float_support": PURE}).run(parse_module(text), context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        (
            "applied",
            "x",
            "folded into it: the convert of operand 0, the convert of operand 1, "
            "converts of the result",
        )
    ]
