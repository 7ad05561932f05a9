"""Scans in two levels, and scans as reduce-windows."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal

from hloopt.ir import Opcode

WINDOWS = "reduce-window-rewriter"
SCANS = "associative-scan-rewriter"


def windows(shape: str, window: str, result: str, *, op: str = "add", init: str = "0") -> str:
    kind = shape.partition("[")[0]
    return f"""HloModule m
f {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1) ROOT r = {kind}[] {op}(a, b) }}
ENTRY e {{
  x = {shape} parameter(0)
  i = {kind}[] {init if "(" in init else f"constant({init})"}
  ROOT r = {result} reduce-window(x, i), window={{{window}}}, to_apply=f
}}"""


@pytest.mark.parametrize(
    "text",
    [
        windows("s32[10]", "size=10 pad=9_0", "s32[10]"),
        windows("s32[10]", "size=10 pad=0_9", "s32[10]"),
        windows("s32[10]", "size=10 pad=10_0", "s32[11]"),
        windows("s32[10]", "size=10 pad=0_10", "s32[11]"),
        windows("s32[16]", "size=16 pad=15_0", "s32[16]"),  # rows and all
        windows("s32[70]", "size=70 pad=69_0", "s32[70]"),  # three levels
        windows("s32[9,3]", "size=9x1 pad=8_0x0_0", "s32[9,3]"),
        windows("s32[2,9,3]", "size=1x9x1 pad=0_0x0_9x0_0", "s32[2,10,3]"),
        windows("s32[3,9]{0,1}", "size=1x9 pad=0_0x8_0", "s32[3,9]{0,1}"),
        windows("f32[9]", "size=9 pad=8_0", "f32[9]", op="maximum", init="parameter(1)"),
        windows("s32[9]", "size=9 pad=8_0", "s32[9]", op="multiply", init="1"),
    ],
)
def test_rows_then_what_comes_before_them(text: str) -> None:
    module = run_equal(WINDOWS, text, base_length=4)
    assert [*module.instructions(Opcode.MAP)]


@pytest.mark.parametrize(
    "text",
    [
        windows("s32[4]", "size=4 pad=3_0", "s32[4]"),  # no longer than a row
        windows("s32[9]", "size=9 pad=4_4", "s32[9]"),
        windows("s32[9]", "size=3 pad=2_0", "s32[9]"),
        windows("s32[9]", "size=9 stride=2 pad=8_0", "s32[5]"),
        windows("s32[9]", "size=9 pad=8_0 rhs_reversal=1", "s32[9]"),
        windows("s32[9]", "size=9 pad=7_0", "s32[8]"),
        windows("s32[9]", "size=9 pad=8_0", "s32[9]", init="5"),
        windows("s32[9]", "size=9 pad=8_0", "s32[9]", init="parameter(1)"),
    ],
)
def test_what_only_gets_a_second_dimension(text: str) -> None:
    module = run_equal(WINDOWS, text, base_length=4)
    assert not [*module.instructions(Opcode.MAP)]
    (made,) = module.instructions(Opcode.REDUCE_WINDOW)
    assert made.shape.rank == 2


def test_a_scalar_that_is_broadcast_to_a_scalar_is_the_initial_value() -> None:
    text = scan(9, init="broadcast(k), dimensions={}").replace(
        "  i = ", "  k = s32[] constant(0) i = "
    )
    module = run_equal(SCANS, text, base_length=0)
    (window,) = module.instructions(Opcode.REDUCE_WINDOW)
    assert window.operands[1].opcode is Opcode.CONSTANT


def test_windows_over_several_arrays_get_a_second_dimension() -> None:
    text = """HloModule m
f {
  a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3)
  g = pred[] compare(a, c), direction=GE
  v = f32[] select(g, a, c)
  p = s32[] select(g, b, d)
  ROOT t = (f32[], s32[]) tuple(v, p)
}
ENTRY e {
  x = f32[9] parameter(0)
  y = s32[9] parameter(1)
  i = f32[] constant(-inf)
  j = s32[] constant(0)
  ROOT r = (f32[9], s32[9]) reduce-window(x, y, i, j), window={size=9 pad=8_0}, to_apply=f
}"""
    module = run_equal(WINDOWS, text, base_length=4)
    (made,) = module.instructions(Opcode.REDUCE_WINDOW)
    assert [element.dimensions for element in made.shape.elements] == [(9, 1), (9, 1)]
    assert [value.opcode for value in module.entry.root.operands] == [Opcode.RESHAPE] * 2
    plain = text.replace("[9]", "[9,2]").replace("size=9 pad=8_0", "size=9x1 pad=8_0x0_0")
    assert reasons_to_stay(WINDOWS, plain, base_length=4) == []


@pytest.mark.parametrize("window", ["size=10 pad=9_0", "size=3 pad=2_0"])
def test_elements_stay_as_dense_as_they_were(window: str) -> None:
    text = windows("s4[10]{0:E(4)}", window, "s4[10]{0:E(4)}", op="maximum", init="-8")
    for made in run_equal(WINDOWS, text, base_length=4).entry.instructions:
        assert made.shape.is_scalar or made.shape.layout.element_bits == 4


def test_no_rows_are_made_where_that_is_off() -> None:
    text = windows("s32[9,3]", "size=9x1 pad=8_0x0_0", "s32[9,3]")
    assert reasons_to_stay(WINDOWS, text, base_length=0) == []


def scan(size: int, *, op: str = "add", init: str = "constant(0)", more: str = "") -> str:
    return f"""HloModule m
