"""Corners of flattening."""

from __future__ import annotations

from tests.properties.consistency import assert_consistent

from hloopt.passes.base import PassContext
from hloopt.passes.registry import create_pass
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
