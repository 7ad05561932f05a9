"""Copies that copy insertion adds, and the conditions under which it adds none."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.ir import Module, Opcode
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module

_CONDITION = """condition {
  q = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(q), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(i, ten), direction=LT
}
"""
_BODY = """body {{
  p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[4] get-tuple-element(p), index=1
  b = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  n = f32[4] negate(a)
  ROOT r = (s32[], f32[4], f32[4]) tuple(next, {results})
}}
"""


def _loop(results: str, *, attribute: str = "", entry: str = "negate") -> str:
    return (
        "HloModule m\n"
        + _BODY.format(results=results)
        + _CONDITION
        + f"""ENTRY e {{
  zero = s32[] constant(0)
  start = s32[] negate(zero)
  x = f32[4] parameter(0)
  u = f32[4] {entry}(x)
  v = f32[4] abs(x)
  s = (s32[], f32[4], f32[4]) tuple(start, u, v)
  ROOT w = (s32[], f32[4], f32[4]) while(s), condition=condition, body=body{attribute}
}}
"""
    )


def _copies(text: str, **options: object) -> list[str]:
    """The computations in which there are copies after the pass."""
    module = parse_module(text)
    create_pass("copy-insertion", options).run(module, PassContext())
    return _places(module)


def _places(module: Module) -> list[str]:
    return sorted(copy.parent.name for copy in module.instructions(Opcode.COPY))


def test_a_state_that_each_trip_replaces_in_place_needs_no_copy() -> None:
    assert _copies(_loop("n, b")) == []


def test_a_swapped_state_needs_copies_in_the_body() -> None:
    assert set(_copies(_loop("b, a"))) == {"body"}


def test_a_value_that_is_read_after_its_successor_is_made_needs_a_copy() -> None:
    """`a` is handed on as the other element after its own place is overwritten by `n`."""
    assert _copies(_loop("n, a")) == ["body"]


def test_arguments_of_a_program_are_copied_before_a_loop_overwrites_them() -> None:
    text = _loop("n, b").replace("u = f32[4] negate(x)\n", "").replace("(start, u", "(start, x")
    assert _copies(text) == ["e"]
    aliased = text.replace("HloModule m", "HloModule m, input_output_alias={ {1}: (0, {}) }")
    other = """  one = f32[] constant(1)
  v = f32[4] broadcast(one), dimensions={}
"""
    assert _copies(aliased.replace("  v = f32[4] abs(x)\n", other)) == []


def test_a_loop_that_refuses_copies_gets_none() -> None:
    attribute = ', frontend_attributes={xla_disable_while_loop_copies="true"}'
    assert "body" in _copies(_loop("b, a"))
    assert "body" not in _copies(_loop("b, a", attribute=attribute))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("ROOT x = f32[4] parameter(0)", ["e"]),
        ("ROOT k = f32[2] constant({1,2})", ["e"]),
        (
            "x = f32[4] parameter(0)\n  n = f32[4] negate(x)\n"
            "  ROOT t = (f32[4], f32[4]) tuple(n, n)",
            ["e"],
        ),
        ("x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x)", []),
        ("ROOT t = () tuple()", []),
        ("ROOT x = f32[0] parameter(0)", ["e"]),
    ],
)
def test_results_that_are_arguments_constants_or_given_twice_are_copied(
    result: str, expected: list[str]
) -> None:
    assert _copies(f"HloModule m\nENTRY e {{\n  {result}\n}}\n") == expected


def test_an_argument_that_is_aliased_with_a_result_is_returned_without_a_copy() -> None:
    text = "HloModule m{}\nENTRY e {{\n  ROOT x = f32[4] parameter(0)\n}}\n"
    assert _copies(text.format("")) == ["e"]
    assert _copies(text.format(", input_output_alias={ {}: (0, {}) }")) == []


def test_what_is_written_in_place_is_copied_while_somebody_reads_it_later() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[] parameter(1)
  n = f32[4] negate(x)
  part = f32[1] constant({5})
  d = f32[4] dynamic-update-slice(n, part, i)
  ROOT t = (f32[4], f32[4]) tuple(d, later)
}
"""
    reads = {"later": "later = f32[4] add(n, d)", "earlier": "later = f32[4] exponential(x)"}
    assert _copies(text.replace("  ROOT", f"  {reads['later']}\n  ROOT")) == ["e"]
    assert _copies(text.replace("  ROOT", f"  {reads['earlier']}\n  ROOT")) == []


def test_shared_callees_are_refused() -> None:
    text = """HloModule m
f { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
ENTRY e {
  x = f32[] parameter(0)
  a = f32[] call(x), to_apply=f
  ROOT b = f32[] call(a), to_apply=f
}
"""
    with pytest.raises(PassRefused, match="Call graph must be flattened") as refused:
        _copies(text)
    assert "flatten-call-graph" in (refused.value.help or "")


def test_only_computations_of_the_given_threads_get_copies() -> None:
    text = "HloModule m\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n"
    assert _copies(text, execution_threads=["other"]) == []
    assert _copies(text, execution_threads=["main"]) == ["e"]


def test_copies_that_change_the_layout_stay() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  c = f32[2,3]{0,1} copy(x)
  n = f32[2,3]{0,1} negate(c)
  d = f32[2,3]{0,1} copy(n)
  ROOT r = f32[2,3]{0,1} negate(d)
}
"""
    module = parse_module(text)
    create_pass("remove-unnecessary-copies").run(module, PassContext())
    create_pass("dce").run(module, PassContext())
    assert [copy.name for copy in module.instructions(Opcode.COPY)] == ["c"]


def test_an_asynchronous_copy_that_is_elided_goes() -> None:
    text = """HloModule m
wrapped {
  p = f32[8] parameter(0)
  ROOT c = f32[8] copy(p)
}
ENTRY e {
  x = f32[8] parameter(0)
  s = ((f32[8]), f32[8], s32[]) async-start(x), calls=wrapped
  ROOT d = f32[8] async-done(s)
}
"""
    module = parse_module(text)
    assert create_pass("remove-unnecessary-copies").run(module, PassContext())
    assert [i.opcode for i in module.computations["wrapped"].instructions] == [Opcode.PARAMETER]
    assert verify_module(module, ANY_TARGET) == []


def test_a_schedule_stays_one() -> None:
    module = parse_module(_loop("b, a").replace("HloModule m", "HloModule m, is_scheduled=true"))
    assert MemoryAnalysis.of(module).ranges.conflicts
    create_pass("copy-insertion").run(module, PassContext())
    assert module.is_scheduled
    for computation in module.computations.values():
        seen: set[object] = set()
        for instruction in computation.instructions:
            assert seen.issuperset(instruction.operands)
            seen.add(instruction)
    assert MemoryAnalysis.of(module).ranges.conflicts == 0
