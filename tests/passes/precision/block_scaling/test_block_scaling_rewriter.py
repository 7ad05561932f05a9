"""Corners of expanding the calls for block-scaled tensors."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, shown
from tests.passes.precision.block_scaling.programs import (
    PASS,
    dequantized,
    expanded,
    opcodes,
    product,
    quantized,
    shapes_of,
)

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.text import parse_module


def test_a_call_takes_the_place_with_all_that_was_said_of_it() -> None:
    more = ', sharding={replicated}, metadata={op_name="f"}, frontend_attributes={a="b"}'
    text = product("bf16[4,8]", "bf16[4,8]", "bf16[4,2]", "f32[4,4]", more=more)
    call = run_checked(PASS, text).entry.root
    assert call.opcode is Opcode.CALL
    assert call.called[0].name == "product"
    assert [operand.name for operand in call.operands] == ["p0", "p1", "p2"]
    wanted = {"sharding": "{replicated}", "frontend_attributes": '{a="b"}'}
    assert wanted.items() <= call.attributes.items()
    assert 'op_name="f"' in call.attributes["metadata"]
    names = [parameter.name for parameter in call.called[0].parameters]
    assert names == ["lhs", "rhs", "lhs_scale"]


def test_the_steps_of_a_quantization() -> None:
    body = expanded(quantized("bf16[3,64]", "(f8e5m2[3,64], f8e8m0fnu[3,2])"))
    assert shown(body) == [
        "input = bf16[3,64] parameter(0)",
        "reshape = bf16[3,2,32] reshape(input)",
        "constant = bf16[] constant(0)",
        "reduce = bf16[3,2] reduce(reshape, constant), dimensions={2}, to_apply=amax",
        "constant.1 = bf16[] constant(3.277e+04)",
        "broadcast = bf16[3,2] broadcast(constant.1), dimensions={}",
        "divide = bf16[3,2] divide(reduce, broadcast)",
        "convert = f8e8m0fnu[3,2] convert(divide)",
        "convert.1 = bf16[3,2] convert(convert)",
        "broadcast.1 = bf16[3,2,32] broadcast(convert.1), dimensions={0,1}",
        "reshape.1 = bf16[3,64] reshape(broadcast.1)",
        "divide.1 = bf16[3,64] divide(input, reshape.1)",
        "convert.2 = f8e5m2[3,64] convert(divide.1)",
        "ROOT tuple = (f8e5m2[3,64], f8e8m0fnu[3,2]) tuple(convert.2, convert)",
    ]


@pytest.mark.parametrize(
    ("kind", "power"),
    [
        ("f8e4m3fn", "256"),
        ("f8e5m2", "32768"),
        ("f4e2m1fn", "4"),
        ("f8e3m4", "8"),
        ("f16", "32768"),
    ],
)
def test_the_largest_power_of_two_depends_on_the_type(kind: str, power: str) -> None:
    body = expanded(quantized("f32[3,4]", f"({kind}[3,4], f32[3,1])"))
    constants = [i.payload for i in body.instructions if i.opcode is Opcode.CONSTANT]
    assert constants == ["0", power]


@pytest.mark.parametrize("sizes", ["64", "2,64", "2,3,64", "0,64"])
def test_any_rank_is_dequantized(sizes: str) -> None:
    scales = sizes.replace("64", "2")
    body = expanded(dequantized(f"f8e4m3fn[{sizes}]", f"f8e8m0fnu[{scales}]", f"bf16[{sizes}]"))
    assert opcodes(body) == ["convert", "convert", "broadcast", "reshape", "multiply"]


@pytest.mark.parametrize(
    ("layout", "broadcast"),
    [
        ("{2,1,0}", "{3,2,1,0}"),
        ("{2,0,1}", "{3,0,2,1}"),
        ("{0,1,2}", "{0,1,3,2}"),
        ("{1,0,2}", "{1,0,3,2}"),
        ("{0,2,1}", "{0,3,2,1}"),
        ("{1,2,0}", "{2,3,1,0}"),
    ],
)
def test_scales_are_spread_in_their_own_layout(layout: str, broadcast: str) -> None:
    body = expanded(
        dequantized(f"f8e4m3fn[4,2,64]{layout}", f"f8e8m0fnu[4,2,2]{layout}", "f32[4,2,64]")
    )
    assert shapes_of(body, Opcode.BROADCAST) == [f"f32[4,2,2,32]{broadcast}"]
    assert shapes_of(body, Opcode.RESHAPE) == [f"f32[4,2,64]{layout}"]
    assert shapes_of(body, Opcode.MULTIPLY) == [f"f32[4,2,64]{layout}"]


def test_what_is_converted_is_packed_no_more() -> None:
    body = expanded(dequantized("f4e2m1fn[4,64]{1,0:E(4)}", "f8e8m0fnu[4,2]", "f32[4,64]"))
    assert shapes_of(body, Opcode.CONVERT) == ["f32[4,64]{1,0}", "f32[4,2]{1,0}"]


@pytest.mark.parametrize(
    ("scales", "block", "sliced"),
    [
        ("f8e8m0fnu[4,3] f8e8m0fnu[5,3]", None, []),
        ("f8e8m0fnu[4,3] f8e8m0fnu[5,3]", 32, []),
        ("f8e8m0fnu[6,3] f8e8m0fnu[5,3]", None, ["f8e8m0fnu[4,3]{1,0}"]),
        ("f8e8m0fnu[4,4] f8e8m0fnu[7,5]", 32, ["f8e8m0fnu[4,3]{1,0}", "f8e8m0fnu[5,3]{1,0}"]),
        ("f8e8m0fnu[4,2] f8e8m0fnu[5,2]", 64, ["f8e8m0fnu[4,2]{1,0}", "f8e8m0fnu[5,2]{1,0}"]),
        ("f8e8m0fnu[4,3] f8e8m0fnu[5,3]", 48, ["f8e8m0fnu[4,2]{1,0}", "f8e8m0fnu[5,2]{1,0}"]),
        ("f8e8m0fnu[4,4] f8e8m0fnu[5,4]", None, []),
    ],
)
def test_spare_scales_are_sliced_off(scales: str, block: int | None, sliced: list[str]) -> None:
    text = product("f8e4m3fn[4,96]", "f8e4m3fn[5,96]", scales, "f32[4,5]", block=block)
    assert shapes_of(expanded(text), Opcode.SLICE) == sliced


@pytest.mark.parametrize(
    ("batch", "numbers"),
    [
        ("", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        (
            "3,",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
            "rhs_contracting_dims={2}",
        ),
    ],
)
def test_the_last_dimension_is_contracted_and_the_first_of_three_paired(
    batch: str, numbers: str
) -> None:
    scales = f"bf16[{batch}4,2] bf16[{batch}5,8] bf16[]"
    text = product(f"bf16[{batch}4,8]", f"f16[{batch}5,8]", scales, f"bf16[{batch}4,5]")
    body = expanded(text)
    (dot,) = (line for line in shown(body) if " dot(" in line)
    assert dot.endswith(numbers)
    assert opcodes(body)[-2:] == ["broadcast", "multiply"]


def test_a_side_without_scales_takes_part_as_it_is() -> None:
    text = product("f8e4m3fn[4,64]", "bf16[5,64]{0,1}", "f8e8m0fnu[4,2]", "f32[4,5]")
    (dot,) = (i for i in expanded(text).instructions if i.opcode is Opcode.DOT)
    assert dot.operands[1].opcode is Opcode.PARAMETER


# -- where ----------------------------------------------------------------------------------------

TARGET = 'custom_call_target="__op$dequantize"'
BODY = f"x = bf16[4,4] parameter(0)\n ROOT d = bf16[4,4] custom-call(x, x), {TARGET}"


def test_calls_in_fusions_stay() -> None:
    text = f"""HloModule m
    f {{ {BODY} }}
    ENTRY e {{ p = bf16[4,4] parameter(0)
      ROOT r = bf16[4,4] fusion(p), kind=kLoop, calls=f }}"""
    assert reasons_to_stay(PASS, text) == []


def test_calls_in_other_computations_are_expanded() -> None:
    text = f"""HloModule m
    f {{ {BODY} }}
    g {{ y = bf16[4,4] parameter(0)
      s = ((bf16[4,4], bf16[4,4]), bf16[4,4], u32[]) custom-call-start(y, y), {TARGET}
      ROOT n = bf16[4,4] custom-call-done(s) }}
    ENTRY e {{ p = bf16[4,4] parameter(0)
      c = pred[] parameter(1)
      ROOT r = bf16[4,4] conditional(c, p, p), true_computation=f, false_computation=g }}"""
    module = run_checked(PASS, text)
    assert [i.opcode for i in module.instructions(Opcode.CUSTOM_CALL)] == []
    assert len(list(module.instructions(Opcode.CALL))) == 2
    assert Reference(parse_module(text), RunSettings(seeds=1)).compare(module) is None


def test_schedules_and_control_dependencies_are_kept() -> None:
    text = f"""HloModule m, is_scheduled=true
    ENTRY e {{ p = bf16[4,4] parameter(0)
      n = bf16[4,4] negate(p)
      d = bf16[4,4] custom-call(p, p), {TARGET}, control-predecessors={{n}}
      ROOT a = bf16[4,4] add(d, n), control-predecessors={{d}} }}"""
    module = run_checked(PASS, text)
    assert shown(module.entry)[2:] == [
        "call = bf16[4,4] call(p, p), to_apply=d, control-predecessors={n}",
        "ROOT a = bf16[4,4] add(call, n), control-predecessors={call}",
    ]


def test_a_dynamic_dimension_is_a_reason_to_stay() -> None:
    text = dequantized("f8e4m3fn[<=4,64]", "f8e8m0fnu[<=4,2]", "f32[<=4,64]")
    assert reasons_to_stay(PASS, text) == ["it has a dynamic dimension"]


def test_what_is_marked_as_an_effect_is_none() -> None:
    more = ", custom_call_has_side_effect=true"
    text = product("bf16[4,8]", "bf16[4,8]", "bf16[4,2]", "f32[4,4]", more=more)
    assert opcodes(expanded(text))[-1] == "dot"


def test_other_targets_stay() -> None:
    text = product("bf16[4,8]", "bf16[4,8]", "bf16[4,2]", "f32[4,4]")
    assert reasons_to_stay(PASS, text.replace("__op$block_scaled_dot", "other")) == []


def test_many_calls_are_expanded_once_each() -> None:
    lines = [
        f'd{n} = bf16[4,4] custom-call(d{n - 1}, d{n - 1}), custom_call_target="__op$dequantize"'
        for n in range(1, 9)
    ]
    text = "\n".join(
        [
            "HloModule m",
            "ENTRY e {",
            "d0 = bf16[4,4] parameter(0)",
            *lines[:-1],
            f"ROOT {lines[-1]}",
        ]
    )
    module = run_checked(PASS, text + "\n}")
    assert len(module.computations) == 9
