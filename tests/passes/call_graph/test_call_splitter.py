"""Corners of splitting calls."""

from __future__ import annotations

from functools import partial

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Opcode

split = partial(run_checked, "call-splitter")

TEXT = """
f {{
  x = f32[4] parameter(0)
  {before}
  m = f32[4] multiply(n, x)
  ROOT r = (f32[4]) tuple(m)
}}
ENTRY e {{
  p = f32[4] parameter(0)
  c = (f32[4]) call(p), to_apply=f{attributes}
  ROOT d = f32[4] get-tuple-element(c), index=0
}}
"""


def text(before: str = "n = f32[4] negate(x)", attributes: str = "") -> str:
    return TEXT.format(before=before, attributes=attributes)


def is_multiply(instruction: object) -> bool:
    return getattr(instruction, "opcode", None) is Opcode.MULTIPLY


def test_a_predicate_may_say_what_the_boundary_is() -> None:
    module = split(text(), boundary=is_multiply)
    calls = list(module.instructions(Opcode.CALL))
    assert [call.called[0].name for call in calls] == ["f.first", "f.second"]


def test_a_predicate_may_refuse_calls() -> None:
    split(
        text(),
        changes=False,
        boundary=is_multiply,
        call_predicate=lambda call: call.name != "c",
    )


def test_calls_of_other_threads_and_composites_stay_whole() -> None:
    split(text(), changes=False, boundary=is_multiply, execution_threads=["side"])
    composite = ', is_composite=true, frontend_attributes={composite.name="a.b"}'
    split(text(attributes=composite), changes=False, boundary=is_multiply)


def test_the_sharding_of_the_result_is_not_that_of_the_first_part() -> None:
    module = split(text(attributes=", sharding={{replicated}}"), boundary=is_multiply)
    first, second = module.instructions(Opcode.CALL)
    assert "sharding" not in first.attributes
    assert second.attributes["sharding"] == "{{replicated}}"


def test_both_parts_own_what_their_fusions_and_asynchronous_operations_call() -> None:
    before = "n = f32[4] fusion(x), kind=kLoop, calls=fused"
    fused = "fused { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }"
    module = split(fused + text(before), boundary=is_multiply)
    assert all(len(fusion.called[0].callers) == 1 for fusion in module.instructions(Opcode.FUSION))


def test_nothing_is_split_between_a_start_and_its_done() -> None:
    before = """
  s = (f32[4], f32[4], u32[]) copy-start(x)
  n = f32[4] copy-done(s)"""
    split(text(before), boundary=is_multiply)
    split(text(before), changes=False, boundary=["copy-done"])


def test_effects_happen_once() -> None:
    before = 'n = f32[4] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true'
    module = split(text(before), boundary=is_multiply)
    called = [call.called[0] for call in module.entry.instructions if call.called]
    effects = [i for c in called for i in c.instructions if i.opcode is Opcode.CUSTOM_CALL]
    assert len(effects) == 1


@pytest.mark.slow
def test_many_calls_share_two_parts() -> None:
    number = 50_000
    calls = "".join(
        f"  %call.{n} = (f32[]) call(%element.{n}), to_apply=%f\n"
        f"  %element.{n + 1} = f32[] get-tuple-element(%call.{n}), index=0\n"
        for n in range(number)
    )
    module = split(
        f"""HloModule m

%f (x: f32[]) -> (f32[]) {{
  %x = f32[] parameter(0)
  %negate = f32[] negate(%x)
  %multiply = f32[] multiply(%negate, %x)
  ROOT %tuple = (f32[]) tuple(%multiply)
}}

ENTRY %e (p: f32[]) -> f32[] {{
  %element.0 = f32[] parameter(0)
{calls}  ROOT %copy = f32[] copy(%element.{number})
}}
""",
        boundary=is_multiply,
    )
    assert list(module.computations) == ["f", "e", "f.first", "f.second"]
    assert sum(module.computations["f.second"].callers.values()) == number
