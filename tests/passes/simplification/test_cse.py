"""Corners of common subexpression elimination."""

from __future__ import annotations

from functools import partial

from tests.passes.checked_run import run_checked

from hloopt.ir import Module, Opcode

TEXT = """
f { x = f32[] parameter(0) a = f32[] sine(x) b = f32[] sine(x) ROOT s = f32[] add(a, b) }
ENTRY e {
  p = f32[] parameter(0)
  one = f32[] constant(1)
  uno = f32[] constant(1)
  c = f32[] cosine(p)
  d = f32[] cosine(p)
  g = f32[] call(c), to_apply=f
  ROOT t = (f32[], f32[], f32[], f32[], f32[]) tuple(c, d, one, uno, g)
}
"""


merge = partial(run_checked, "cse")


def names(module: Module) -> list[str]:
    return [i.name for i in module.instructions()]


def test_predicates_choose_what_is_merged() -> None:
    everything = names(merge(TEXT))
    assert everything == ["x", "a", "s", "p", "one", "c", "g", "t"]
    assert "b" in names(merge(TEXT, should_eliminate_computation=lambda c: c.is_entry))
    assert "uno" in names(merge(TEXT, should_combine_constant=lambda c: False))
    found = names(merge(TEXT, should_eliminate_instruction=lambda i: i.opcode is Opcode.SINE))
    assert "d" in found
    assert "b" not in found


def test_partition_ids_and_safe_values_without_operands_are_merged() -> None:
    module = merge("""ENTRY e {
  a = u32[] partition-id()
  b = u32[] partition-id()
  c = s32[4] iota(), iota_dimension=0, frontend_attributes={_xla_cse_safe_zero_operand="1"}
  d = s32[4] iota(), iota_dimension=0, frontend_attributes={_xla_cse_safe_zero_operand="1"}
  ROOT t = (u32[], u32[], s32[4], s32[4]) tuple(a, b, c, d)
}""")
    assert names(module) == ["a", "c", "t"]


def test_equal_iotas_count_as_one_operand() -> None:
    module = merge("""ENTRY e {
  p = s32[4] parameter(0)
  i = s32[4] iota(), iota_dimension=0
  j = s32[4] iota(), iota_dimension=0
  a = s32[4] add(p, i)
  b = s32[4] add(j, p)
  ROOT t = (s32[4], s32[4]) tuple(a, b)
}""")
    assert [i.name for i in module.entry.root.operands] == ["a", "a"]


def test_nested_effects_are_not_merged() -> None:
    merge(
        """
f { x = f32[] parameter(0) ROOT r = f32[] rng(x, x), distribution=rng_uniform }
ENTRY e {
  p = f32[] parameter(0)
  a = f32[] call(p), to_apply=f
  b = f32[] call(p), to_apply=f
  ROOT t = (f32[], f32[]) tuple(a, b)
}""",
        changes=False,
    )


def test_constants_between_domains_stay() -> None:
    merge(
        """ENTRY e {
  a = f32[] constant(1)
  b = f32[] constant(1)
  d = f32[] domain(a), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
  ROOT t = (f32[], f32[]) tuple(d, b)
}""",
        changes=False,
    )


def test_what_stays_takes_the_name_of_the_operation_it_lacks() -> None:
    module = merge("""ENTRY e {
  p = f32[] parameter(0)
  a = f32[] sine(p)
  b = f32[] sine(p), metadata={op_name="b"}
  ROOT t = (f32[], f32[]) tuple(a, b)
}""")
    assert module.entry.root.operands[0].attributes["metadata"] == '{op_name="b"}'


def test_a_predicate_stands_in_for_what_is_merged_by_default() -> None:
    """Iotas, values with effects and what must be fused are merged where it says so."""
    text = """ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  i = s32[4] iota(), iota_dimension=0
  j = s32[4] iota(), iota_dimension=0
  c = f32[4] cosine(p), frontend_attributes={MUST_FUSE="1"}
  d = f32[4] cosine(p), frontend_attributes={MUST_FUSE="1"}
  k = f32[4] custom-call(p), custom_call_target="x", custom_call_has_side_effect=true
  l = f32[4] custom-call(p), custom_call_target="x", custom_call_has_side_effect=true
  ii = s32[4] abs(i)
  jj = s32[4] negate(j)
  one = s32[] constant(1)
  two = s32[] constant(2)
  a = f32[4] add(p, q)
  b = f32[4] add(q, p), control-predecessors={a}
  ROOT t = (s32[4], s32[4], f32[4], f32[4], f32[4], f32[4], s32[], s32[], f32[4], f32[4])
    tuple(ii, jj, c, d, k, l, one, two, a, b)
}"""
    merge(text, changes=False)
    found = names(merge(text, should_eliminate_instruction=lambda i: True))
    assert sorted(found) == sorted(
        ["p", "q", "i", "c", "k", "ii", "jj", "one", "two", "a", "b", "t"]
    )
    only = merge(text, should_eliminate_instruction=lambda i: i.opcode is Opcode.COSINE)
    assert "d" not in names(only)
    assert "j" in names(only)
