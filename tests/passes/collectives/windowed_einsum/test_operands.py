"""What loops of windowed einsums collect, add up behind themselves, and take narrow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.passes.checked_run import run_equal
from tests.passes.collectives.windowed_einsum.programs import (
    adding,
    dequantized,
    gathering,
    scattering,
    with_lines,
)

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

_NAME = "windowed-einsum-handler"


def missed(text: str, **options: object) -> list[str]:
    """The reasons of a run that changes something, and leaves the rest."""
    module, context = parse_module(text), PassContext(_NAME)
    assert create_pass(_NAME, options).run(module, context)
    return [remark.reason for remark in context.remarks if remark.kind == "missed"]


# -- all-gathers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [gathering, adding])
def test_the_loop_collects_what_an_all_gather_gives(program: Callable[..., str]) -> None:
    module = run_equal(_NAME, program(chained=True))
    assert not [*module.instructions(Opcode.ALL_GATHER)]


def test_shardings_of_a_state_that_grows_are_forgotten() -> None:
    sharding = ", sharding={{replicated}, {replicated}, {replicated}, {replicated}, {replicated}}"
    text = gathering(chained=True).replace("b, b, i)", f"b, b, i){sharding}")
    text = text.replace("pass, i2)", f"pass, i2){sharding}")
    body = "body=windowed_dot_general_body_ag"
    text = text.replace(body, f"{body}{sharding}")
    module = run_equal(_NAME, text)
    assert not [i for i in module.instructions() if "sharding" in i.attributes]


def test_an_all_gather_stays_for_other_readers_and_dots_before_the_loop() -> None:
    text = gathering(
        chained=True,
        r="n = f32[2,8,3] negate(ag)\n"
        "  ROOT r = (f32[2,8,5], f32[2,8,5], f32[2,8,3]) tuple(out, d, n)",
    )
    module = run_equal(_NAME, text)
    (gathered,) = module.instructions(Opcode.ALL_GATHER)
    assert [user.opcode for user in gathered.users] == ["negate"]
    state = "(f32[2,2,3], f32[3,5], f32[2,8,5], f32[2,8,5], u32[])"
    before = gathering(
        chained=True,
        other="",
        ag="",
        d="",
        t="ag = f32[2,8,3] all-gather(lhs), channel_id=1, replica_groups={{0,1,2,3}}, "
        "dimensions={1}, use_global_device_ids=true\n"
        "  d = f32[2,8,5] dot(ag, rhs), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
        f"  t = {state} tuple(lhs, rhs, d, b, i)",
        r="ROOT r = (f32[2,8,5]) tuple(out)",
    )
    module = run_equal(_NAME, before)
    assert len([*module.instructions(Opcode.ALL_GATHER)]) == 1


_NOT_ALL = "%w does not have each shard at a dot, at its place in the whole"
_NOT_AROUND = "%w does not hand its first operand from device to device"
_RING = "source_target_pairs={{0,3},{1,0},{2,1},{3,2}}"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ({"c": "k = u32[] constant(2)\n  ROOT c = pred[] compare(i, k), direction=LT"}, _NOT_ALL),
        ({"off1": "off1 = s32[] add(z, z)"}, _NOT_ALL),
        ({"second": "second = f32[2,2,3] negate(first)"}, _NOT_AROUND),
        (
            {
                "second": f"again = f32[2,2,3] collective-permute(first), channel_id=9, {_RING}\n"
                f"  second = f32[2,2,3] collective-permute(first), channel_id=3, {_RING}\n"
                "  k = f32[2,2,3] negate(again)"
            },
            _NOT_AROUND,
        ),
        (
            {
                "first": "first = f32[2,2,3] collective-permute(lhs), channel_id=2, "
                "source_target_pairs={{0,3},{1,0},{2,1}}"
            },
            "%first gives some devices nothing",
        ),
        (
            {
                "first": f"l = f32[2,2,3] get-tuple-element(p), index=0\n  first = f32[2,2,3] "
                f"collective-permute(l), channel_id=2, {_RING}"
            },
            "not one instruction reads the shard in %windowed_dot_general_body_ag",
        ),
        (
            {
                "ag": "ag = f32[2,8,3] all-gather(lhs), channel_id=1, replica_groups={{0,1,2,3}}, "
                "dimensions={1}, use_global_device_ids=true, constrain_layout=true"
            },
            "its layout is constrained, or its size dynamic",
        ),
        (
            {
                "ag": "ag = f32[2,8,3] all-gather(lhs), channel_id=1, replica_groups={{0,1,2,3}}, "
                "dimensions={1}, use_global_device_ids=true, control-predecessors={out}"
            },
            "it has control dependencies",
        ),
        (
            {
                "ag": "ag = f32[2,8,3] all-gather(lhs), channel_id=1, replica_groups={{3,2,1,0}}, "
                "dimensions={1}, use_global_device_ids=true"
            },
            _NOT_ALL,
        ),
    ],
)
def test_all_gathers_that_stay(lines: dict[str, str], reason: str) -> None:
    assert missed(with_lines(gathering(chained=True), lines)) == [
        f"%w does not collect it: {reason}"
    ]


def test_groups_have_each_device_once() -> None:
    text = gathering(
        chained=True,
        ag="ag = f32[2,8,3] all-gather(lhs), channel_id=1, replica_groups={{0,1,2,3}}, "
        "dimensions={1}, use_global_device_ids=true",
    ).replace("num_partitions=4", "num_partitions=8")
    ring = "{0,3},{1,0},{2,1},{3,2}"
    more = f"{ring},{{4,7}},{{5,4}},{{6,5}},{{7,6}}"
    assert missed(text.replace(ring, more)) == [
        "%w does not collect it: its groups have not each device once"
    ]


def test_shards_are_followed_on_few_devices() -> None:
    text = gathering(chained=True).replace("num_partitions=4", "num_partitions=20000")
    assert missed(text) == ["%w does not collect it: there are too many shards to follow"]


# -- sums -----------------------------------------------------------------------------------------


def test_a_sum_of_dots_is_added_up_behind_the_loop() -> None:
    module = run_equal(_NAME, adding())
    (total,) = module.instructions(Opcode.REDUCE)
    assert total.parent.is_entry
    swapped = adding(add_0="add.0 = f32[2,3,5] add(dot.0, acc)")
    assert [*run_equal(_NAME, swapped).instructions(Opcode.REDUCE)]


_STAYS = "its dots are added up one after another: "
_SUM = "(f32[2,3,2], f32[8,5], f32[2,3,5], f32[2,3,5], u32[])"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            {"t": f"s = f32[2,3,5] parameter(2)\n  t = {_SUM} tuple(lhs, rhs, s, b, i)"},
            "its sum does not begin with 0, but with %s",
        ),
        (
            {"r": f"ROOT r = (f32[2,3,5], {_SUM}) tuple(out, t)"},
            "%t.1 has other users",
        ),
        (
            {"r": f"ROOT r = ({_SUM}) tuple(w)"},
            "nothing reads its sum, or control dependencies hold what does",
        ),
    ],
)
def test_sums_that_stay(lines: dict[str, str], reason: str) -> None:
    text = with_lines(adding(), lines)
    if "tuple(w)" in text:
        text = "\n".join(line for line in text.split("\n") if " out = " not in line)
    assert missed(text) == [f"{_STAYS}{reason}"]


def test_a_sum_stays_where_the_state_is_not_a_tuple() -> None:
    text = adding().replace("while(t)", "while(k)")
    text = text.replace("  w = ", f"  k = {_SUM} opt-barrier(t)\n  w = ")
    assert missed(text) == [f"{_STAYS}%k is not a tuple"]


def test_what_is_no_sum_of_dots_stays_without_a_word() -> None:
    for line in (
        {"add_1": "add.1 = f32[2,3,5] subtract(add.0, dot.1)"},
        {"add_1": "add.1 = f32[2,3,5] add(dot.0, dot.1)"},
    ):
        module = run_equal(_NAME, with_lines(adding(), line))
        assert not [*module.instructions(Opcode.REDUCE)]
        assert missed(with_lines(adding(), line)) == []


def test_a_dot_in_a_fusion_is_no_summand() -> None:
    text = adding().replace("rhs, add.1, pass, i2)", "rhs, add.2, pass, i2)")
    added = "add.2 = f32[2,3,5] fusion(add.1, lhs, part1), kind=kCustom, calls=f"
    text = text.replace("  pass = ", f"  {added}\n  pass = ", 1)
    head, rest = text.split("\n", 1)
    fused = """f {
  a = f32[2,3,5] parameter(0)
  x = f32[2,3,2] parameter(1)
  y = f32[2,5] parameter(2)
  d = f32[2,3,5] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT s = f32[2,3,5] add(a, d)
}
"""
    module = run_equal(_NAME, f"{head}\n\n{fused}{rest}")
    assert not [*module.instructions(Opcode.REDUCE)]


# -- narrow operands ------------------------------------------------------------------------------


def narrow_elements(text: str, **options: object) -> list[str]:
    module = run_equal(_NAME, text, **options)
    (loop,) = module.instructions(Opcode.WHILE)
    return [element.type_name for element in loop.shape.elements]


def test_narrow_operands_go_around_narrow() -> None:
    same = {"s": "f32[] constant(0.5)"}
    text = gathering(narrow="multiply")
    for name in ("lhs", "rhs"):
        text = text.replace(f"{name}.s = f32[] parameter", f"{name}.unused = f32[] parameter")
        text = text.replace(f"  {name}.b =", f"  {name}.s = {same['s']}\n  {name}.b =")
    wanted = ["f8e4m3fn", "f8e4m3fn", "f32", "f32", "u32", "f32", "f32"]
    assert narrow_elements(text) == wanted
    assert narrow_elements(scattering(narrow="divide")) == wanted


def test_moves_between_scaling_and_loop_stay_in_front() -> None:
    text = scattering(
        narrow="multiply",
        rhs="m = f32[3,5] multiply(rhs.b, rhs.c)\n  k = f32[15] reshape(m)\n"
        "  rhs = f32[3,5] reshape(k)",
    )
    assert narrow_elements(text)[:2] == ["f8e4m3fn", "f8e4m3fn"]


@pytest.mark.parametrize(
    "text",
    [
        dequantized(gathering(), "multiply", "lhs"),
        dequantized(gathering(), "multiply", types="f8e5m2"),
        dequantized(gathering(), "multiply", types="bf16"),
        dequantized(gathering(), "subtract"),
    ],
)
def test_other_operands_stay_wide(text: str) -> None:
    assert narrow_elements(text)[:2] == ["f32", "f32"]


_IN_FRONT = "its operands are dequantized in front: "
_AS_A_WHOLE = "its body or condition reads its state as a whole"


def _scattering_with_whole(name: str, shape: str, index: int) -> str:
    """A loop with an element of its state read from a barrier of the whole state, which the last
    of its computations with an instruction of that name has."""
    state = "(f32[8,3], f32[3,5], f32[2,5], f32[2,5], u32[])"
    read = f"  {name} = {shape} get-tuple-element(p), index={index}\n"
    before, _, after = scattering(narrow="multiply").rpartition(read)
    barrier = f"  whole = {state} opt-barrier(p)\n"
    return f"{before}{barrier}{read.replace('(p)', '(whole)')}{after}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            gathering(narrow="multiply"),
            "the scale %lhs.s may differ from device to device",
        ),
        (adding(narrow="multiply"), "%part0 in it reads %rhs"),
        (
            scattering(
                narrow="multiply",
                r="l = f32[8,3] get-tuple-element(w), index=0\n  u = f32[2,5] add(out, back)\n"
                "  ROOT r = (f32[2,5], f32[8,3]) tuple(u, l)",
            ),
            "its operands are read behind it",
        ),
        (
            scattering(
                narrow="multiply",
                c="l = f32[3,5] get-tuple-element(p), index=1\n"
                "  ROOT c = pred[] compare(i, n), direction=LT",
            ),
            "its condition reads an operand",
        ),
        (
            scattering(narrow="multiply").replace(
                "ROOT t = (f32[8,3], f32[3,5], f32[2,5], f32[2,5], u32[]) tuple(lhs, rhs",
                "f = f32[3,5] constant({...})\n"
                "  ROOT t = (f32[8,3], f32[3,5], f32[2,5], f32[2,5], u32[]) tuple(lhs, f",
            ),
            "its trips change element 1 of its state",
        ),
        (
            scattering(narrow="multiply")
            .replace("u32[])", "u32[], f32[3,5])")
            .replace("i2)", "i2, rhs)")
            .replace("b, b, i)", "b, b, i, rhs)"),
            "%rhs becomes another element of its state",
        ),
        (_scattering_with_whole("acc0", "f32[2,5]", 2), _AS_A_WHOLE),
        (_scattering_with_whole("i", "u32[]", 4), _AS_A_WHOLE),
    ],
)
def test_operands_that_are_dequantized_in_front(text: str, reason: str) -> None:
    equal = "scale" not in reason
    assert f"{_IN_FRONT}{reason}" in missed(text, assume_equal_scales=equal)
