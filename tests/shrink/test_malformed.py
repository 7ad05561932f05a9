"""Modules that nobody verified: what is wrong is told, with its place."""

from __future__ import annotations

import pytest

from hloopt.interpreter.errors import RunError
from hloopt.shrink import plan_shrink
from hloopt.text import parse_module

MALFORMED = {
    "no slice": "ROOT r = f32[4] slice(x)",
    "more dimensions in slice": "ROOT r = f32[4] slice(x), slice={[0:4], [0:1]}",
    "no such dimension": "ROOT r = f32[8] transpose(x), dimensions={5}",
    "broadcast to nowhere": "ROOT r = f32[8] broadcast(x), dimensions={3}",
    "no tuple": "ROOT r = f32[8] get-tuple-element(x), index=0",
    "no such operand": "ROOT r = f32[8] add()",
    "a number that is none": "ROOT r = s32[8] iota(), iota_dimension=first",
    "called what takes more": "ROOT r = f32[] call(), to_apply=add",
    "a loop without state": "ROOT r = f32[] while(), condition=add, body=add",
    "an alias to nowhere": "ROOT r = f32[8] negate(x)",
    "a layout of another entry": "ROOT r = f32[8] negate(x)",
    "a literal of another shape": "ROOT r = f32[2,2] constant({1, 2})",
}
HEADERS = {
    "an alias to nowhere": ", input_output_alias={ {}: (5, {}, must-alias) }",
    "a layout of another entry": ", entry_computation_layout={()->f32[8]{0}}",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_modules_are_an_error_with_a_place(case: str) -> None:
    text = f"""HloModule m{HEADERS.get(case, "")}
add {{ left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right) }}
ENTRY e {{ x = f32[8] parameter(0)
  {MALFORMED[case]} }}"""
    module = parse_module(text)
    with pytest.raises(RunError) as caught:
        plan_shrink([module], 0).apply(module)
    assert caught.value.code == "HLO507"
    assert caught.value.span is not None


def test_what_is_nested_too_deeply_cannot_be_shrunk() -> None:
    callees = "level0 { ROOT p0 = f32[2] parameter(0) }\n" + "\n".join(
        f"level{n} {{ p{n} = f32[2] parameter(0)"
        f" ROOT r{n} = f32[2] call(p{n}), to_apply=level{n - 1} }}"
        for n in range(1, 3000)
    )
    entry = "ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] call(p), to_apply=level2999 }"
    module = parse_module(f"HloModule m\n{callees}\n{entry}")
    with pytest.raises(RunError, match="nested too deeply") as raised:
        plan_shrink([module])
    assert raised.value.code == "HLO507"


def test_tuples_may_be_nested_deeply() -> None:
    shape = "(" * 3000 + "f32[2]" + ")" * 3000
    module = parse_module(f"HloModule m ENTRY e {{ ROOT p = {shape} parameter(0) }}")
    plan_shrink([module])
