"""Corners of giving conditionals tuples."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

PASS = "conditional-canonicalizer"
BRANCHES = """HloModule m
t { a = f32[] parameter(0) ROOT r = f32[] sine(a) }
f { ROOT a = f32[] parameter(0) }
"""
ENTRY = """ENTRY e { p = f32[] parameter(0) q = pred[] parameter(1)
  c = f32[] conditional(q, p, p), true_computation=t, false_computation=f
  ROOT d = f32[] call(c), to_apply=f }
"""


def test_a_branch_that_others_call_is_copied_once() -> None:
    module = run_checked(PASS, BRANCHES + ENTRY)
    assert list(module.computations) == ["t", "f", "e", "f.clone"]
    assert module.computations["f"].root.shape.text == "f32[]"
    for name in ("t", "f.clone"):
        assert module.computations[name].parameters[0].shape.text == "(f32[])"
        assert module.computations[name].root.shape.text == "(f32[])"
    reference = Reference(parse_module(BRANCHES + ENTRY), RunSettings())
    assert reference.compare(module) is None


def test_control_dependencies_and_annotations_stay_where_they_were() -> None:
    module = run_checked(
        PASS,
        """HloModule m
        t { a = f32[] parameter(0), sharding={replicated}, origin={{"v" {1}}}
          b = f32[] negate(a), control-predecessors={a}
          ROOT r = f32[] add(a, b) }
        ENTRY e { p = f32[] parameter(0) q = pred[] parameter(1)
          n = f32[] sine(p)
          ROOT c = f32[] conditional(q, p, p), true_computation=t, false_computation=t,
            control-predecessors={n}, sharding={replicated}, metadata={op_name="choice"} }
        """,
    )
    (parameter,) = module.computations["t"].parameters
    assert dict(parameter.attributes) == {
        "sharding": "{{replicated}}",
        "origin": '{({"v" {1}})}',
    }
    assert [i.name for i in parameter.control_successors] == ["b"]
    (choice,) = module.instructions(Opcode.CONDITIONAL)
    assert choice.attributes["sharding"] == "{{replicated}}"
    assert [i.name for i in choice.control_predecessors] == ["n"]
    value = module.entry.root
    assert value.attributes["sharding"] == "{replicated}"
    assert value.attributes["metadata"] == '{op_name="choice"}'


def test_a_mixed_conditional_gets_only_what_it_lacks() -> None:
    module = run_checked(
        PASS,
        """HloModule m
        t { a = (f32[], f32[]) parameter(0) ROOT r = f32[] get-tuple-element(a), index=1 }
        f { a = () parameter(0) ROOT r = f32[] constant(1) }
        k { a = token[] parameter(0) ROOT r = f32[] constant(2) }
        ENTRY e { p = (f32[], f32[]) parameter(0) i = s32[] parameter(1) u = () tuple()
          w = token[] after-all()
          ROOT c = f32[] conditional(i, p, u, w), branch_computations={t, f, k} }
        """,
    )
    (choice,) = module.instructions(Opcode.CONDITIONAL)
    assert [o.shape.text for o in choice.operands[1:]] == ["(f32[], f32[])", "()", "(token[])"]
    assert choice.shape.text == "(f32[])"


def test_branches_that_take_and_give_tuples_stay() -> None:
    text = """HloModule m
    t { ROOT a = (f32[]) parameter(0) }
    ENTRY e { p = (f32[]) parameter(0) q = pred[] parameter(1)
      c = (f32[]) conditional(q, p, p), true_computation=t, false_computation=t
      ROOT d = (f32[]) call(c), to_apply=t }
    """
    run_checked(PASS, text, changes=False)


def test_schedules_stay_valid() -> None:
    scheduled = (BRANCHES + ENTRY).replace("HloModule m", "HloModule m, is_scheduled=true")
    module = run_checked(PASS, scheduled)
    names = [i.name for i in module.entry.instructions]
    assert names[-2:] == ["get-tuple-element.2", "d"]


def test_conditionals_that_run_asynchronously_keep_their_branches() -> None:
    text = """w { q = pred[] parameter(0) a = f32[] parameter(1)
      ROOT c = f32[] conditional(q, a, a), true_computation=t, false_computation=f }
    ENTRY e { p = f32[] parameter(0) q = pred[] parameter(1)
      s = ((pred[], f32[]), f32[], u32[]) async-start(q, p), calls=w
      d = f32[] async-done(s)
      ROOT x = f32[] conditional(q, d, p), true_computation=t, false_computation=f }
    """
    module = run_checked(PASS, BRANCHES + text)
    assert [c.name for c in module.computations["w"].root.called] == ["t", "f"]
    choice = module.entry.root.operands[0]
    assert [c.name for c in choice.called] == ["t.clone", "f.clone"]


def test_a_copied_branch_starts_asynchronous_work_of_its_own() -> None:
    text = """HloModule m
work { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }
branch {
  x = f32[4] parameter(0)
  start = ((f32[4]), f32[4], s32[]) async-start(x), calls=work
  ROOT done = f32[4] async-done(start)
}
other { ROOT x = f32[4] parameter(0) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[4] parameter(1)
  called = f32[4] call(x), to_apply=branch
  chosen = f32[4] conditional(p, x, x), true_computation=branch, false_computation=other
  ROOT sum = f32[4] add(called, chosen)
}
"""
    module = run_checked(PASS, text)
    starts = list(module.instructions(Opcode.ASYNC_START))
    assert len(starts) == 2
    assert starts[0].called != starts[1].called
    assert verify_module(parse_module(print_module(module))) == []


def test_a_branch_gets_only_the_tuples_it_lacks() -> None:
    for takes, gives in ((True, False), (False, True), (False, False)):
        element = "a = f32[] get-tuple-element(p), index=0" if takes else ""
        body = f"p = {'(f32[])' if takes else 'f32[]'} parameter(0) {element}"
        value = "a" if takes else "p"
        root = f"{'(f32[]) tuple' if gives else 'f32[] negate'}({value})"
        shape = "(f32[])" if gives else "f32[]"
        given = "t" if takes else "x"
        module = run_checked(
            PASS,
            f"""HloModule m
            b {{ {body} ROOT r = {root} }}
            ENTRY e {{ q = pred[] parameter(0) x = f32[] parameter(1) t = (f32[]) tuple(x)
              ROOT c = {shape} conditional(q, {given}, {given}), true_computation=b,
                false_computation=b }}
            """,
        )
        (choice,) = module.instructions(Opcode.CONDITIONAL)
        assert [o.shape.text for o in choice.operands[1:]] == ["(f32[])", "(f32[])"]
        assert choice.shape.text == choice.called[0].root.shape.text == "(f32[])"
        assert len(choice.called[0]) == (3 if gives else 4)


TWO = """HloModule m
t { a = f32[] parameter(0) ROOT r = f32[] sine(a) }
f { b = f32[] parameter(0) ROOT s = f32[] cosine(b) }
k { a = f32[] parameter(0) ROOT r = f32[] negate(a) }
w { q = pred[] parameter(0) a = f32[] parameter(1)
  ROOT later = f32[] conditional(q, a, a), true_computation=k, false_computation=k }
ENTRY e { q = pred[] parameter(0) p = f32[] parameter(1)
  s0 = ((pred[], f32[]), f32[], u32[]) async-start(q, p), calls=w
  d0 = f32[] async-done(s0)
  c = f32[] conditional(q, p, d0), true_computation=t, false_computation=f
  d = f32[] conditional(q, c, p), true_computation=t, false_computation=t
  ROOT e0 = f32[] add(c, d) }
"""


@pytest.mark.parametrize("most", [0, 1])
def test_all_conditionals_change_in_one_application(most: int) -> None:
    module = parse_module(TWO)
    context = PassContext(PASS, applications=Applications(most))
    assert create_pass(PASS).run(module, context) is (most > 0)
    said = [(r.kind, r.instruction, r.reason) for r in context.remarks]
    if not most:
        assert module.is_pristine
        assert said == []
        return
    assert context.applications.last is not None
    assert context.applications.last.instruction == "r"
    assert sorted(said) == [
        ("applied", "c", "gives a tuple, %get-tuple-element.2 is its element"),
        ("applied", "d", "gives a tuple, %get-tuple-element.3 is its element"),
        ("missed", "later", "it runs asynchronously"),
    ]
    assert verify_module(module) == []
    assert Reference(parse_module(TWO), RunSettings()).compare(module) is None
    assert module.computations["k"].root.shape.text == "f32[]"
