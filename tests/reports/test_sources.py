"""Lines of the program in reports: tables, JSON, traces and pages."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.reports.html.pages import column_texts

from hloopt.files import load
from hloopt.ir import Module
from hloopt.memory.analysis import analyze_memory
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.reports.cost.findings import analyze_cost, grouped
from hloopt.reports.cost.record import cost_to_json
from hloopt.reports.cost.terminal import render_cost
from hloopt.reports.memory.record import memory_to_json
from hloopt.reports.memory.terminal import render_memory
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.page import packed
from hloopt.reports.schedule.record import schedule_to_json
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.reports.schedule.timeline import Timeline
from hloopt.reports.schedule.trace import schedule_trace
from hloopt.reports.sources import NO_SOURCE, cut_source
from hloopt.reports.structure.loops import analyze_loops
from hloopt.targets import load_target
from hloopt.text import parse_module

TABLES = """FileNames
1 "/home/me/project/model.py"
2 "/usr/lib/python3.11/site-packages/flax/linear.py"

FunctionNames
1 "Model"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=20 end_line=21 column=4 end_column=9}
3 {file_name_id=1 function_name_id=1 line=30 end_line=30 column=4 end_column=9}
4 {file_name_id=2 function_name_id=1 line=271 end_line=271 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}
3 {file_location_id=3 parent_frame_id=1}
4 {file_location_id=4 parent_frame_id=2}
5 {file_location_id=4 parent_frame_id=1}
"""
CALLED_TWICE = f"""HloModule step

{TABLES}

relu {{
  q = f32[64,64] parameter(0)
  z = f32[] constant(0)
  b = f32[64,64] broadcast(z), dimensions={{}}, metadata={{op_name="max"}}
  ROOT m = f32[64,64] maximum(q, b), metadata={{op_name="max"}}
}}
linear {{
  r = f32[64,64] parameter(0)
  n = f32[64,64] dot(r, r), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}},
    metadata={{op_name="dot" stack_frame_id=5}}
  ROOT l = f32[64,64] call(n), to_apply=relu, metadata={{op_name="jit(relu)"}}
}}
body {{
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[64,64] call(x), to_apply=linear, metadata={{op_name="a" stack_frame_id=1}}
  ROOT t = (s32[], f32[64,64]) tuple(j, y)
}}
cond {{
  s.1 = (s32[], f32[64,64]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i.1, three), direction=LT
}}
ENTRY e {{
  w = f32[64,64] parameter(0), metadata={{op_name="w"}}
  zero = s32[] constant(0)
  state = (s32[], f32[64,64]) tuple(zero, w)
  loop = (s32[], f32[64,64]) while(state), condition=cond, body=body,
    metadata={{op_name="while" stack_frame_id=3}}
  g = f32[64,64] get-tuple-element(loop), index=1
  ROOT o = f32[64,64] call(g), to_apply=linear, metadata={{op_name="b" stack_frame_id=2}}
}}
"""
DOT = 2 * 64**3
RELU = 64**2


def by_line(text: str) -> dict[str, Any]:
    report = analyze_cost(parse_module(text), load_target("h100_sxm"))
    return {group.label: group for group in grouped(report, "source")}


def page(render: Any, found: Any, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=options.pop("width", 80), color_system=None)
    render(found, console, by="source", **options)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# -- cost ------------------------------------------------------------------------------------------


def test_a_function_called_from_several_lines_costs_at_each_of_them() -> None:
    found = by_line(CALLED_TWICE)
    assert found["/home/me/project/model.py:10"].flops == 3 * (DOT + RELU)
    assert found["/home/me/project/model.py:20"].flops == DOT + RELU
    assert found["/home/me/project/model.py:10"].runs.times == 3
    assert found["/home/me/project/model.py:30"].flops == 3 + 4  # the counter and its comparison


def test_what_is_inside_of_it_without_an_op_name_does_too() -> None:
    unnamed = CALLED_TWICE.replace('dimensions={}, metadata={op_name="max"}', "dimensions={}")
    assert unnamed != CALLED_TWICE
    bytes_of = {label: group.bytes_accessed for label, group in by_line(CALLED_TWICE).items()}
    found = {label: group.bytes_accessed for label, group in by_line(unnamed).items()}
    assert found == bytes_of


def test_lines_add_up_to_the_module() -> None:
    report = analyze_cost(parse_module(CALLED_TWICE), load_target("h100_sxm"))
    groups = grouped(report, "source")
    assert sum(group.flops for group in groups) == report.total.flops
    assert sum(group.bytes_accessed for group in groups) == report.total.bytes_accessed
    assert sum(group.seconds for group in groups) == pytest.approx(report.seconds)


def test_callers_that_have_the_same_line_for_different_reasons_add_up() -> None:
    text = f"""HloModule step

{TABLES}

