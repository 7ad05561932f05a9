"""Corners of passing fewer operands to calls."""

from __future__ import annotations

from functools import partial

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Opcode

clean = partial(run_checked, "call-parameter-cleanup")

TEXT = """
f {{
  unused = f32[] parameter(0)
  x = f32[] parameter(1)
  n = f32[] negate(x)
  ROOT r = {root}
}}
ENTRY e {{
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT c = {shape} call(p, q), to_apply=f{attributes}
}}
"""


TWO = "(f32[], f32[]) tuple(n, x)"


def text(root: str, attributes: str = "") -> str:
    shape, _, _ = root.rpartition(" tuple" if root.startswith("(") else " sine")
    return TEXT.format(root=root, shape=shape, attributes=attributes)


def test_results_that_are_no_tuple_stay() -> None:
    clean(text("f32[] sine(n)"), changes=False)


def test_the_call_stays_itself() -> None:
    module = clean(text(TWO, ', metadata={op_name="jit"}'))
    call = next(module.instructions(Opcode.CALL))
    assert call.name == "c"
    assert call.attributes["metadata"] == '{op_name="jit"}'
    assert [operand.name for operand in call.operands] == ["q"]
    assert call.shape.text == "(f32[])"


def test_nothing_is_restored_where_only_operands_go() -> None:
    assert len(clean(text("(f32[]) tuple(n)")).entry) == 3


def test_sharded_results_stay() -> None:
    clean(text(TWO, ", sharding={{replicated}, {replicated}}"), changes=False)


def test_a_result_that_its_own_computation_reads_stays() -> None:
    clean("""
f {
  x = f32[] parameter(0)
  n = f32[] negate(x)
  ROOT r = (f32[], f32[]) tuple(x, n)
  g = f32[] get-tuple-element(r), index=1
  c = f32[] custom-call(g), custom_call_target="out", custom_call_has_side_effect=true
}
ENTRY e {
  p = f32[] parameter(0)
  ROOT c = (f32[], f32[]) call(p), to_apply=f
}""", changes=False)  # fmt: skip


def test_original_values_go_with_the_results() -> None:
    origin = 'origin={({"made"}, {"given"})}'
    module = clean(text(TWO, f", {origin}").replace(TWO, f"{TWO}, {origin}", 1))
    call = next(module.instructions(Opcode.CALL))
    assert call.attributes["origin"] == '{({"made"})}'
    assert call.called[0].root.attributes["origin"] == '{({"made"})}'
    assert module.entry.root.attributes["origin"] == '{({"made"}, {"given"})}'


def test_a_call_that_runs_asynchronously_keeps_its_operands() -> None:
    module = clean("""
f { unused = f32[] parameter(0) x = f32[] parameter(1) ROOT r = (f32[]) tuple(x) }
wrapped {
  y = f32[] parameter(0)
  z = f32[] parameter(1)
  ROOT c = (f32[]) call(y, z), to_apply=f
}, execution_thread="side"
ENTRY e {
  p = f32[] parameter(0)
  s = ((f32[], f32[]), (f32[])) async-start(p, p), calls=wrapped, async_execution_thread="side"
  ROOT d = (f32[]) async-done(s)
}""", changes=False)  # fmt: skip
    assert len(next(module.instructions(Opcode.CALL)).operands) == 2


def test_a_callee_may_return_nothing_of_its_own() -> None:
    module = clean("""
f { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = (f32[], f32[]) tuple(y, x) }
ENTRY e {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  c = (f32[], f32[]) call(p, q), to_apply=f
  ROOT g = f32[] get-tuple-element(c), index=0
}""")
    result = module.entry.root.operands[0]
    assert [operand.name for operand in result.operands] == ["q", "p"]
    assert next(module.instructions(Opcode.CALL)).shape.text == "()"


@pytest.mark.slow
def test_many_calls_and_callees_are_no_trouble() -> None:
    number = 25_000
    callees = "".join(
        f"""%callee.{n} (a: f32[], b: f32[]) -> (f32[], f32[]) {{
  %unused.{n} = f32[] parameter(0)
  %x.{n} = f32[] parameter(1)
  %negate.{n} = f32[] negate(%x.{n})
  ROOT %tuple.{n} = (f32[], f32[]) tuple(%negate.{n}, %unused.{n})
}}

"""
        for n in range(number)
    )
    calls = "".join(
        f"  %call.{n} = (f32[], f32[]) call(%p, %p), to_apply=%callee.{n // 2}\n"
        for n in range(2 * number)
    )
    module = clean(f"""HloModule m, is_scheduled=true

{callees}ENTRY %e (p: f32[]) -> f32[] {{
  %p = f32[] parameter(0)
{calls}  ROOT %copy = f32[] copy(%p)
}}
""")
    assert all(len(call.operands) == 1 for call in module.instructions(Opcode.CALL))
