"""Conditions on what moves out of the branches, each with its remark."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.control_flow.conditional_code_motion.programs import (
    PAIR,
    PASS,
    V,
    ends,
    moved,
    opcodes,
    program,
    remarks,
    stays,
    two,
)

from hloopt.ir import Opcode

NOT_THE_SAME = "it is not the same in all branches"
OTHER = (
    "other { o.x = f32[] parameter(0) o.y = f32[] parameter(1) "
    "ROOT o.r = f32[] multiply(o.x, o.y) }"
)


@pytest.mark.parametrize(
    ("on_true", "on_false"),
    [
        ("r = f32[4] negate(a)", "r = f32[4] floor(b)"),
        ("k = f32[4] constant({1,2,3,4}) r = f32[4] add(k, k)",
         "k = f32[4] constant({1,2,3,5}) r = f32[4] add(k, k)"),
        ("w = f32[8] concatenate(a, a), dimensions={0} r = f32[4] slice(w), slice={[0:4]}",
         "w = f32[8] concatenate(b, b), dimensions={0} r = f32[4] slice(w), slice={[2:6]}"),
        ("k = f32[] constant(0) w = f32[4,2] broadcast(a), dimensions={0} "
         "r = f32[4] reduce(w, k), dimensions={1}, to_apply=ad",
         "k = f32[] constant(0) w = f32[4,2] broadcast(b), dimensions={0} "
         "r = f32[4] reduce(w, k), dimensions={1}, to_apply=other"),
        ("w = f32[8] concatenate(a, a), dimensions={0} r = f32[4] slice(w), slice={[0:4]}",
         "w = f32[4] reverse(b), dimensions={0} r = f32[4] slice(w), slice={[0:4]}"),
    ],
    ids=("opcode", "constant", "attribute", "applied computation", "operand shape"),
)  # fmt: skip
def test_what_differs_between_the_branches_stays(on_true: str, on_false: str) -> None:
    text = program(on_true, on_false, more=OTHER)
    names = [name for name, reason in remarks(text).items() if reason == NOT_THE_SAME]
    assert names == ["k" if "constant({" in on_true else "r"]


def test_layouts_differ_only_where_they_count() -> None:
    m = "f32[4,4]"
    on_true, on_false = (
        f"w = {m}{layout} broadcast({p}), dimensions={{0}} k = {m}{layout} {o}(w) "
        f"n = {m}{layout} negate(k) r = {m}{{1,0}} copy(n)"
        for p, o, layout in (("a", "sine", "{1,0}"), ("b", "cosine", "{0,1}"))
    )
    text = program(on_true, on_false, "", "ROOT u = f32[4,4] reverse(h), dimensions={0}",
                   gives=f"{m}{{1,0}}")  # fmt: skip
    stays(text, "r", NOT_THE_SAME)
    assert opcodes(text, is_layout_sensitive=False) >= {Opcode.NEGATE, Opcode.COPY}


def test_what_has_several_users_stays_inside() -> None:
    text = program(*ends("n = f32[4] negate(s) o = f32[4] floor(n) r = f32[4] add(n, o)"))
    assert remarks(text)["n"] == "it has 2 users"
    assert Opcode.NEGATE not in opcodes(text)
    assert Opcode.NEGATE in opcodes(text.replace("add(n, o)", "add(o, o)"))


def test_a_convert_stays_beside_what_it_may_be_fused_with() -> None:
    def text(before: str) -> str:
        return program(*ends(f"n = {before} r = bf16[4] convert(n)"), "",
                       "ROOT u = bf16[4] reverse(h), dimensions={0}", gives="bf16[4]")  # fmt: skip

    negated = text("f32[4] negate(s)")
    found = remarks(negated, pursue_full_conditional_code_motion=False)
    assert found["r"] == "it may be fused with %n"
    reasons_to_stay(PASS, negated, pursue_full_conditional_code_motion=False)
    assert Opcode.CONVERT in opcodes(text("f32[4] reshape(s)"))


def test_what_reads_the_parameter_stays() -> None:
    text = program(
        "g = f32[4] get-tuple-element(a), index=0 r = f32[4] negate(g)",
        "i = f32[4] get-tuple-element(b), index=0 r = f32[4] negate(i)",
        "l = (f32[4]) tuple(x)",
        takes=f"({V})",
        arguments="l, l",
    )
    assert remarks(text)["g"] == "it belongs to the parameter %a"
    module = moved(text)
    assert {i.opcode for i in module["c"].called[0].instructions} == {Opcode.PARAMETER}


def test_the_parameter_stays() -> None:
    text = program("r = f32[4] negate(a)", "r = f32[4] negate(b)")
    assert remarks(text)["a"] == "it is a parameter"
    assert moved(text)["c"].called[0].root.operands[0].name == "a"


def test_a_tuple_of_the_parameter_stays() -> None:
    text = program(
        *two(f"s = {V} {{o}}({{p}}) n = {V} negate(s) ROOT g = {PAIR} tuple({{p}}, n)"),
        "", f"i = {V} get-tuple-element(h), index=1 ROOT u = {V} reverse(i), dimensions={{0}}",
        gives=PAIR,
    )  # fmt: skip
    stays(text, "g", "it belongs to the parameter %a")


@pytest.mark.parametrize(
    "operation", ["reverse(s), dimensions={0}", "transpose(s), dimensions={0}", "copy(s)"]
)
def test_only_some_opcodes_move(operation: str) -> None:
    opcode = operation.partition("(")[0]
    text = program(*ends(f"r = {V} {operation}"))
    if opcode == "copy":
        assert Opcode.COPY in opcodes(text)
    else:
        stays(text, "r", f"{opcode} is not worth moving")


@pytest.mark.parametrize(
    ("operation", "more", "moves"),
    [
        ("f32[4] map(s), dimensions={0}, to_apply=each",
         "each { m = f32[] parameter(0) ROOT e = f32[] negate(m) }", True),
        ("f32[4] fusion(s), kind=kLoop, calls=each",
         "each { m = f32[4] parameter(0) ROOT e = f32[4] negate(m) }", True),
        ("f32[4] fusion(s), kind=kLoop, calls=each",
         "each { m = f32[4] parameter(0) ROOT e = f32[4] reverse(m), dimensions={0} }", False),
        ("s32[4] bitcast-convert(s)", "", True),
        ("s16[4,2] bitcast-convert(s)", "", False),
    ],
)  # fmt: skip
def test_some_opcodes_are_elementwise_at_times(operation: str, more: str, moves: bool) -> None:
    gives = operation.partition(" ")[0]
    on_true, on_false = ends(f"r = {operation}")
    if "fusion" in operation:
        on_false, more = on_false.replace("calls=each", "calls=too"), f"{more} too {more[5:]}"
    text = program(on_true, on_false, "", f"ROOT u = {gives} reverse(h), dimensions={{0}}",
                   gives=gives, more=more)  # fmt: skip
    opcode = operation.split()[1].partition("(")[0]
    if not moves:
        stays(text, "r", f"{opcode} is not worth moving")
    else:
        assert opcode in opcodes(text)


def test_a_broadcast_moves_out_only_of_the_same_value() -> None:
    def text(first: str, second: str) -> str:
        return program(
            *(f"k = f32[] constant(1) l = f32[] {o} m = f32[4] broadcast(l), dimensions={{}} "
              f"r = f32[4] add(m, m)" for o in (first, second))
        )  # fmt: skip

    assert Opcode.BROADCAST in opcodes(text("negate(k)", "negate(k)"))
    found = remarks(text("negate(k)", "floor(k)"))
    assert found["m"] == "what it repeats is not the same in all branches"


def test_a_collective_moves_out_only_where_it_leaves_all_branches() -> None:
    groups = "replica_groups={{0,1}}, use_global_device_ids=true, to_apply=ad"
    on_true, on_false = (
        f"s = {V} {o}({p}) m = {V} all-reduce(s), channel_id={n}, {groups} "
        f"ROOT g = ({V}, {V}) tuple(m, {second})"
        for p, o, n, second in (("a", "sine", 1, "s"), ("b", "cosine", 2, "m"))
    )
    text = program(
        on_true, on_false, "", f"i = {V} get-tuple-element(h), index=0 "
        f"ROOT u = {V} reverse(i), dimensions={{0}}", gives=f"({V}, {V})",
        header=", num_partitions=2",
    )  # fmt: skip
    stays(text, "g", "%m.1 would run in its branch all the same")
    assert Opcode.ALL_REDUCE in opcodes(text.replace("tuple(m, m)", "tuple(m, s)"))


@pytest.mark.parametrize(
    ("operation", "gives", "moves"),
    [
        ("all-reduce(s), channel_id={n}, {groups}", V, True),
        ("reduce-scatter(s), channel_id={n}, {groups}, dimensions={{0}}", "f32[2]{0}", False),
    ],
)
def test_only_all_reduces_may_have_channels_of_their_own(
    operation: str, gives: str, moves: bool
) -> None:
    groups = "replica_groups={{0,1}}, use_global_device_ids=true, to_apply=ad"
    on_true, on_false = (
        f"s = {V} {o}({p}) r = {gives} {operation.format(n=n, groups=groups)}"
        for p, o, n in (("a", "sine", 1), ("b", "cosine", 2))
    )
    text = program(
        on_true, on_false, "", f"ROOT u = {gives} reverse(h), dimensions={{0}}", gives=gives,
        header=", num_partitions=2",
    )  # fmt: skip
    opcode = Opcode(operation.partition("(")[0])
    if moves:
        assert opcode in opcodes(text)
    else:
        stays(text, "r", NOT_THE_SAME)
    assert opcode in opcodes(text.replace("channel_id=2", "channel_id=1"))
