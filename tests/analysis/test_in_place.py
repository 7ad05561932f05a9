"""The results that lie where an operand lies."""

from __future__ import annotations

import pytest

from hloopt.analysis.in_place import InPlace, InPlacePair
from hloopt.ir import Instruction
from hloopt.text import parse_module

PARAMETERS = """  a = f32[8] parameter(0)
  u = f32[1] parameter(1)
  i = s32[] parameter(2)
  t = (f32[8], f32[8]) parameter(3)
  s = (s32[]) parameter(4)
"""


def root_of(line: str, before: str = "") -> Instruction:
    text = f"HloModule m\n{before}\nENTRY e {{\n{PARAMETERS}  ROOT {line}\n}}\n"
    return parse_module(text).entry.root


def pairs(line: str, before: str = "") -> list[InPlacePair]:
    return InPlace().pairs(root_of(line, before))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("r = f32[8] dynamic-update-slice(a, u, i)", [((), 0, ())]),
        ("r = f32[<=8] set-dimension-size(a, i), dimensions={0}", [((), 0, ())]),
        ("r = f32[8] negate(a)", []),
        ("r = f32[8] collective-permute(a), source_target_pairs={{0,1}}", []),
        (
            "r = f32[8] collective-permute(a, a, s, s), source_target_pairs={{0,1}}, "
            "slice_sizes={{4}}",
            [((), 1, ())],
        ),
        (
            'r = (f32[8], f32[8]) custom-call(a, a), custom_call_target="f", '
            "output_to_operand_aliasing={{0}: (1, {}), {1}: (0, {})}",
            [((0,), 1, ()), ((1,), 0, ())],
        ),
        (
            "r = f32[8] all-reduce-start(a), to_apply=add",
            [((), 0, ())],
        ),
        (
            "r = (f32[8], f32[1]) all-reduce-start(a, u), to_apply=add",
            [((0,), 0, ()), ((1,), 1, ())],
        ),
    ],
)
def test_pairs_by_opcode_and_annotation(line: str, expected: list[InPlacePair]) -> None:
    add = "add { x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y) }"
    assert pairs(line, add) == expected


def test_an_asynchronous_done_follows_its_start() -> None:
    module = parse_module("""HloModule m
f {
  x = f32[8] parameter(0)
  ROOT y = f32[8] custom-call(x), custom_call_target="f"
}
ENTRY e {
  a = f32[8] parameter(0)
  b = ((f32[8]), f32[8], u32[]) async-start(a), calls=f, output_to_operand_aliasing={{1}: (0, {})}
  ROOT c = f32[8] async-done(b)
}
""")
    assert InPlace().pairs(module.entry.root) == [((), 0, (0, 0))]


BODY = """f {{ x = f32[1] parameter(0)
  y = f32[8] parameter(1)
  z = s32[] parameter(2)
{lines} }}"""


@pytest.mark.parametrize(
    ("lines", "shape", "expected"),
    [
        ("  ROOT d = f32[8] dynamic-update-slice(y, x, z)", "f32[8]", [((), 1, ())]),
        (
            "  b = f32[8] bitcast(y)\n  d = f32[8] dynamic-update-slice(b, x, z)\n"
            "  ROOT c = f32[2,4] bitcast(d)",
            "f32[2,4]",
            [((), 1, ())],
        ),
        (
            "  n = f32[8] negate(y)\n  ROOT d = f32[8] dynamic-update-slice(n, x, z)",
            "f32[8]",
            [],
        ),
        (
            "  n = f32[8] negate(y)\n  d = f32[8] dynamic-update-slice(y, x, z)\n"
            "  ROOT t = (f32[8], f32[8]) tuple(n, d)",
            "(f32[8], f32[8])",
            [((1,), 1, ())],
        ),
        ("  ROOT n = f32[8] negate(y)", "f32[8]", []),
    ],
)
def test_a_fusion_works_in_place_where_its_root_updates_a_parameter(
    lines: str, shape: str, expected: list[InPlacePair]
) -> None:
    line = f"r = {shape} fusion(u, a, i), kind=kLoop, calls=f"
    assert pairs(line, BODY.format(lines=lines)) == expected


def test_a_fusion_in_a_fusion_passes_on_what_it_updates() -> None:
    inner = BODY.format(lines="  ROOT d = f32[8] dynamic-update-slice(y, x, z)")
    outer = """g { k = f32[8] parameter(0)
  l = f32[1] parameter(1)
  m = s32[] parameter(2)
  ROOT h = f32[8] fusion(l, k, m), kind=kLoop, calls=f }"""
    line = "r = f32[8] fusion(a, u, i), kind=kLoop, calls=g"
    assert pairs(line, inner + "\n" + outer) == [((), 0, ())]
