"""Pages in a real browser: what scripts draw is what the report says. Skipped without Chromium."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.reports.scheduled_modules import nested

from gallery_lib.chromium import NAMES, find_chromium
from hloopt.cost_models import CostModelChoice
from hloopt.files import read_module
from hloopt.reports.cost.findings import analyze_cost
from hloopt.reports.cost.measured import MeasuredTimes
from hloopt.reports.cost.page import cost_page
from hloopt.reports.memory.model import MemoryFindings
from hloopt.reports.memory.page import memory_page
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.page import schedule_page
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.reports.schedule.timeline import Timeline
from hloopt.targets import load_target
from hloopt.text import parse_module

pytestmark = pytest.mark.slow

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
MODULE = "transformer_scan_8dev.after_optimizations.hlo.gz"

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run(page, script, width=…, dark=…)`: what a script returns in a page once it is loaded."""
    browser = find_chromium()
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")

    def run_script(page: str, script: str, *, width: int = 1400, dark: bool = False) -> Any:
        listen = "window.errors = []; addEventListener('error', e => errors.push(e.message));"
        report = (
            "addEventListener('load', () => { const made = document.createElement('pre');"
            f"const value = (() => {{ {script} }})(); made.id = 'made';"
            "made.textContent = JSON.stringify({ errors, value }); document.body.append(made); });"
        )
        page = page.replace("<style>", f"<script>{listen}</script><style>", 1)
        path = tmp_path / "page.html"
        path.write_text(page.replace("</body>", f"<script>{report}</script></body>"), "utf-8")
        command = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", f"--user-data-dir={tmp_path / 'user'}", "--hide-scrollbars"),
            *(f"--window-size={width},900", "--virtual-time-budget=3000", "--dump-dom"),
            *(["--blink-settings=preferredColorScheme=0"] if dark else []),
            path.as_uri(),
        ]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        found = re.search(r'<pre id="made">(.*?)</pre>', shown.stdout, re.S)
        assert found, shown.stdout[-500:]
        result = json.loads(unescape(found[1]))
        assert result["errors"] == []
        return result["value"]

    return run_script


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:
    return MemoryFindings.of(read_module(str(TESTDATA / MODULE)), load_target("h100_sxm")).model


@pytest.fixture(scope="module")
def pages(model: dict[str, Any]) -> dict[str, str]:
    module = read_module(str(TESTDATA / MODULE))
    target = load_target("h100_sxm")
    seconds = {row.name: 3 * row.bound.seconds for row in analyze_cost(module, target).rows}
    settings = ScheduleSettings(cost_model=CostModelChoice(target="h100_sxm"))
    findings = ScheduleFindings.of(read_module(str(TESTDATA / MODULE)), settings)
    return {
        "memory": memory_page(model),
        "schedule": schedule_page(findings, Timeline.of(findings)),
        "cost": cost_page(analyze_cost(module, target, MeasuredTimes("table", seconds))),
    }


KINDS = pytest.mark.parametrize("kind", ["memory", "schedule", "cost"])


@KINDS
@pytest.mark.parametrize("width", [400, 600, 1400])
def test_a_page_never_scrolls_sideways(
    run: Run, pages: dict[str, str], kind: str, width: int
) -> None:
    script = "return [document.documentElement.scrollWidth, innerWidth]"
    needed, there = run(pages[kind], script, width=width)
    assert needed <= there


@KINDS
def test_heads_and_cells_do_not_collide(run: Run, pages: dict[str, str], kind: str) -> None:
    """The text of each cell lies within the column, and columns do not overlap."""
    script = """
      const rows = [...document.querySelectorAll("table tr")].slice(0, 30);
      const range = document.createRange();
      return rows.map(row => [...row.cells].map(cell => {
        range.selectNodeContents(cell);
        const box = cell.getBoundingClientRect(), words = range.getBoundingClientRect();
        // What is too long is cut before the padding.
        const end = box.right - parseFloat(getComputedStyle(cell).paddingRight);
        return [box.left, cell.textContent ? words.left : box.left,
          cell.textContent ? Math.min(words.right, end) : box.left, box.right];
      }));"""
    for width in (1400, 600):
        rows = run(pages[kind], script, width=width)
        assert len(rows) == 30
        for row in rows:
            before = -1.0
            for left, begin, end, right in row:
                assert left - 0.5 <= begin
                assert end <= right + 0.5
                assert begin >= before + 3 or end == begin  # a blank at least
                before = max(before, end)


@KINDS
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_tips_stay_in_the_window(run: Run, pages: dict[str, str], kind: str, dark: bool) -> None:
    script = """
      const lines = Array(8).fill("jit(step)/transpose(jvp(layers))/while/body/".repeat(6));
      const [right, low] = [innerWidth - 1, innerHeight - 1];
      const places = [[0, 0], [right, 0], [0, low], [right, low]];
      return places.map(([clientX, clientY]) => {
        showTip({ clientX, clientY }, lines);
        const box = tip.getBoundingClientRect();
        return box.left >= 0 && box.top >= 0 && box.right <= right + 1 && box.bottom <= low + 1;
      });"""
    assert run(pages[kind], script, width=600, dark=dark) == [True] * 4


