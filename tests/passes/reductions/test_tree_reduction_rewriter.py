"""Reductions in two steps."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal

from hloopt.ir import Opcode

_REDUCER = "f {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT r = {t}[] {op}(a, b) }}"


def program(op: str, x: str, init: str, dimensions: str, result: str) -> str:
    kind = x.partition("[")[0]
    return f"""HloModule m
{_REDUCER.format(t=kind, op=op)}
ENTRY e {{
  x = {x} parameter(0)
  i = {kind}[] {init}
  ROOT r = {kind}[{result}] reduce(x, i), dimensions={{{dimensions}}}, to_apply=f
}}"""


@pytest.mark.parametrize(
    ("text", "window"),
    [
        (program("add", "f32[100]", "constant(0)", "0", ""), "{size=32 stride=32 pad=14_14}"),
        (program("add", "s32[3,65]", "constant(0)", "1", "3"),
         "{size=1x32 stride=1x32 pad=0_0x15_16}"),
        (program("multiply", "s32[40,8]", "constant(1)", "0,1", ""),
         "{size=32x8 stride=32x8 pad=12_12x0_0}"),
        (program("maximum", "f32[33]", "parameter(1)", "0", ""),
         "{size=32 stride=32 pad=15_16}"),
        (program("add", "s32[40,0]", "constant(0)", "0,1", ""),
         "{size=32x1 stride=32x1 pad=12_12x0_0}"),
    ],
)  # fmt: skip
def test_windows_come_first(text: str, window: str) -> None:
    module = run_equal("tree_reduction_rewriter", text)
    (windows,) = module.instructions(Opcode.REDUCE_WINDOW)
    assert windows.attributes["window"] == window


@pytest.mark.parametrize(("op", "init"), [
    ("add", "parameter(1)"), ("add", "constant(5)"), ("multiply", "constant(0)"),
    ("subtract", "constant(0)"),
])  # fmt: skip
def test_an_initial_value_that_counts(op: str, init: str) -> None:
    text = program(op, "s32[100]", init, "0", "")
    assert reasons_to_stay("tree_reduction_rewriter", text) == [
        "reduce-windows-first: %i would be combined with each window"
    ]


def test_a_reducer_that_rounds() -> None:
    text = """HloModule m
f { a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] add(a, b)
  n = bf16[] convert(s) ROOT r = f32[] convert(n) }
ENTRY e { x = bf16[100] parameter(0) w = f32[100] convert(x) z = s32[] constant(0)
  i = f32[] convert(z) ROOT r = f32[] reduce(w, i), dimensions={0}, to_apply=f }"""
    assert [*run_equal("tree_reduction_rewriter", text).instructions(Opcode.REDUCE_WINDOW)]


def test_short_reductions_and_those_of_the_user_stay() -> None:
    text = program("add", "s32[32,100]", "constant(0)", "0", "100")
    assert reasons_to_stay("tree_reduction_rewriter", text) == []
    assert reasons_to_stay(
        "tree_reduction_rewriter", text, reduce_window_size=8, filter=lambda _: False
    ) == ["reduce-windows-first: filter leaves it out"]
