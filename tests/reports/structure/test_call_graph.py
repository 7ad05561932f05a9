"""The report on the call graph: findings, table, tree, JSON."""

from __future__ import annotations

import json

from tests.reports.structure.pages import page

from hloopt.analysis.call_graph import CallContext, CallGraph
from hloopt.reports.structure.call_graph import CallGraphReport, report_call_graph
from hloopt.reports.structure.call_graph_terminal import render_call_table, render_call_tree
from hloopt.reports.structure.record import call_graph_to_json
from hloopt.text import parse_module

TEXT = """HloModule m

leaf {
  x = f32[] parameter(0)
  ROOT n = f32[] negate(x)
}

ENTRY e {
  p = f32[] parameter(0)
  c = f32[] call(p), to_apply=leaf
  ROOT d = f32[] call(c), to_apply=leaf
}
"""


def report_on(text: str) -> CallGraphReport:
    return report_call_graph(CallGraph.build(parse_module(text)))


def test_the_entry_comes_first_and_what_it_does_not_reach_last() -> None:
    text = """HloModule m
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }
leaf { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
step { s = f32[] parameter(0) ROOT t = f32[] call(s), to_apply=leaf }
unused { u = f32[] parameter(0) ROOT v = f32[] call(u), to_apply=leaf }
ENTRY e {
  p = f32[] parameter(0)
  v = f32[3] parameter(1)
  c = f32[] call(p), to_apply=leaf
  r = f32[] reduce(v, c), dimensions={0}, to_apply=max
  ROOT d = f32[] call(r), to_apply=step
}
"""
    report = report_on(text)
    assert [node.computation.name for node in report.nodes] == [
        "e",
        "step",
        "leaf",
        "max",
        "unused",
    ]
    assert {node.computation.name for node in report.reached} == {"e", "step", "leaf", "max"}
    assert report.contexts == {CallContext.CONTROL_FLOW: 3, CallContext.EMBEDDED: 1}
    assert report.call_sites == 5
    assert report.not_flat == {"leaf": "it is control flow and is called from 3 places"}


def test_data_has_what_the_analysis_knows() -> None:
    data = call_graph_to_json(report_on(TEXT))
    assert json.loads(json.dumps(data)) == data
    leaf, entry = data.pop("computations")
    assert data == {"module": "m", "entry": "e", "is_flattened": False}
    assert entry["callees"] == ["leaf"]
    assert entry["call_sites"][0] == {
        "instruction": "c",
        "opcode": "call",
        "context": "control_flow",
        "called": ["leaf"],
    }
    assert leaf == {
        "name": "leaf",
        "execution_thread": "main",
        "instructions": 2,
        "context": "control_flow",
        "depth": 1,
        "is_reachable": True,
        "why_not_flat": "it is control flow and is called from 2 places",
        "callers": ["e"],
        "callees": [],
        "caller_call_sites": [
            {"instruction": "c", "computation": "e"},
            {"instruction": "d", "computation": "e"},
        ],
        "call_sites": [],
    }


def test_long_names_leave_room_for_the_other_columns() -> None:
    report = report_on(TEXT.replace("leaf", "leaf" * 40).replace("d = ", f"{'d' * 90} = "))
    lines = page(render_call_table, report, top=40).splitlines()
    row = next(line for line in lines if line.startswith("leaf"))
    assert len(row) <= 80
    assert row.split() == [row.split()[0], "control", "flow", "2", "1", "1", "0", "c", "+1"]


def test_long_names_of_callers_leave_room_too() -> None:
    text = TEXT.replace("leaf", "leaf" * 20).replace(" c = ", f" {'c' * 70} = ")
    out = page(render_call_table, report_on(text.replace("call(c)", f"call({'c' * 70})")), top=40)
    assert "instrs  depth  callers  callees  called by" in out
    assert "control flow" in out


def test_many_ends_share_a_line_of_the_tree() -> None:
    reducers = "".join(
        f"r.{i} {{ a.{i} = f32[] parameter(0) b.{i} = f32[] parameter(1)"
        f" ROOT s.{i} = f32[] add(a.{i}, b.{i}) }}\n"
        for i in range(9)
    )
    reduces = "".join(
        f"  t.{i} = f32[] reduce(v, p), dimensions={{0}}, to_apply=r.{i}\n" for i in range(5)
    )
    report = report_on(
        f"HloModule m\n{reducers}ENTRY e {{\n  p = f32[] parameter(0)\n"
        f"  v = f32[3]{{0}} parameter(1)\n{reduces}  ROOT u = f32[] negate(p)\n}}\n"
    )
    out = page(render_call_tree, report, top=40)
    assert "└─ 5 embedded (reduce x 5)\n4 computations called by nothing\n" in out


def test_a_deep_tree_says_how_deep_it_is() -> None:
    depth = 3000
    links = "".join(
        f"f.{i} {{ p.{i} = f32[] parameter(0)"
        f" ROOT c.{i} = f32[] call(p.{i}), to_apply=f.{i - 1} }}\n"
        for i in range(1, depth)
    )
    report = report_on(
        f"HloModule m\nf.0 {{ p.0 = f32[] parameter(0) ROOT c.0 = f32[] negate(p.0) }}\n{links}"
        f"ENTRY e {{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f.{depth - 1} }}\n"
    )
    out = page(render_call_tree, report, top=5000)
    assert "(3,000 deep)" in out
    assert max(map(len, out.splitlines())) <= 80
