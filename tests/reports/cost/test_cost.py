"""The cost report as text, as data and as a page."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from hloopt.analysis.cost.runs import Runs
from hloopt.reports.console.units import human_count, human_ratio, human_seconds, middle
from hloopt.reports.cost.findings import GROUPINGS, NO_SCOPE, CostReport, analyze_cost, grouped
from hloopt.reports.cost.page import cost_page
from hloopt.reports.cost.record import cost_to_json
from hloopt.reports.cost.terminal import render_cost
from hloopt.targets import load_target
from hloopt.text import parse_module

TEXT = """HloModule step
body {
  p = (s32[], bf16[512,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = bf16[512,512] get-tuple-element(p), index=1
  k = s32[] constant(1)
  j = s32[] add(i, k)
  d = bf16[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/layers/mlp/dot_general"}
  g = bf16[512,512] tanh(d), metadata={op_name="jit(f)/layers/mlp/<tanh>"}
  ROOT t = (s32[], bf16[512,512]) tuple(j, g)
}
cond {
  p = (s32[], bf16[512,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(12)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  z = s32[] constant(0)
  a = bf16[512,512] parameter(0)
  c = bf16[512,512] copy(a)
  t = (s32[], bf16[512,512]) tuple(z, c)
  ROOT w = (s32[], bf16[512,512]) while(t), condition=cond, body=bodyTRIPS
}
"""
KNOWN = ', backend_config={"known_trip_count":{"n":"12"}}'


def report(target: str = "h100_sxm", trips: str = KNOWN) -> CostReport:
    return analyze_cost(parse_module(TEXT.replace("TRIPS", trips)), load_target(target))


def rendered(found: CostReport, *, by: str = "instruction", width: int = 80, top: int = 10) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    render_cost(found, console, by=by, top=top)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_loops_are_marked_with_their_trips() -> None:
    text = rendered(report())
    assert re.search(r"x12 +%d bf16\[512,512\]", text)
    assert re.search(r"x13 +%c.*pred", text)
    assert "3.2 G" in text  # 12 x 2 x 512^3 flops
    assert "trip count" not in text


def test_an_unknown_trip_count_is_said() -> None:
    unknown = TEXT.replace("TRIPS", "").replace("z = s32[] constant(0)", "z = s32[] parameter(1)")
    text = rendered(analyze_cost(parse_module(unknown), load_target("h100_sxm")))
    assert re.search(r"x\? +%d bf16\[512,512\]", text)
    assert "loops whose trip count is not known take one trip: %w" in " ".join(text.split())


@pytest.mark.parametrize("by", GROUPINGS)
@pytest.mark.parametrize("width", [80, 120])
def test_pages_fit_the_terminal(by: str, width: int) -> None:
    lines = rendered(report(), by=by, width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_groups_add_up_to_the_module() -> None:
    found = report()
    for by in GROUPINGS:
        groups = grouped(found, by)
        assert sum(group.flops for group in groups) == found.total.flops
        assert sum(group.bytes_accessed for group in groups) == found.total.bytes_accessed
        assert sum(group.seconds for group in groups) == pytest.approx(found.seconds)
        assert sum(group.instructions for group in groups) == len(found.rows)


def test_runs_that_differ_in_a_group_are_marked() -> None:
    text = rendered(report(), by="opcode", top=100)
    assert re.search(r"x12 +dot \(1\)", text)
    assert not re.search(r"≤x\d+ +dot", text)
    assert re.search(r"≤x\d+ +.*\((?!1\))", rendered(report(), by="scope", top=100))


def test_figures_are_whole_at_80_columns() -> None:
    found = report()
    found.rows[0] = replace(found.rows[0], runs=Runs(123_456_789, True), name="d" * 99 + ".7")
    lines = rendered(found, top=2).splitlines()
    assert max(map(len, lines)) <= 80
    [row] = [line for line in lines if "x123,456,789" in line]
    assert row.count("…") == 1
    assert row.rstrip().endswith("ddd.7")


def test_scopes_are_the_first_parts_of_op_names() -> None:
    found = report()
    labels = [group.label for group in grouped(found, "scope", depth=2)]
    assert sorted(labels) == sorted([NO_SCOPE, "jit(f)/layers"])
    assert "jit(f)/layers/mlp/dot_general" in [
        group.label for group in grouped(found, "scope", depth=9)
    ]


def test_what_does_not_fit_the_table_is_counted() -> None:
    assert re.search(r"and \d+ more", rendered(report(), top=1))


def test_a_target_without_vector_rates_says_so() -> None:
    assert "no rate of the target's vector units" in rendered(report("tpu_v5p"))


def test_arithmetic_that_a_target_has_no_rate_for_is_said() -> None:
    module = parse_module(TEXT.replace("TRIPS", KNOWN).replace("bf16[", "f64["))
    text = rendered(analyze_cost(module, load_target("tpu_v5p")))
    said = "the target has no rate for these types, whose arithmetic takes no time: f64"
    assert said in " ".join(text.split())
    assert "has no rate" not in rendered(report("tpu_v5p"))
    assert "has no rate" not in rendered(analyze_cost(module, load_target("h100_sxm")))


def test_data_holds_every_group() -> None:
    found = report()
    data = json.loads(json.dumps(cost_to_json(found, "opcode")))
    assert data["flops"] == found.total.flops
    assert data["compute_seconds"] + data["memory_seconds"] == pytest.approx(data["seconds"])
    [dot] = [group for group in data["groups"] if group["label"] == "dot"]
    assert (dot["runs"], dot["runs_known"], dot["flops"]) == (12, True, 12 * 2 * 512**3)


def test_data_says_which_instruction_a_group_is() -> None:
    found = report()
    groups = cost_to_json(found, "instruction")["groups"]
    assert [group["label"] for group in groups] == [row.name for row in found.rows]
    [dot] = [group for group in groups if group["opcode"] == "dot"]
    assert (dot["computation"], dot["shape"]) == ("body", "bf16[512,512]")
    assert dot["op_name"].endswith("dot_general")


def test_an_empty_module_has_a_report() -> None:
    found = analyze_cost(
        parse_module("ENTRY e { ROOT p = f32[] parameter(0) }"), load_target("cpu")
    )
    assert "least time" in rendered(found)
    assert "<svg" in cost_page(found)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1500, "1.5 k"),
        (999_990, "1.0 M"),
        (7.7e14, "770.0 T"),
        (2e21, "2000.0 E"),
    ],
)
def test_counts_have_a_power_of_a_thousand(number: float, text: str) -> None:
    assert human_count(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0"),
        (2.0014, "2.00 s"),
        (0.0123, "12.3 ms"),
        (4e-6, "4.0 us"),
        (8e-7, "800 ns"),
        (1e-12, "< 1 ns"),
    ],
)
def test_times_have_a_unit(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


def test_ratios_have_three_digits() -> None:
    assert [human_ratio(n) for n in (0.08333, 12.34, 1234.5)] == ["0.0833", "12.3", "1,234"]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("fusion.1", 8, "fusion.1"), ("loop_fusion.12", 8, "loop….12"), ("fusion.12", 7, "fus….12")],
)
def test_long_names_keep_both_ends(text: str, width: int, shown: str) -> None:
    assert middle(text, width) == shown