relu {{
  q = f32[64,64] parameter(0)
  ROOT m = f32[64,64] abs(q), metadata={{op_name="abs"}}
}}
ENTRY e {{
  w = f32[64,64] parameter(0)
  a = f32[64,64] call(w), to_apply=relu, metadata={{op_name="a" stack_frame_id=1}}
  b = f32[64,64] call(a), to_apply=relu
  ROOT c = f32[64,64] sine(b), metadata={{op_name="c" stack_frame_id=1}}
}}
"""
    report = analyze_cost(parse_module(text), load_target("h100_sxm"))
    (group,) = (g for g in cost_to_json(report, "instruction")["groups"] if g["label"] == "m")
    assert [source["runs"] for source in group["sources"]] == [2]
    assert by_line(text)["/home/me/project/model.py:10"].flops == 2 * RELU


def test_branches_that_do_not_run_cost_nothing_at_their_callers_line() -> None:
    text = CALLED_TWICE.replace("constant(3)", "constant(0)")
    found = by_line(text)
    assert "/home/me/project/model.py:10" not in found
    assert found["/home/me/project/model.py:20"].flops == DOT + RELU


def test_the_table_shows_the_end_of_a_path_and_what_lines_rest_on() -> None:
    report = analyze_cost(parse_module(CALLED_TWICE), load_target("h100_sxm"))
    text = page(render_cost, report)
    assert "…ome/me/project/model.py:10 (3)" in text
    assert "of the bytes are of instructions without a line of their own" in " ".join(text.split())
    assert "/home/me/project/model.py:10 (3)" in page(render_cost, report, width=120)


def test_data_says_where_an_instruction_runs_and_by_which_stack() -> None:
    report = analyze_cost(parse_module(CALLED_TWICE), load_target("h100_sxm"))
    data = cost_to_json(report, "instruction")
    assert json.loads(json.dumps(data)) == data
    (dot,) = (group for group in data["groups"] if group["label"] == "n")
    places = {s["source"]: (s["source_basis"], s["runs"]) for s in dot["sources"]}
    assert places == {
        "/home/me/project/model.py:10": ("metadata", 3),
        "/home/me/project/model.py:20": ("metadata", 1),
    }
    stacks = {s["source"]: data["stacks"][s["stack"]] for s in dot["sources"]}
    assert [frame["line"] for frame in stacks["/home/me/project/model.py:10"]] == [271, 10]
    library, frame = stacks["/home/me/project/model.py:20"]
    assert library["file"].endswith("flax/linear.py")
    assert frame == {
        **{"file": "/home/me/project/model.py", "line": 20, "end_line": 21},
        **{"column": 4, "end_column": 9, "function": "Model"},
    }


def test_data_by_line_has_whole_paths_and_what_they_rest_on() -> None:
    report = analyze_cost(parse_module(CALLED_TWICE), load_target("h100_sxm"))
    data = cost_to_json(report, "source")
    assert data["groups"][0]["label"] == "/home/me/project/model.py:10"
    assert "line of their own" in data["assumptions"][-1]


# -- memory ----------------------------------------------------------------------------------------

FLAT = f"""HloModule step, is_scheduled=true

{TABLES}

ENTRY e {{
  w = f32[64,64] parameter(0), metadata={{op_name="params['w']"}}
  a = f32[64,64] negate(w), metadata={{op_name="a" stack_frame_id=4}}
  b = f32[64,64] copy(a)
  c = f32[64,64] custom-call(a, b), custom_call_target="f",
    metadata={{op_name="c" stack_frame_id=2}}
  ROOT d = f32[] custom-call(c), custom_call_target="f", metadata={{op_name="d" stack_frame_id=3}}
}}
"""


def test_buffers_are_at_the_users_line() -> None:
    data = memory_to_json(analyze_memory(parse_module(FLAT)))
    assert json.loads(json.dumps(data)) == data
    found = {b["name"]: (b["source"], b["source_basis"]) for b in data["live_at_peak"]}
    assert found == {
        "w": ("(argument) params['w']", "argument"),
        "a": ("/home/me/project/model.py:10", "metadata"),
        "b": ("/home/me/project/model.py:10", "operand"),
        "c": ("/home/me/project/model.py:20", "metadata"),
        "d": ("/home/me/project/model.py:30", "metadata"),
    }
    (buffer,) = (b for b in data["live_at_peak"] if b["name"] == "a")
    files = [frame["file"] for frame in data["stacks"][buffer["stack"]]]
    assert [file.split("/")[-1] for file in files] == ["linear.py", "model.py"]
    assert data["peak_instruction"]["source"] == "/home/me/project/model.py:20"


def test_the_memory_table_groups_by_line() -> None:
    text = page(render_memory, analyze_memory(parse_module(FLAT)))
    assert "2 x f32[64,64]   /home/me/project/model.py:10" in text
    assert "(argument) params['w']" in text
    assert "25.0% of the bytes are of instructions" in " ".join(text.split())


@pytest.mark.parametrize(
    ("label", "width", "shown"),
    [
        ("/home/me/model.py:12", 20, "/home/me/model.py:12"),
        ("/home/me/model.py:12", 12, "…model.py:12"),
        ("(argument) params['layers']['w']", 40, "(argument) params['layers']['w']"),
        ("(argument) params['layers']['w']", 25, "(argument) …layers']['w']"),
        ("(argument) params['layers']['w']", 12, "…yers']['w']"),
    ],
)
def test_labels_keep_what_tells_them_apart(label: str, width: int, shown: str) -> None:
    assert cut_source(label, width) == shown
    assert len(shown) <= width


def test_text_without_its_tables_is_told() -> None:
    text = page(render_memory, analyze_memory(parse_module(FLAT.replace(TABLES, ""))))
    assert "(no source)" in text
    assert "refer to stack frames which are not in the module" in " ".join(text.split())


def test_control_characters_in_paths_are_shown_escaped() -> None:
    text = FLAT.replace("project/model.py", r"\033[31m\nx\342\200\256.py")
    for shown in (
        page(render_memory, analyze_memory(parse_module(text))),
        page(render_cost, analyze_cost(parse_module(text), load_target("h100_sxm"))),
    ):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert r"\x1b[31m\nx\u202e.py:10" in shown


# -- the others ------------------------------------------------------------------------------------

SCHEDULED = f"""HloModule step, is_scheduled=true, num_partitions=2

