"""Corners of merging equal computations, for all callers and for calls."""

from __future__ import annotations

from functools import partial

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

deduplicate = partial(run_checked, "computation-deduplicator")
unflatten = partial(run_checked, "unflatten-call-graph")

TEXT = """
f {{ a = f32[2,3]{{1,0}} parameter(0) ROOT n = {f} }}
g {{ a = f32[2,3]{{1,0}} parameter(0) ROOT n = {g} }}
ENTRY e {{
  p = f32[2,3]{{1,0}} parameter(0)
  c = f32[2,3] call(p), to_apply=f
  ROOT d = f32[2,3] call(p), to_apply=g
}}
"""
NEGATE = "f32[2,3] negate(a)"


@pytest.mark.parametrize(
    ("other", "merged", "unflattened"),
    [
        (NEGATE, True, True),
        (f'{NEGATE}, metadata={{op_name="x"}}', True, False),
        (f'{NEGATE}, origin={{{{"x"}}}}', True, False),
        (f'{NEGATE}, frontend_attributes={{k="v"}}', False, False),
        (f"{NEGATE}, sharding={{replicated}}", False, False),
        (f'{NEGATE}, backend_config="x"', False, False),
        ("f32[2,3]{0,1} negate(a)", False, False),
        ("f32[2,3] sine(a)", False, False),
    ],
)
def test_what_makes_a_difference(other: str, merged: bool, unflattened: bool) -> None:
    text = TEXT.format(f=NEGATE, g=other)
    assert ("g" not in deduplicate(text, changes=merged).computations) == merged
    assert ("g" not in unflatten(text, changes=unflattened).computations) == unflattened


def chain(length: int) -> str:
    lines = [f"n{n} = f32[2,3] negate({f'n{n - 1}' if n else 'a'})" for n in range(length)]
    return "\n".join(lines) + f"\nROOT r = f32[2,3] copy(n{length - 1})"


@pytest.mark.parametrize(("length", "merged"), [(126, True), (127, False)])
def test_large_computations_stay(length: int, merged: bool) -> None:
    text = TEXT.format(f=NEGATE, g=NEGATE).replace(f"ROOT n = {NEGATE}", chain(length))
    assert ("g" not in deduplicate(text, changes=merged).computations) == merged


def test_callers_of_computations_that_are_too_large_are_different() -> None:
    text = TEXT.format(f=NEGATE, g=NEGATE).replace(f"ROOT n = {NEGATE}", chain(200))
    wrappers = """
f.1 { b = f32[2,3]{1,0} parameter(0) ROOT k = f32[2,3] call(b), to_apply=f }
g.1 { b = f32[2,3]{1,0} parameter(0) ROOT k = f32[2,3] call(b), to_apply=g }
ENTRY"""
    for name in "fg":
        text = text.replace(f"call(p), to_apply={name}", f"call(p), to_apply={name}.1")
    text = text.replace("ENTRY", wrappers)
    deduplicate(text, changes=False)
    assert list(unflatten(text).computations) == ["f", "f.1", "e"]


def test_the_order_of_the_text_counts_in_schedules_only() -> None:
    f = "x = f32[2,3] negate(a) y = f32[2,3] sine(a) ROOT n = f32[2,3] add(x, y)"
    g = "y = f32[2,3] sine(a) x = f32[2,3] negate(a) ROOT n = f32[2,3] add(x, y)"
    text = TEXT.format(f="f", g="g").replace("ROOT n = f ", f).replace("ROOT n = g ", g)
    assert list(deduplicate(text).computations) == ["f", "e"]
    deduplicate(f"HloModule m, is_scheduled=true\n{text}", changes=False)


def test_the_entry_is_never_merged() -> None:
    body = "{ a = f32[] parameter(0) ROOT n = f32[] negate(a) }"
    deduplicate(f"f {body}\nENTRY e {body}", changes=False)


def test_loops_may_share_bodies_and_conditions() -> None:
    module = deduplicate("""
test { x = pred[] parameter(0) ROOT n = pred[] not(x) }
body { x = pred[] parameter(0) ROOT n = pred[] not(x) }
ENTRY e { p = pred[] parameter(0) ROOT w = pred[] while(p), condition=test, body=body }
""")
    assert len(set(module.entry.root.called)) == 1


def test_unflattening_leaves_other_callers_alone() -> None:
    module = unflatten("""
f { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
g { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
ENTRY e {
  q = pred[] parameter(0)
  p = f32[] parameter(1)
  c = f32[] call(p), to_apply=f
  d = f32[] call(c), to_apply=g
  ROOT r = f32[] conditional(q, d, d), true_computation=g, false_computation=f
}""")
    assert [c.name for c in module.entry.root.called] == ["g", "f"]
    assert {call.called[0].name for call in module.instructions(Opcode.CALL)} == {"f"}


@pytest.mark.parametrize("name", ["computation-deduplicator", "unflatten-call-graph"])
@pytest.mark.parametrize("is_deep", [False, True])
def test_many_calls_of_many_computations_are_no_trouble(name: str, is_deep: bool) -> None:
    """Two calls of computations that are all the same, or chains of computations below both."""
    number = 15_000 if not is_deep else 3_000
    callees = "".join(callee(n, calls=is_deep and n > 1) for n in range(number))
    called = range(number - 2, number) if is_deep else range(number)
    calls = "".join(
        f"  %r.{n + 1} = f32[] call(%r.{n}), to_apply=%f.{c}\n" for n, c in enumerate(called)
    )
    module = parse_module(f"""HloModule m

{callees}ENTRY %e (p: f32[]) -> f32[] {{
  %r.0 = f32[] parameter(0)
{calls}  ROOT %copy = f32[] copy(%r.{len(called)})
}}
""")
    assert create_pass(name).run(module, PassContext(wants_remarks=False))
    left = number // 2 if is_deep else 1
    assert list(module.computations) == [*(f"f.{2 * n}" for n in range(left)), "e"]


def callee(number: int, *, calls: bool) -> str:
    body = f"call(%x.{number}), to_apply=%f.{number - 2}" if calls else f"negate(%x.{number})"
    return f"""%f.{number} (x: f32[]) -> f32[] {{
  %x.{number} = f32[] parameter(0)
  ROOT %y.{number} = f32[] {body}
}}

"""


def test_a_conditional_with_many_equal_branches_is_no_trouble() -> None:
    count = 20_000
    branches = "".join(
        f"b.{n} {{\n  p.{n} = f32[] parameter(0)\n  ROOT r.{n} = f32[] negate(p.{n})\n}}\n"
        for n in range(count)
    )
    names = ", ".join(f"b.{n}" for n in range(count))
    module = parse_module(
        f"HloModule m\n{branches}ENTRY e {{\n  i = s32[] parameter(0)\n  x = f32[] parameter(1)\n"
        f"  ROOT c = f32[] conditional(i, {', '.join(['x'] * count)}), "
        f"branch_computations={{{names}}}\n}}\n"
    )
    assert create_pass("computation-deduplicator").run(module, PassContext(wants_remarks=False))
    assert list(module.computations) == ["b.0", "e"]
