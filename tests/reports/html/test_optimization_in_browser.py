"""The page of `hloopt optimize` in a real browser. Skipped without Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.reports.html.browsing import BROWSER, MODULE, until

from gallery_lib.chromium import Tab
from hloopt.cli import main

pytestmark = BROWSER

_DRAWN = """
[...document.querySelectorAll("iframe")].filter(frame =>
  frame.contentDocument?.getElementById("lanes")?.height > 0).length === 2"""


@pytest.mark.parametrize("width", [400, 1280])
def test_both_timelines_are_drawn_and_nothing_scrolls_sideways(
    tab: Tab, tmp_path: Path, width: int
) -> None:
    page = tmp_path / "best.html"
    result = str(tmp_path / "best.hlo")
    line = ["optimize", str(MODULE), "--target", "h100_sxm", "--iterations", "1"]
    assert main([*line, "-o", result, "--html", str(page)]) == 0
    tab.resize(width, 900)
    tab.open(page)
    until(tab, _DRAWN)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.errors() == []