f {{ x = s32[] parameter(0) c = s32[] parameter(1) r = s32[] {op}(x, c)
  ROOT t = (s32[], s32[]) tuple(r, r) }}
ENTRY e {{
  x = s32[{size}] parameter(0)
  i = s32[] {init}
  s = (s32[{size}], s32[]) scan(x, i), dimensions={{0}}, num_carries=1, is_associative=true,
    to_apply=f{more}
  ROOT r = s32[{size}] get-tuple-element(s), index=0
}}"""


@pytest.mark.parametrize(
    ("text", "length"),
    [
        (scan(9), 16),
        (scan(9, init="constant(5)"), 16),
        (scan(9, init="parameter(1)"), 0),
        (scan(9), 4),
        (scan(9, op="minimum", init="parameter(1)"), 4),
        (scan(1), 4),
    ],
)
def test_scans_become_windows(text: str, length: int) -> None:
    module = run_equal(SCANS, text, base_length=length)
    assert not [*module.instructions(Opcode.SCAN)]


@pytest.mark.parametrize("init", ["constant(5)", "parameter(1)"])
def test_an_initial_value_that_counts(init: str) -> None:
    assert reasons_to_stay(SCANS, scan(9, init=init), base_length=4) == [
        "reduce-windows: %i would be combined with each row"
    ]


def of_rows(init: str, *, step: str = "r = s32[3] add(x, c)") -> str:
    return f"""HloModule m
f {{ x = s32[3] parameter(0) c = s32[3] parameter(1) {step}
  ROOT t = (s32[3], s32[3]) tuple(r, r) }}
ENTRY e {{
  x = s32[3,9] parameter(0)
  {init}
  s = (s32[3,9], s32[3]) scan(x, i), dimensions={{1}}, num_carries=1, is_associative=true,
    to_apply=f
  ROOT r = s32[3,9] get-tuple-element(s), index=0
}}"""


@pytest.mark.parametrize(
    "text",
    [
        of_rows("z = s32[] constant(0) i = s32[3] broadcast(z), dimensions={}"),
        of_rows("i = s32[3] constant({0, 0, 0})"),
        of_rows(
            "i = s32[3] constant({0, 0, 0})",
            step="k = s32[] constant(1) b = s32[3] broadcast(k), dimensions={} "
            "m = s32[3] constant({1, 1, 1}) y = s32[3] multiply(x, b) "
            "z = s32[3] multiply(y, m) r = s32[3] add(z, c)",
        ),
    ],
)
def test_bodies_of_arrays_work_on_elements(text: str) -> None:
    assert not [*run_equal(SCANS, text).instructions(Opcode.SCAN)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            of_rows("i = s32[3] parameter(1)"),
            "%i is not known to be one value everywhere",
        ),
        (
            of_rows("i = s32[3] constant({0, 1, 0})"),
            "%i is not known to be one value everywhere",
        ),
        (
            of_rows(
                "i = s32[3] constant({0, 0, 0})",
                step="v = s32[3] reverse(x), dimensions={0} r = s32[3] add(v, c)",
            ),
            "%v in %f does not work element by element",
        ),
        (
            """HloModule m
f { x = s32[] parameter(0) y = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  r = s32[] add(x, c) q = s32[] add(y, d) ROOT t = (s32[], s32[], s32[], s32[]) tuple(r, q, r, q) }
ENTRY e { x = s32[9] parameter(0) i = s32[] constant(0)
  s = (s32[9], s32[9], s32[], s32[]) scan(x, x, i, i), dimensions={0}, num_carries=2,
    is_associative=true, to_apply=f
  ROOT r = s32[9] get-tuple-element(s), index=0 }""",
            "it has not one input and one carry",
        ),
    ],
)
def test_scans_that_stay(text: str, reason: str) -> None:
    assert reasons_to_stay(SCANS, text) == [f"reduce-windows: {reason}"]
