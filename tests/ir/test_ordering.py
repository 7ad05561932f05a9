"""Orders that respect dependencies, and move nothing without need."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Module, Opcode
from hloopt.ir.ordering import (
    computation_post_order,
    depends_on,
    depth_first,
    post_order,
    post_order_before_printing,
    stable_computation_order,
    stable_order,
)
from hloopt.text import parse_module

TEXT = """
f { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
g { y = f32[] parameter(0) ROOT c = f32[] call(y), to_apply=f }
ENTRY e {
  q = f32[] parameter(1)
  dead = f32[] sine(q)
  p = f32[] parameter(0)
  late = f32[] cosine(p)
  ROOT s = f32[] subtract(p, q), control-predecessors={late}
}
"""


@pytest.fixture
def module() -> Module:
    return parse_module(TEXT)


def test_depth_first_puts_what_is_needed_first() -> None:
    needs = {"a": "bc", "b": "d", "c": "d", "d": "", "e": "a"}
    assert depth_first("ea", needs.__getitem__) == ["d", "b", "c", "a", "e"]


def test_depth_first_finds_cycles_and_needs_no_recursion() -> None:
    assert depth_first([0], lambda n: [n + 1] if n < 50_000 else [])[-1] == 0
    with pytest.raises(HloVerifyError, match="depends on itself"):
        depth_first([0], lambda n: [(n + 1) % 5])
    with pytest.raises(HloVerifyError, match="depends on itself"):
        depth_first([0], lambda n: [n])


def test_post_order_goes_from_what_nobody_uses(module: Module) -> None:
    assert [i.name for i in post_order(module.entry)] == ["q", "dead", "p", "late", "s"]


def test_the_stable_order_is_the_text_where_that_is_valid(module: Module) -> None:
    entry = module.entry
    assert stable_order(entry) == list(entry.instructions)
    first = next(iter(entry.instructions))
    made = entry.add(Opcode.NEGATE, first.shape, [first])
    entry.root.replace_operand(1, made)
    order = [i.name for i in stable_order(entry)]
    assert order == ["q", "dead", "p", "late", "negate", "s"]


def test_computations_come_callees_first(module: Module) -> None:
    assert [c.name for c in stable_computation_order(module)] == ["f", "g", "e"]
    assert [c.name for c in computation_post_order(module)] == ["f", "g", "e"]
    made = module.add_computation("h")
    made.set_root(made.add(Opcode.CONSTANT, module.entry.root.shape, payload="1"))
    module.entry.add(Opcode.CALL, made.root.shape, called=(made,))
    assert [c.name for c in stable_computation_order(module)] == ["f", "g", "h", "e"]
    assert [c.name for c in computation_post_order(module)] == ["f", "g", "h", "e"]


def test_dependence_follows_operands_and_control_edges(module: Module) -> None:
    by_name = {i.name: i for i in module.entry.instructions}
    assert depends_on(by_name["s"], by_name["late"])
    assert depends_on(by_name["s"], by_name["p"])
    assert not depends_on(by_name["s"], by_name["dead"])
    assert depends_on(by_name["s"], by_name["dead"], most=1) is None
    assert not depends_on(by_name["p"], by_name["s"])


def test_what_depends_on_itself_has_no_order(module: Module) -> None:
    root = module.entry.root
    root.add_control_predecessor(root)
    with pytest.raises(HloVerifyError, match="depends on itself"):
        stable_order(module.entry)


def loops(first: str, second: str) -> str:
    """A scheduled module whose two loops run as named; those of `a` are printed first."""
    computations = "".join(
        f"cond.{n} {{ c.{n} = (s32[]) parameter(0) ROOT t.{n} = pred[] constant(false) }}\n"
        f"body.{n} {{ ROOT b.{n} = (s32[]) parameter(0) }}\n"
        for n in "ab"
    )
    run = {n: f"w.{n} = (s32[]) while(p), condition=cond.{n}, body=body.{n}" for n in "ab"}
    return f"""HloModule m, is_scheduled=true
{computations}ENTRY e {{
  p = (s32[]) parameter(0)
  {run[first]}
  {run[second]}
  ROOT r = ((s32[]), (s32[])) tuple(w.a, w.b)
}}
"""


def test_before_printing_computations_stood_as_they_are_printed() -> None:
    printed = ["body.a", "cond.a", "body.b", "cond.b", "e"]
    for first, second in ("ab", "ba"):
        text = loops(first, second)
        assert [c.name[-1] for c in computation_post_order(parse_module(text))][::2] == [
            *(first, second, "e")
        ]
        before = post_order_before_printing(parse_module(text))
        assert sorted(c.name for c in before) == sorted(printed)
        assert [c.name[-1] for c in before][::2] == ["a", "b", "e"]
    unscheduled = parse_module(loops("b", "a").replace(", is_scheduled=true", ""))
    assert post_order_before_printing(unscheduled) == computation_post_order(unscheduled)


def test_before_printing_unread_parameters_stood_in_front_and_the_root_behind() -> None:
    (entry,) = parse_module("""
HloModule m, is_scheduled=true
ENTRY e {
  b = f32[4] parameter(1)
  n = f32[4] negate(b)
  r = f32[4] sine(b)
  d = f32[4] parameter(3)
  c = f32[4] parameter(2)
  a = f32[4] parameter(0)
  ROOT s = f32[4] cosine(r)
  t = f32[4] tanh(d)
}
""").computations.values()
    assert "".join(i.name for i in post_order(entry)) == "bncarsdt"
    assert "".join(i.name for i in post_order(entry, before_printing=True)) == "acbndtrs"


def test_computations_that_a_text_implies_keep_their_place() -> None:
    module = parse_module("""
HloModule m, is_scheduled=true
f { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }
ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4]) negate-start(p)
  d = f32[4] negate-done(s)
  ROOT c = f32[4] call(d), to_apply=f
}
""")
    assert post_order_before_printing(module) == computation_post_order(module)
