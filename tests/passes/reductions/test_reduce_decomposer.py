"""Reduces whose result has another layout than their operand leaves."""

from __future__ import annotations

from tests.passes.checked_run import reasons_to_stay, run_equal, shown

from hloopt.ir import Opcode

_ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"


def program(body: str, before: str = _ADD) -> str:
    return f"HloModule m\n{before}\nENTRY e {{ {body} }}"


_TURNED = (
    "x = f32[5,3,4]{2,1,0} parameter(0) z = f32[] constant(0) "
    "ROOT r = f32[5,4]{0,1} reduce(x, z), dimensions={1}, to_apply=add"
)


def test_a_copy_gives_the_layout() -> None:
    module = run_equal("reduce-decomposer", program(_TURNED))
    assert module.entry.root.opcode is Opcode.COPY
    assert module.entry.root.operands[0].shape.layout.minor_to_major == (1, 0)


def test_a_layout_that_the_user_allows() -> None:
    text = program(_TURNED)
    assert reasons_to_stay("reduce-decomposer", text, custom_layout_allowed=lambda _: True) == []
    run_equal("reduce-decomposer", text, custom_layout_allowed=lambda _: False)


def test_the_layout_that_the_operand_leaves_stays() -> None:
    text = program(_TURNED.replace("{2,1,0}", "{0,1,2}"))
    assert reasons_to_stay("reduce-decomposer", text) == []


def test_a_convert_with_company_stays_behind_the_copy() -> None:
    text = program(
        "x = f32[5,3,4]{2,1,0} parameter(0) z = f32[] constant(0) "
        "r = f32[5,4]{0,1} reduce(x, z), dimensions={1}, to_apply=add "
        "c = bf16[5,4]{0,1} convert(r) ROOT t = (bf16[5,4]{0,1}, f32[5,4]{0,1}) tuple(c, r)"
    )
    convert = run_equal("reduce-decomposer", text).entry.root.operands[0]
    assert convert.operands[0].opcode is Opcode.COPY


def test_a_lone_convert_comes_between_and_goes_if_it_keeps_the_type() -> None:
    for kind, before in (("bf16", Opcode.CONVERT), ("f32", Opcode.REDUCE)):
        text = program(
            "x = f32[5,3,4]{2,1,0} parameter(0) z = f32[] constant(0) "
            "r = f32[5,4]{0,1} reduce(x, z), dimensions={1}, to_apply=add "
            f"ROOT c = {kind}[5,4]{{0,1}} convert(r)"
        )
        copy = run_equal("reduce-decomposer", text).entry.root
        assert (copy.opcode, copy.operands[0].opcode) == (Opcode.COPY, before)


def test_operands_of_several_layouts() -> None:
    text = program(
        "x = f32[3,4]{1,0} parameter(0) y = s32[3,4]{0,1} parameter(1) "
        "z = f32[] constant(0) w = s32[] constant(0) "
        "ROOT r = (f32[3]{0}, s32[3]{0}) reduce(x, y, z, w), dimensions={1}, to_apply=add",
        "add { a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) "
        "d = s32[] parameter(3) s = f32[] add(a, c) u = s32[] add(b, d) "
        "ROOT t = (f32[], s32[]) tuple(s, u) }",
    )
    lines = shown(run_equal("reduce-decomposer", text).entry)
    assert [line for line in lines if " copy(" in line] == ["copy = s32[3,4] copy(y)"]