{TABLES}

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
ENTRY e {{
  w = f32[64,64] parameter(0)
  start = f32[64,64] all-reduce-start(w), replica_groups={{{{0,1}}}}, to_apply=add, channel_id=1,
    metadata={{op_name="psum" stack_frame_id=4}}
  a = f32[64,64] negate(w), metadata={{op_name="a" stack_frame_id=2}}
  done = f32[64,64] all-reduce-done(start)
  ROOT d = f32[64,64] add(a, done), metadata={{op_name="d" stack_frame_id=3}}
}}
"""


def test_schedules_say_the_line_of_each_operation_and_slice() -> None:
    settings = ScheduleSettings()
    findings = ScheduleFindings.of(parse_module(SCHEDULED), settings)
    data = schedule_to_json(findings)
    assert json.dumps(data)
    (operation,) = data["operations"]
    assert operation["source"] == "/home/me/project/model.py:10"
    assert len(data["stacks"][operation["stack"]]) == 2
    timeline = Timeline.of(findings)
    trace = schedule_trace(findings, timeline)
    lines = {e["name"]: e["args"].get("source") for e in trace["traceEvents"] if e["ph"] == "X"}
    assert lines["a"] == "/home/me/project/model.py:20"
    shown = column_texts(packed(findings, timeline)["slices"]["source"])
    assert "/home/me/project/model.py:30" in shown


def test_loops_say_their_line() -> None:
    (loop,) = analyze_loops(parse_module(CALLED_TWICE))
    assert loop.source_line == "/home/me/project/model.py:30"


# -- real modules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("mlp_psum_8dev.before_optimizations.hlo", "mlp_psum_8dev.after_optimizations.hlo"),
        *("ring_matmul_8dev.after_spmd_partitioning.hlo", "branches.after_optimizations.hlo"),
        "transformer_scan_8dev.before_optimizations.hlo",
        "transformer_scan_8dev.after_optimizations.hlo.gz",
    ],
)
def test_nearly_all_of_a_module_of_jax_has_a_line(root: Path, name: str) -> None:
    module = load(str(root / "testdata" / name))
    report = analyze_cost(module, load_target("h100_sxm"))
    groups = grouped(report, "source")
    named = [group for group in groups if group.label != NO_SOURCE]
    assert sum(group.flops for group in named) >= 0.95 * report.total.flops
    assert sum(group.bytes_accessed for group in named) >= 0.95 * report.total.bytes_accessed
    live = analyze_memory(module).live_at_peak
    assert sum(b.size for b in live if b.source.label) >= 0.95 * sum(b.size for b in live)


@pytest.mark.parametrize(
    "name", ["mlp_psum_8dev", "ring_matmul_8dev", "nested_calls", "transformer_scan_8dev"]
)
def test_flops_are_at_the_same_lines_after_calls_are_inlined(root: Path, name: str) -> None:
    module = load(str(root / "testdata" / f"{name}.before_optimizations.hlo"))
    before = flops_by_line(module)
    create_pass("call-inliner").run(module, PassContext())
    after = flops_by_line(module)
    assert {line: pytest.approx(flops, abs=1) for line, flops in before.items()} == after


def flops_by_line(module: Module) -> dict[str, int]:
    groups = grouped(analyze_cost(module, load_target("h100_sxm")), "source")
    return {group.label: group.flops for group in groups if group.flops > 1}