def test_stacks_drawn_are_the_timeline_and_have_a_legend(
    run: Run, pages: dict[str, str], model: dict[str, Any]
) -> None:
    script = """
      return data.groupings.map((_, number) => {
        group(number);
        const sums = Array.from({ length: data.positions }, (_, p) => total(p));
        const labels = [...$("timeLegend").querySelectorAll("li[title]")].map(item => item.title);
        return { sums, labels, stacks: stacks.map(({ label }) => label),
          alive: $("alive").textContent };
      });"""
    changes = dict(map(tuple, model["timeline"]))
    timeline: list[int] = []
    for position in range(model["positions"]):
        timeline.append(changes.get(position, timeline[-1] if timeline else 0))
    found = run(pages["memory"], script)
    assert len(found) >= 6
    for each in found:
        assert each["sums"] == timeline
        assert each["labels"] == each["stacks"]
        assert each["alive"].startswith(f"{len(model['live_at_peak'])} buffers, ")


_ROW = """
  // The colours of the pixels along the middle of a lane, between two times.
  const row = (lane, left, right) => {
    draw();
    const canvas = $("lanes"), ratio = canvas.width / canvas.clientWidth;
    const from = Math.ceil(xOf(left, canvas.clientWidth) + 1) * ratio;
    const to = Math.floor(xOf(right, canvas.clientWidth) - 1) * ratio;
    const y = Math.round((tops[lane] + heights[lane] - 3) * ratio);
    const pixels = canvas.getContext("2d").getImageData(from, y, Math.max(to - from, 1), 1).data;
    const found = {};
    for (let k = 0; k < pixels.length; k += 4) {
      const key = [...pixels.slice(k, k + 4)].join();
      found[key] = (found[key] ?? 0) + 1;
    }
    return found;
  };
  const idle = lane => {  // the colour of a lane in which nothing is drawn
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    context.globalAlpha = .35;
    context.fillStyle = color("call");
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].join();
  };
"""


@pytest.mark.parametrize(("outer", "inner"), [(3, 2), (400, 5), (7, 300)])
def test_no_part_of_a_loop_looks_idle(run: Run, outer: int, inner: int) -> None:
    findings = ScheduleFindings.of(parse_module(nested(outer, inner)), ScheduleSettings())
    page = schedule_page(findings, Timeline.of(findings))
    script = f"""{_ROW}
      const call = frames[0].calls[0];
      const drawn = row(1, call.begin, call.end);
      setTime(call.end, makespan);
      const isIdleBehind = idle(2) in row(2, call.end, makespan);
      return {{ isIdle: idle(1) in drawn, isIdleBehind, drawn, label: labelOf(call.slice) }}"""
    found = run(page, script)
    assert not found["isIdle"], found["drawn"]
    assert found["isIdleBehind"]
    assert found["label"] == f"outer \u00d7 {outer} trips"


def test_a_place_in_any_trip_can_be_pointed_at(run: Run) -> None:
    findings = ScheduleFindings.of(parse_module(nested(50, 20)), ScheduleSettings())
    page = schedule_page(findings, Timeline.of(findings))
    script = """
      const call = frames[0].calls[0], inner = frames[call.frames[1][0]].calls[0];
      const t = call.begin + 36.5 * call.period;
      const at = call.begin + 36 * call.period + frames[call.frames[0][0]].duration
        + inner.begin + 4.999 * inner.period;
      return [sliceIn(frames[0], 0, 1, 1, t, 0, []).trips,
        sliceIn(frames[0], 0, 1, 2, at, 0, []).trips,
        memoryWithin(frames[0], 0, 1, 0, makespan)];"""
    outer, inner, most = run(page, script)
    assert outer == ["trip 37 of 50 of %outer"]
    assert inner == ["trip 37 of 50 of %outer", "trip 5 of 20 of %inner"]
    assert most == findings.memory.peak


def test_groups_of_work_have_a_legend_in_the_colours_they_are_drawn_in(
    run: Run, pages: dict[str, str]
) -> None:
    script = """
      return data.groupings.map((_, number) => {
        group(number);
        const boxes = [...$("lanesLegend").querySelectorAll("i")];
        const shown = boxes.map(box => box.style.backgroundColor);
        const used = new Set();
        for (const frame of frames) for (const fills of frame.busy.values())
          for (const [fill, time] of fills) if (time > 0) used.add(`var(--${fill})`);
        return [shown, [...used]];
      });"""
    for shown, used in run(pages["schedule"], script):
        assert set(used) <= set(shown)


def test_keys_move_a_pointer_and_zoom(run: Run, pages: dict[str, str]) -> None:
    script = """
      const canvas = $("lanes");
      const press = key => canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
      for (let k = 0; k < 100; k++) press("ArrowUp");
      for (let k = 0; k < 4; k++) press("ArrowDown");  // into the first lane
      const tipShown = tip.style.display;
      const before = view.right - view.left;
      press("+");
      const zoomed = view.right - view.left;
      press("Home");
      return [canvas.tabIndex, tipShown, zoomed < before, view.right - view.left === makespan];"""
    assert run(pages["schedule"], script) == [0, "block", True, True]
