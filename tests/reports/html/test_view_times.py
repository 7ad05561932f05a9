"""The page of a large module is quick, by the browser's own trace. Skipped without Chromium.

Of the largest benchmark and of a module with 60,000 instructions, the median of five: less than two
seconds from DOMContentLoaded to the first row, no task of more than 100 ms while one scrolls,
selects, searches, opens scopes and reports, fewer than 5,000 nodes, a file below 15 MB. Tasks are
measured by the clock and by the time of the processor: other work on the machine makes the former
longer, so it counts only where the processors are not all at work already.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.reports.html.browsing import BROWSER
from tests.reports.html.large_module import large_module

from gallery_lib.chromium import Tab, chromium
from hloopt.cost_models import CostModelChoice
from hloopt.files import read_module
from hloopt.reports.view.findings import view_of
from hloopt.text import parse_module

pytestmark = BROWSER

_ROUNDS = 5
_MOST_MILLISECONDS = 100
_MARK_FIRST_ROW = """
new MutationObserver((_, observer) => {
  if (document.querySelector("#tree .row")) { performance.mark("firstRow"); observer.disconnect(); }
}).observe(document, { childList: true, subtree: true });
"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("browser")) as tab:
        tab.resize(1280, 800)
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=_MARK_FIRST_ROW)
        yield tab


@pytest.fixture(scope="module", params=["benchmark", "60,000"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "benchmark":
        shared: Path = request.getfixturevalue("shared")
        module = read_module(str(shared / "corpus/benchmarks/hlo_llama31_8b_bf16_1x8.hlo"))
        assert module.instruction_count() == 31_855
    else:
        module = parse_module(large_module(60_000))
        assert module.instruction_count() > 60_000
    path = tmp_path_factory.mktemp("pages") / "view.html"
    path.write_text(view_of(module, None, CostModelChoice(target="h100_sxm")), encoding="utf-8")
    return path


def longest_task(events: list[dict[str, Any]], figure: str) -> float:
    """Milliseconds of the longest task on the main threads of pages: `dur`, or without what else
    ran on its processor meanwhile `tdur`."""
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks: list[float] = [
        event[figure] / 1000
        for event in events
        if event["name"].endswith("RunTask")
        and figure in event
        and (event["pid"], event["tid"]) in threads
    ]
    assert len(tasks) > 20
    return max(tasks)


def test_the_file_is_small(page: Path) -> None:
    assert page.stat().st_size < 15e6


def test_the_first_row_is_there_soon(tab: Tab, page: Path) -> None:
    found = []
    for _ in range(_ROUNDS):
        trace = tab.trace()
        tab.open(page, fragment=f"?{time.monotonic()}")
        until_ready(tab)
        marks = {event["name"]: event["ts"] for event in trace.stop() if "ts" in event}
        found.append((marks["firstRow"] - marks["domContentLoadedEventStart"]) / 1e6)
    print(f"\nfirst row after {median(found):.3f} s, of {[f'{each:.3f}' for each in found]}")
    assert median(found) < 2


def scroll(tab: Tab) -> None:
    for step in range(20):
        tab.wheel(150, 400, 500 * step)
        time.sleep(0.02)


def select_rows(tab: Tab) -> None:
    for row in range(3):
        tab.click(150, 300 + 44 * row)
        time.sleep(0.5)


def read_text(tab: Tab) -> None:
    tab.run("go({ tab: 'text' }), 1")
    for step in range(20):
        tab.wheel(600, 400, 2000 * step)
        time.sleep(0.02)
    for row in range(3):
        tab.click(500, 300 + 40 * row)
        time.sleep(0.2)


def search(tab: Tab) -> None:
    for words in ("dense_4", "%fusion.1", "add", ""):
        tab.run(f"$('find').value = '{words}', $('find').dispatchEvent(new Event('input')), 1")
        time.sleep(0.3)


def open_scopes(tab: Tab) -> None:
    tab.run("$('treeBy').value = 'scope', $('treeBy').onchange(), 1")
    time.sleep(0.3)
    for row in range(4):
        tab.run(f"document.querySelectorAll('#tree .row')[{row}]?.click(), 1")
        time.sleep(1)


def select_far(tab: Tab) -> None:
    for part in (0.98, 0.02, 0.5):
        tab.run(f"go({{ tab: 'graph', instruction: Math.floor({part} * model.count) }}), 1")
        time.sleep(0.8)


def open_reports(tab: Tab) -> None:
    for report in ("schedule", "memory", "cost", "calls"):
        tab.run(f"go({{ tab: '{report}' }}), 1")
        time.sleep(2)
        tab.run("go({ instruction: Math.floor(model.count / 3) }), 1")
        time.sleep(0.5)
        tab.run("go({ instruction: Math.floor(model.count / 2) }), 1")
        time.sleep(0.5)


STEPS = (scroll, select_rows, read_text, search, open_scopes, select_far, open_reports)


def test_what_one_does_takes_no_long_task(tab: Tab, page: Path) -> None:
    figures = ("tdur", "dur") if os.getloadavg()[0] < (os.cpu_count() or 1) else ("tdur",)
    longest: dict[tuple[str, str], list[float]] = {}
    nodes = []
    for _ in range(_ROUNDS):
        if longest and all(_is_decided(longest[key]) for key in longest if key[1] in figures):
            break
        tab.open(page, fragment=f"?{time.monotonic()}")
        until_ready(tab)
        time.sleep(1)
        for step in STEPS:
            trace = tab.trace()
            step(tab)
            events = trace.stop()
            for figure in ("tdur", "dur"):
                key = step.__name__, figure
                longest.setdefault(key, []).append(longest_task(events, figure))
            nodes.append(tab.run("document.getElementsByTagName('*').length"))
    assert tab.errors() == []
    medians = {key: median(found) for key, found in longest.items()}
    for (name, figure), found in medians.items():
        print(f"\n{name}: {found:.0f} ms by {figure}", end="")
    print(f"\nat most {max(nodes):,} nodes")
    too_long = {k: ms for k, ms in medians.items() if k[1] in figures and ms >= _MOST_MILLISECONDS}
    assert too_long == {}
    assert max(nodes) < 5000


def _is_decided(found: list[float]) -> bool:
    """Whether the median of all rounds is below the limit, whatever those to come are."""
    return 2 * sum(ms < _MOST_MILLISECONDS for ms in found) > _ROUNDS


def until_ready(tab: Tab) -> None:
    """Wait until the page can be used, and has all texts."""
    while not tab.run("document.documentElement.dataset.ready === 'true' && lines !== null"):
        time.sleep(0.02)
