"""The graph of a module for other tools."""

from __future__ import annotations

import json
import re

from hloopt.reports.graphs.dot import module_to_dot, quoted
from hloopt.reports.graphs.model_explorer import module_to_model_explorer
from hloopt.reports.html.palette import LIGHT
from hloopt.reports.look import WORK
from hloopt.reports.work_kinds import WorkKind
from hloopt.text import parse_module

MODULE = """HloModule m
f {
  x = f32[8] parameter(0)
  ROOT n = f32[8] negate(x)
}
ENTRY e {
  a = f32[8] parameter(0), sharding={replicated}
  b = f32[8] parameter(1)
  d = f32[8] add(a, b),
    metadata={op_name="jit(step)/net/a/b->c(x/y)/add" source_file="m.py" source_line=4}
  g = f32[8] fusion(d), kind=kLoop, calls=f, control-predecessors={b}
  ROOT r = f32[8] multiply(g, a), metadata={op_name="jit(step)/transpose(jvp(net))/b/mul"}
}
"""


def test_dot_has_all_instructions_and_arrows() -> None:
    text = module_to_dot(parse_module(MODULE))
    names = dict(re.findall(r'  (n\d+) \[label="%(\w+)', text))
    assert sorted(names.values()) == ["a", "b", "d", "g", "n", "r", "x"]
    arrows = {
        (names[a], names[b], style)
        for a, b, style in re.findall(r"(n\d+) -> (n\d+)(?: \[style=(\w+)\])?", text)
    }
    assert arrows == {
        ("x", "n", ""),
        ("a", "d", ""),
        ("b", "d", ""),
        ("d", "g", ""),
        ("g", "r", ""),
        ("a", "r", ""),
        ("b", "g", "dashed"),
        ("g", "n", "dotted"),
    }
    assert text.count("subgraph cluster_") == 2


def test_boxes_of_dot_have_the_colour_of_their_work() -> None:
    text = module_to_dot(parse_module(MODULE))
    styles = dict(re.findall(r'\[label="%(\w+).*?style="([\w,]+)"', text))
    assert {name for name, style in styles.items() if style == "filled,bold"} == {"n", "r"}
    fills = dict(re.findall(r'\[label="%(\w+).*?fillcolor="(#\w+)"', text))
    assert fills["a"] == LIGHT[WORK[WorkKind.VALUE].fill]
    assert fills["d"] == LIGHT[WORK[WorkKind.COMPUTE].fill]


def test_long_names_are_cut_and_control_characters_shown() -> None:
    module = parse_module(MODULE.replace("d =", f"{'d' * 300} =").replace("(d)", f"({'d' * 300})"))
    module.name = "m\x1b[31m"
    text = module_to_dot(module)
    assert "d" * 81 not in text
    assert "\x1b" not in text


def test_texts_of_dot_are_no_escapes() -> None:
    assert quoted('we"ird\\N') == r'"we\"ird\\N"'


def test_model_explorer_has_a_graph_for_each_computation() -> None:
    found = module_to_model_explorer(parse_module(MODULE))
    assert json.loads(json.dumps(found)) == found
    assert [graph["id"] for graph in found["graphs"]] == ["e", "f"]
    nodes = {node["id"]: node for graph in found["graphs"] for node in graph["nodes"]}
    assert nodes["d"]["label"] == "add"
    assert nodes["d"]["namespace"] == "net/a/b->c(x|y)"
    assert [edge["sourceNodeId"] for edge in nodes["d"]["incomingEdges"]] == ["a", "b"]
    assert [edge["targetNodeInputId"] for edge in nodes["d"]["incomingEdges"]] == ["0", "1"]
    assert nodes["g"]["subgraphIds"] == ["f"]
    edges = [(e["sourceNodeId"], e["targetNodeInputId"]) for e in nodes["g"]["incomingEdges"]]
    assert edges == [("d", "0"), ("b", "control 0")]
    assert nodes["r"]["namespace"] == "net, backward/b"
    assert {"key": "sharding", "value": "{replicated}"} in nodes["a"]["attrs"]
    attributes = {each["key"]: each["value"] for each in nodes["d"]["attrs"]}
    assert "metadata" not in attributes
    assert attributes["source"] == "m.py:4"
    assert attributes["bytes"] == "32"
    for graph in found["graphs"]:
        ids = [node["id"] for node in graph["nodes"]]
        assert len(ids) == len(set(ids))
        for node in graph["nodes"]:
            assert {edge["sourceNodeId"] for edge in node["incomingEdges"]} <= set(ids)
