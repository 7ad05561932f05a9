"""Converts that move out of the branches where nothing else moves."""

from __future__ import annotations

import pytest
from tests.passes.control_flow.conditional_code_motion.programs import (
    PASS,
    assert_same,
    moved,
    program,
    two,
)

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


def converts(on_true: str, on_false: str, shape: str = "(bf16[4]{0})") -> str:
    return program(on_true, on_false, "", "", gives=shape).replace("  h = ", "  ROOT h = ")


@pytest.mark.parametrize(
    ("body", "moves"),
    [
        ("s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)", True),
        ("s = f32[4] {o}({p}) n = f16[4] convert(s) m = bf16[4] convert(n) "
         "ROOT r = (bf16[4]) tuple(m)", False),
        ("s = f32[4] {o}({p}) n = bf16[4] convert(s) m = f32[4] convert(n) d = f32[4] floor(m) "
         "ROOT r = (bf16[4], f32[4]) tuple(n, d)", False),
        ("s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4], bf16[4]) tuple(n, n)",
         False),
        ("s = f32[4] {o}({p}) z = f32[4] abs(s) n = bf16[4] convert(s), control-predecessors={z} "
         "ROOT r = (bf16[4]) tuple(n)", False),
    ],
)  # fmt: skip
def test_common_converts_move_out(body: str, moves: bool) -> None:
    shape = body[body.rindex("r = ") + 4 : body.rindex(" tuple")]
    text = converts(*two(body), shape)
    if moves:
        module = moved(text)
        assert module.entry.root.operands[0].opcode is Opcode.CONVERT
        text = text.replace("true_computation=t, false_computation=f", "true_computation=t, "
                            "false_computation=t")  # fmt: skip
        assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))
    else:
        assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))


def test_converts_from_different_types_stay() -> None:
    text = converts(
        "s = f32[4] sine(a) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)",
        "s = f64[4] constant({1,2,3,4}) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)",
    )
    assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))


@pytest.mark.parametrize(
    "body",
    [
        "s = f32[4] {o}({p}) n = bf16[4] convert(s) d = f32[4] floor({p}) "
        "ROOT r = (bf16[4], f32[4]) tuple(n, d)",
        "s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4], bf16[4]) tuple(n, n)",
    ],
)
def test_only_converts_of_all_branches_move_alone(body: str) -> None:
    shape = body[body.rindex("r = ") + 4 : body.rindex(" tuple")]
    text = converts(*two(body), shape)
    module = parse_module(text)
    changed = create_pass(PASS).run(module, PassContext(PASS))
    assert changed == ("tuple(n, d)" in body)
    assert_same(text, module)


def test_layouts_of_converts_differ_only_where_they_count() -> None:
    m = "[4,4]"
    on_true, on_false = (
        f"w = f32{m}{{1,0}} broadcast({p}), dimensions={{0}} s = f32{m}{{1,0}} {o}(w) "
        f"n = bf16{m}{layout} convert(s) ROOT r = (bf16{m}{layout}) tuple(n)"
        for p, o, layout in (("a", "sine", "{1,0}"), ("b", "cosine", "{0,1}"))
    )
    text = converts(on_true, on_false, f"(bf16{m}{{1,0}})")
    assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))
    assert moved(text, is_layout_sensitive=False).entry.root.operands[0].opcode is Opcode.CONVERT


def test_converts_stay_while_decisions_are_searched() -> None:
    text = converts(*two("s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)"))
    moved(text)
    options = {"search_config": "5,0,1,1"}
    assert not create_pass(PASS, options).run(parse_module(text), PassContext(PASS))


def test_converts_of_a_branch_that_another_conditional_runs_too_stay() -> None:
    alike = two("s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)")
    text = program(
        *alike,
        after="c = (bf16[4]{0}) conditional(q, x, y), true_computation=t, false_computation=g "
        "ROOT u = ((bf16[4]{0}), (bf16[4]{0})) tuple(h, c)",
        gives="(bf16[4]{0})",
        more="g { w = f32[4] parameter(0) v = bf16[4] constant({1, 2, 3, 4}) "
        "ROOT r = (bf16[4]) tuple(v) }",
    )
    assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))


def test_reads_of_what_is_converted_read_the_convert() -> None:
    alike = two("s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)")
    text = program(
        *alike,
        after="i = bf16[4] get-tuple-element(h), index=0 "
        "ROOT u = bf16[4] reverse(i), dimensions={0}",
        gives="(bf16[4]{0})",
    )
    module = moved(text)
    (read,) = [i for i in module.entry.instructions if i.opcode is Opcode.GET_TUPLE_ELEMENT]
    assert read.shape.type_name == "f32"
    assert [user.opcode for user in read.users] == [Opcode.CONVERT]
