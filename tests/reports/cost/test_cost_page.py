"""Costs by flops per byte: bars of modelled time, points of measured time."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from itertools import pairwise
from math import log10
from pathlib import Path

import pytest
from rich.console import Console
from tests.reports.cost.test_cost import KNOWN, TEXT
from tests.reports.html.pages import Page

from hloopt.cost_models import CostModelChoice
from hloopt.reports.cost.findings import CostReport, analyze_cost
from hloopt.reports.cost.intensity import Intensities, intensity_of
from hloopt.reports.cost.measured import MeasuredTimes
from hloopt.reports.cost.page import cost_page
from hloopt.reports.cost.record import cost_to_json
from hloopt.reports.cost.terminal import render_cost
from hloopt.targets import load_target, target_names
from hloopt.text import parse_module

MODULE = TEXT.replace("TRIPS", KNOWN)


def report(measured: dict[str, float] | None = None, target: str = "h100_sxm") -> CostReport:
    """Of a loop of 12 trips with a dot; `measured` in seconds of one run."""
    times = None if measured is None else MeasuredTimes("table.json", measured)
    return analyze_cost(parse_module(MODULE), load_target(target), times)


def rendered(found: CostReport, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    render_cost(found, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# -- bars -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", target_names())
def test_every_instruction_is_in_one_bin(target: str) -> None:
    found = report(target=target)
    intensities = Intensities.of(found)
    bins = [intensities.idle, *intensities.bins]
    assert sorted(row.name for each in bins for row in each.rows) == sorted(
        row.name for row in found.rows
    )
    assert sum(each.seconds for each in bins) == pytest.approx(found.seconds)
    assert sum(each.compute_seconds for each in bins) == pytest.approx(found.compute_seconds)
    for each in intensities.bins[1:]:
        for row in each.rows:
            assert each.left * 0.999 <= intensity_of(row) <= each.right * 1.001
    assert all(intensity_of(row) == 0 for row in intensities.idle.rows)
    assert {row.opcode for row in intensities.idle.rows} == {"copy", "tuple"}


def test_bins_have_no_gaps() -> None:
    bins = Intensities.of(report()).bins
    for before, after in pairwise(bins):
        assert before.right == pytest.approx(after.left)


def test_what_computes_very_little_for_its_bytes_is_in_the_first_bin() -> None:
    found = report()
    small = replace(found.rows[0].cost, flops=1, transcendentals=0, bytes_read=10**15)
    found.rows[0] = replace(found.rows[0], cost=small)
    bins = Intensities.of(found).bins
    assert found.rows[0] in bins[0].rows
    assert len(bins) < 60


def test_modelled_times_make_no_points() -> None:
    """By its least time every instruction would lie on the roof."""
    page = Page(cost_page(report()))
    assert Intensities.of(report()).points == []
    assert page.all("circle") == []
    assert any("every\ninstruction would lie on the roof" in t for t in page.text_of("p"))
    assert "measured" not in "".join(page.text_of("th"))


def test_bars_are_as_high_as_their_share_of_the_time() -> None:
    found = report(target="a100_sxm_80")
    assert found.compute_seconds > 0
    page = Page(cost_page(found))
    parts = [a for a in page.all("rect") if a["class"] == "bar-part"]
    heights: dict[str, float] = {}
    for part in parts:
        heights[part["style"]] = heights.get(part["style"], 0.0) + float(part["height"])
    idle = Intensities.of(found).idle.seconds
    memory = found.seconds - found.compute_seconds - idle
    scale = heights["fill:var(--c4)"] / found.compute_seconds
    least = 1.5 * len(parts)  # a bar of very little is as high as that
    assert heights["fill:var(--c2)"] == pytest.approx(memory * scale, abs=least)
    assert heights["fill:var(--other)"] == pytest.approx(idle * scale, abs=least)
    fills = {part["style"] for part in parts}
    legend = [a["style"].replace("background-color", "fill") for a in page.all("i")]
    assert fills <= set(legend)


def test_each_bar_can_be_reached_by_keyboard_and_says_what_it_is() -> None:
    page = Page(cost_page(report()))
    targets = [a for a in page.all("rect") if a["class"] == "target"]
    assert len(targets) == len(page.data) >= 3
    for target in targets:
        assert target["tabindex"] == "0"
        assert page.data[int(target["data-i"])][0] in target["aria-label"]


# -- points ---------------------------------------------------------------------------------------


def test_measured_times_make_points_at_the_rate_that_was_reached() -> None:
    least = {row.name: row.bound.seconds for row in report().rows}
    found = report({"d": 4 * least["d"], "g": 10 * least["g"], "c.1": 1e-6, "other": 1.0})
    points = {point.row.name: point for point in Intensities.of(found).points}
    assert set(points) == {"d", "g"}  # the copy computes nothing, %other is not here
    assert points["d"].share_of_bound == pytest.approx(1 / 4)
    assert points["g"].share_of_bound == pytest.approx(1 / 10)
    dot = points["d"]
    assert dot.rate == pytest.approx(2 * 512**3 / (4 * least["d"]))
    assert dot.seconds == pytest.approx(4 * least["d"] * 12)
    page = Page(cost_page(found))
    circles = {
        page.data[int(a["data-i"])][0].split()[0]: (float(a["cx"]), float(a["cy"]))
        for a in page.all("circle")
    }
    assert set(circles) == {"%d", "%g"}
    marks = [a for a in page.all("text") if a.get("class") == "side"]
    assert marks
    # Ten times the rate is as much higher as the lines of the picture are apart.
    (x1, y1), (x2, y2) = circles["%d"], circles["%g"]
    across = log10(points["d"].intensity / points["g"].intensity)
    up = log10(points["d"].rate / points["g"].rate)
    unit_x, unit_y = _units(page)
    assert x1 - x2 == pytest.approx(across * unit_x, abs=0.3)
    assert y2 - y1 == pytest.approx(up * unit_y, abs=0.3)


def _units(page: Page) -> tuple[float, float]:
    """The distances between powers of ten in the roofline, across and up."""
    html = page.html[page.html.index("Roofline") :]
    lines = re.findall(
        r'class="grid" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', html
    )
    across = sorted({float(x1) for x1, _, x2, _ in lines if x1 == x2})
    up = sorted({float(y1) for _, y1, _, y2 in lines if y1 == y2})
    return across[1] - across[0], up[1] - up[0]


def test_what_is_faster_than_the_target_is_said() -> None:
    least = {row.name: row.bound.seconds for row in report().rows}
    found = report({"d": least["d"] / 2})
    (note,) = (note for note in found.assumptions if "do not belong together" in note)
    assert note.endswith("%d")
    assert not any("belong" in note for note in report({"d": 2 * least["d"]}).assumptions)


def test_a_measured_time_of_nothing_is_no_point() -> None:
    assert Intensities.of(report({"d": 0.0})).points == []


def test_the_table_is_of_the_instructions_with_their_figures() -> None:
    found = report()
    page = Page(cost_page(found))
    heads = page.text_of("th")
    assert heads[:3] == ["least time", "share", "bound by"]
    first = rows(page)[0]
    row = dict(zip(heads, first, strict=True))
    assert row["bound by"] == ("compute" if found.rows[0].bound.is_compute else "memory")
    assert {r[heads.index("instruction")] for r in rows(page)} >= {"%d (dot)", "%c.1 (copy)"}
    assert len(rows(page)) == len(found.rows)
    dot = next(dict(zip(heads, r, strict=True)) for r in rows(page) if "%d (dot)" in r)
    assert (dot["flops"], dot["runs"], dot["op_name"]) == (
        "3.2 G",
        "12",
        "jit(f)/layers/mlp/dot_general",
    )


def rows(page: Page) -> list[list[str]]:
    """The texts of the cells of the table."""
    body = page.html[page.html.index('<tbody id="rows">') : page.html.index("</tbody>")]
    return [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", body)
    ]


def test_the_table_has_measured_times_first() -> None:
    least = {row.name: row.bound.seconds for row in report().rows}
    page = Page(cost_page(report({"g": 100 * least["g"], "d": 2 * least["d"]})))
    heads = page.text_of("th")
    assert heads[:3] == ["measured", "flop/s", "of the roof"]
    found = [dict(zip(heads, row, strict=True)) for row in rows(page)]
    assert [row["instruction"] for row in found[:2]] == ["%g (tanh)", "%d (dot)"]
    assert [row["of the roof"] for row in found[:2]] == ["1.0%", "50.0%"]
    assert all(row["measured"] == "" for row in found[2:])


# -- where measured times are from ----------------------------------------------------------------


def test_times_of_tables_and_profiles_are_measured_and_others_are_not(tmp_path: Path) -> None:
    module = parse_module(MODULE)
    assert MeasuredTimes.of(module, CostModelChoice(target="h100_sxm")) is None
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"node": {"d": 25.0}}))
    found = MeasuredTimes.of(module, CostModelChoice(cost_table=str(table), target="h100_sxm"))
    assert found is not None
    assert found.source == str(table)
    assert found.seconds == {"d": pytest.approx(25e-6)}
    profile = tmp_path / "p.pbtxt"
    profile.write_text('costs { name: "g" cost_us: 3 }')
    found = MeasuredTimes.of(module, CostModelChoice(profile=str(profile)))
    assert found is not None
    assert found.seconds == {"g": pytest.approx(3e-6)}


def test_measured_times_are_in_text_and_data() -> None:
    found = report({"d": 1e-3})
    assert re.search(r"measured +12\.0 ms", rendered(found))
    assert "table.json has times of 1 of " in " ".join(rendered(found).split())
    data = json.loads(json.dumps(cost_to_json(found, "opcode")))
    assert data["measured"] == {"source": "table.json", "seconds": pytest.approx(12e-3)}
    assert cost_to_json(report(), "opcode")["measured"] is None


# -- on the terminal ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_chart_shows_shares_or_measured_rates(width: int) -> None:
    shares = rendered(report(), max(width, 80))
    assert "share of the least time over flops per byte" in shares
    assert "⋅" not in shares  # no roof
    measured = rendered(report({"d": 1e-3, "g": 1e-4}), max(width, 80))
    assert "measured flop/s over flops per byte" in measured
    assert "⋅" in measured


def test_a_module_that_computes_nothing_has_a_chart_and_a_page() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { p = f32[8] parameter(0) ROOT c = f32[8] copy(p) }"
    )
    found = analyze_cost(module, load_target("h100_sxm"))
    assert "share of the least time" in rendered(found)
    assert len(rows(Page(cost_page(found)))) == 1
    empty = analyze_cost(
        parse_module("ENTRY e { ROOT p = f32[] parameter(0) }"), load_target("cpu")
    )
    assert rows(Page(cost_page(empty))) == []
