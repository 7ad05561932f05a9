"""Corners of flattening."""

from __future__ import annotations

from tests.properties.consistency import assert_consistent

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

LOOP = """
same {{ x = pred[] parameter(0) ROOT n = pred[] not(x) }}{thread}
ENTRY e {{ p = pred[] parameter(0) ROOT w = pred[] while(p), condition=same, body=same }}
"""


def test_a_loop_whose_body_is_its_condition_gets_two_copies() -> None:
    module = parse_module(LOOP.format(thread=""))
    assert create_pass("flatten-call-graph").run(module, PassContext())
    assert [c.name for c in module.entry.root.called] == ["same.clone", "same.clone.1"]
    assert module.computations["same"].callers == {}
    assert_consistent(module)


def test_other_threads_are_left_alone() -> None:
    module = parse_module(LOOP.format(thread=', execution_thread="side"'))
    flatten = create_pass("flatten-call-graph", {"execution_threads": ["main"]})
    assert not flatten.run(module, PassContext())


def test_copies_stay_on_their_thread() -> None:
    module = parse_module(LOOP.format(thread=', execution_thread="side"'))
    assert create_pass("flatten-call-graph").run(module, PassContext())
    assert module.computations["same.clone"].execution_thread == "side"


def test_what_a_shared_computation_calls_is_not_cloned_below_a_clone() -> None:
    module = parse_module("""
leaf { x = pred[] parameter(0) ROOT n = pred[] not(x) }
test { x = pred[] parameter(0) ROOT n = pred[] not(x) }
shared { x = pred[] parameter(0) ROOT w = pred[] while(x), condition=test, body=leaf }
body { x = pred[] parameter(0) ROOT c = pred[] call(x), to_apply=shared }
cond { x = pred[] parameter(0) ROOT n = pred[] not(x) }
cond.2 { x = pred[] parameter(0) ROOT n = pred[] not(x) }
ENTRY e {
  p = pred[] parameter(0)
  v = pred[] while(p), condition=cond, body=body
  ROOT w = pred[] while(v), condition=cond.2, body=body
}
""")
    flatten = create_pass("flatten-call-graph", {"skip_cloning": "call-only"})
    assert flatten.run(module, PassContext())
    assert [name for name in module.computations if "clone" in name] == ["body.clone"]
    assert [c.name for c in module.computations["shared"].root.called] == ["leaf", "test"]


def test_a_predicate_may_say_what_stays_shared() -> None:
    module = parse_module(LOOP.format(thread=""))
    shares_all = create_pass("flatten-call-graph", {"skip_cloning": lambda computation: True})
    assert not shares_all.run(module, PassContext())
