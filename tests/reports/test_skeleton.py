"""The plot of a program: the steps of programs, and their lines."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from hloopt.analysis.cost import CostAnalysis
from hloopt.reports.skeleton.plot import Amounts, Kind, Step, loops_of, operations_of
from hloopt.reports.skeleton.program import Skeleton, find_skeleton
from hloopt.reports.skeleton.terminal import render_skeleton
from hloopt.text import parse_module

# -- programs -------------------------------------------------------------------------------------

PROGRAM = """HloModule m, num_partitions=4
sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}}
body {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  d = f32[8,8] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[8,8] all-reduce(d), replica_groups={{{{0,1}},{{2,3}}}}, channel_id=1,
    use_global_device_ids=true, to_apply=sum
  ROOT t = (s32[], f32[8,8]) tuple(next, r)
}}
condition {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] {limit}
  ROOT less = pred[] compare(i, n), direction=LT
}}
yes {{
  p = f32[8,8] parameter(0)
  ROOT c = f32[8,8] custom-call(p), custom_call_target="kernel"
}}
no {{
  ROOT p = f32[8,8] parameter(0)
}}
ENTRY e {{
  a = f32[8,8] parameter(0)
  which = pred[] parameter(1)
  zero = s32[] constant(0)
  state = (s32[], f32[8,8]) tuple(zero, a)
  loop = (s32[], f32[8,8]) while(state), condition=condition, body=body
  y = f32[8,8] get-tuple-element(loop), index=1
  s = f32[8,8] custom-call(y), custom_call_target="Sharding", sharding={{replicated}}
  ROOT r = f32[8,8] conditional(which, s, s), true_computation=yes, false_computation=no
}}
"""


def skeleton(limit: str = "constant(5)") -> Skeleton:
    return find_skeleton(parse_module(PROGRAM.format(limit=limit)), None)


def test_loops_branches_and_operations_of_a_program() -> None:
    loop, conditional = skeleton().steps
    assert (loop.kind, loop.count, loop.is_counted) == (Kind.LOOP, 5, True)
    assert [each.text for each in loop.below] == [
        "dot f32 8x8 · 8x8",
        "all-reduce f32 256 B, 2 x 2 devices",
    ]
    assert loop.amounts.flops >= 5 * 2 * 8**3
    assert conditional.kind is Kind.CONDITIONAL
    assert [[each.text for each in branch.below] for branch in conditional.below] == [
        ["kernel"],
        [],
    ]
    assert dict(loop.operations()) == {"dot": 1, "all-reduce": 1}
    assert operations_of([loop, conditional]) == {"dot": 5, "all-reduce": 5, "kernel": 1}
    twice = Step(Kind.REPEAT, "", "", "r", Amounts(), 2, below=(loop, conditional))
    assert loops_of([twice, loop]) == {5: 3}


def test_a_loop_of_unknown_trips_is_said_to_be_one() -> None:
    found = skeleton('custom-call(), custom_call_target="n"')
    assert (found.steps[0].count, found.steps[0].is_counted) == (1, False)
    assert found.notes == ("loops whose trip count is not known take one trip: %loop",)


def test_a_loop_has_what_its_condition_does() -> None:
    counts = (
        "counts {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b)\n}"
    )
    reduced = """ar = s32[] all-reduce(i), replica_groups={{0,1},{2,3}}, channel_id=2,
    use_global_device_ids=true, to_apply=counts
  ROOT less"""
    text = PROGRAM.format(limit="constant(5)").replace("body {", f"{counts}\nbody {{", 1)
    text = text.replace("ROOT less", reduced)
    found = find_skeleton(parse_module(text), None)
    loop = found.steps[0]
    assert operations_of([loop]) == {"dot": 5, "all-reduce": 10}
    plain = skeleton()
    (condition,) = (c for c in found.module.computations.values() if c.name == "condition")
    ar = found.module["ar"]
    assert ar.parent is condition
    more = found.total.bytes - plain.total.bytes
    assert more == 6 * CostAnalysis(found.module).of(ar).bytes_accessed


def test_a_conditional_has_a_line_whatever_is_in_it() -> None:
    text = PROGRAM.format(limit="constant(5)")
    text = text.replace('custom-call(p), custom_call_target="kernel"', "negate(p)")
    assert [s.kind for s in find_skeleton(parse_module(text), None).steps] == [
        Kind.LOOP,
        Kind.CONDITIONAL,
    ]


def test_a_target_with_blanks_is_counted_whole() -> None:
    text = PROGRAM.format(limit="constant(5)").replace('"kernel"', '"my kernel"')
    found = find_skeleton(parse_module(text), None)
    assert operations_of(found.steps)["my kernel"] == 1


@pytest.mark.parametrize("opcode", ["send", "recv"])
def test_transfers_are_told_from_other_steps(opcode: str) -> None:
    operands = "a, t" if opcode == "send" else "t"
    text = f"""HloModule m
