"""The skeleton of the page of a module, and what its scripts take of a browser."""

from __future__ import annotations

import re
from importlib.resources import files

from tests.reports.html.pages import Page

from hloopt.cost_models import CostModelChoice
from hloopt.reports.look import WORK
from hloopt.reports.view.findings import view_of
from hloopt.text import parse_module

NEWER = re.compile(
    r"\.(toReversed|toSorted|toSpliced|with|findLast|findLastIndex)\(|structuredClone|"
    r"Object\.(hasOwn|groupBy)|Map\.groupBy|static \{"
)
"""Words that Chromium 92, Firefox 113 or Safari 16.4 do not know."""


def page() -> Page:
    module = parse_module("HloModule m\nENTRY e { ROOT p = f32[8] parameter(0) }\n")
    return Page(view_of(module, None, CostModelChoice()))


def test_scripts_use_what_old_browsers_know() -> None:
    assets = files("hloopt.reports.html").joinpath("assets")
    scripts = [each for each in assets.iterdir() if each.name.endswith(".js")]
    assert len(scripts) > 10
    for script in scripts:
        assert not NEWER.search(script.read_text(encoding="utf-8")), script.name


def test_without_scripts_the_page_says_what_to_do() -> None:
    found = page()
    assert any("needs JavaScript" in text for text in found.text_of("p"))
    assert any("too old" in text for text in found.text_of("p"))


def test_scripts_find_what_they_ask_for() -> None:
    found = page()
    asked = set(re.findall(r'\$\("(\w+)"\)', found.scripts[-1]))
    assert asked - found.ids == {"changeLines", "changesNote"}  # with two modules


def test_tabs_name_the_panels_that_are_there() -> None:
    found = page()
    tabs = [tab for tab in found.all("button") if tab.get("role") == "tab"]
    panels = [each["id"] for each in found.all("section")]
    assert [tab["aria-controls"] for tab in tabs] == [tab["data-tab"] for tab in tabs] == panels
    assert "changes" not in panels


def test_the_page_knows_the_kinds_in_the_order_of_their_looks() -> None:
    assert page().data["kinds"] == [kind.value for kind in WORK]