less {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=LT
}}
ENTRY e {{
  a = f32[8] parameter(0)
  t = token[] after-all()
  s = f32[8] sort(a), dimensions={{0}}, to_apply=less
  x = (f32[8], u32[], token[]) {opcode}({operands}), channel_id=1
  ROOT d = {"token[]" if opcode == "send" else "(f32[8], token[])"} {opcode}-done(x), channel_id=1
}}
"""
    kinds = [step.kind for step in find_skeleton(parse_module(text), None).steps]
    assert kinds == [Kind.OTHER, Kind.TRANSFER]


def test_what_has_no_line_has_one_together() -> None:
    text = PROGRAM.format(limit="constant(5)")
    assert "all else" not in page_of(text)
    assert "all else" in page_of(text.replace("zero =", "q = f32[8,8] tanh(a)\n  zero ="))
    nothing = "HloModule m\nENTRY e { a = f32[8] parameter(0)\nROOT n = f32[8] negate(a) }"
    page = page_of(nothing)
    assert "no products, collectives, custom calls, loops or branches" in page
    assert "all else" not in page


def page_of(text: str) -> str:
    console = Console(file=StringIO(), width=80)
    render_skeleton(find_skeleton(parse_module(text), None), console, depth=None, lines=40)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_repeated_operations_have_their_colour() -> None:
    text = """HloModule m
ENTRY e {
  a = f32[8,8] parameter(0)
  b = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[8,8] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system="standard")
    render_skeleton(find_skeleton(parse_module(text), None), console, depth=None, lines=40)
    assert isinstance(console.file, StringIO)
    assert "\x1b[36m2 x dot" in console.file.getvalue()


def test_batched_products_have_their_batches() -> None:
    text = """HloModule m
ENTRY e {
  a = bf16[3,8,16] parameter(0)
  b = f32[3,16,4] parameter(1)
  ROOT d = f32[3,8,4] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1}
}
"""
    (found,) = find_skeleton(parse_module(text), None).steps
    assert found.text == "dot bf16·f32 3 x (8x16 · 16x4)"


def test_a_fused_product_costs_what_its_fusion_does() -> None:
    text = """HloModule m
f {
  a = f32[8,8] parameter(0)
  d = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = f32[8,8] negate(d)
}
ENTRY e {
  a = f32[8,8] parameter(0)
  ROOT fused = f32[8,8] fusion(a), kind=kOutput, calls=f
}
"""
    found = find_skeleton(parse_module(text), None)
    (one,) = found.steps
    assert (one.name, one.amounts) == ("fused", found.total)


def test_deep_nests_are_cut() -> None:
    depth = 3000
    bodies = "".join(
        f"b{n} {{\n p{n} = f32[4] parameter(0)\n"
        f" ROOT w{n} = f32[4] while(p{n}), condition=condition, body=b{n - 1}\n}}\n"
        for n in range(1, depth)
    )
    found = find_skeleton(
        parse_module(f"""HloModule m
b0 {{
  p = f32[4] parameter(0)
  ROOT k = f32[4] custom-call(p), custom_call_target="kernel"
}}
condition {{
  p = f32[4] parameter(0)
  ROOT c = pred[] constant(false)
}}
{bodies}
ENTRY e {{
  a = f32[4] parameter(0)
  ROOT r = f32[4] while(a), condition=condition, body=b{depth - 1}
}}
"""),
        None,
    )
    step, levels = found.steps[0], 0
    while step.below:
        step, levels = step.below[0], levels + 1
    assert 0 < levels <= 64
    assert found.notes == (
        "what is inside of more than 64 loops and branches counts, but has no line of its own",
    )
