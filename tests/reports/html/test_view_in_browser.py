"""The page of a module in a real browser. Skipped without Chromium."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.reports.html.browsing import (
    BEFORE,
    BROWSER,
    CHOSEN,
    ENTRY,
    H100,
    MODULE,
    click,
    having,
    press,
    show,
    text,
    until,
)

from gallery_lib.chromium import Tab
from hloopt.cost_models import CostModelChoice
from hloopt.files import read_module
from hloopt.reports.diff.comparison import diff_modules
from hloopt.reports.view.findings import view_of
from hloopt.text import parse_module

pytestmark = BROWSER


def test_a_click_selects_in_all_views(tab: Tab, page: Path) -> None:
    show(tab, page)
    tab.run(f"document.querySelector('#find').value = '{CHOSEN}', 1")
    tab.run("document.querySelector('#find').dispatchEvent(new Event('input')), 1")
    until(tab, "document.querySelector('#treeHead').textContent.includes('found')")
    click(tab, "#tree .row")
    assert text(tab, "#details h2") == f"%{CHOSEN}"
    assert CHOSEN in text(tab, ".node.chosen .title")
    assert f"instruction={CHOSEN}" in tab.run("location.hash")
    click(tab, "button[data-tab=text]")
    assert text(tab, "#textLines .row.current").startswith(f"%{CHOSEN} = ")
    click(tab, "button[data-tab=schedule]")
    frame = "document.querySelector('#schedule iframe')?.contentDocument"
    assert CHOSEN in until(tab, f"{frame}?.querySelector('#selected')?.textContent")
    assert tab.errors() == []


def test_a_part_selects_in_the_page(tab: Tab, page: Path) -> None:
    show(tab, page, "#tab=memory")
    frame = "document.querySelector('#memory iframe')?.contentDocument"
    name = until(tab, f"{frame}?.querySelector('#rows tr:nth-child(4) td.name ~ td.name')?.title")
    tab.run(f"{frame}.querySelector('#rows tr:nth-child(4)').click(), 1")
    assert text(tab, "#details h2") == name.partition("{")[0]
    show(tab, page, "#tab=cost")
    frame = "document.querySelector('#cost iframe')?.contentDocument"
    name = until(tab, f"{frame}?.querySelector('#rows td.name')?.title")
    tab.run(f"{frame}.querySelector('#rows tr').click(), 1")
    assert text(tab, "#details h2") == name.split(" ")[0]
    assert tab.errors() == []


def test_the_address_keeps_the_selection(tab: Tab, page: Path) -> None:
    show(tab, page, f"#tab=text&computation={ENTRY}&instruction={CHOSEN}")
    assert text(tab, "#details h2") == f"%{CHOSEN}"
    assert text(tab, "#textLines .row.current").startswith(f"%{CHOSEN} = ")
    assert CHOSEN in text(tab, "#tree .row.current")
    show(tab, page, "#tab=nothing&computation=nobody&instruction=none")
    assert text(tab, "#details h2") == "Module"
    assert tab.errors() == []


def test_names_in_the_text_are_links(tab: Tab, page: Path) -> None:
    show(tab, page, f"#tab=text&computation={ENTRY}&instruction={CHOSEN}")
    operand = text(tab, "#textLines .row.current .link")
    click(tab, "#textLines .row.current .link")
    until(tab, f"document.querySelector('#details h2').textContent === '{operand}'")
    assert tab.run(f"{having('#details dt', 'computation')}.nextSibling.textContent") == f"%{ENTRY}"
    assert tab.errors() == []


def test_groups_of_the_graph_open(tab: Tab, page: Path) -> None:
    show(tab, page)
    title = text(tab, ".node.group .title")
    until(tab, f"{having('.node.group', title)}.focus(), document.activeElement.matches('.node')")
    press(tab, "Enter")
    until(tab, "document.querySelectorAll('#path .link').length === 2")
    assert tab.run("document.querySelectorAll('.node').length") > 1
    click(tab, "#path .link")
    until(tab, f"{having('.node.group .title', title)} !== undefined")
    assert tab.errors() == []


def test_the_list_is_by_scope_too(tab: Tab, page: Path) -> None:
    show(tab, page)
    tab.run("document.querySelector('#treeBy').value = 'scope', 1")
    tab.run("document.querySelector('#treeBy').dispatchEvent(new Event('change')), 1")
    until(tab, f"{having('#tree .row', 'adamw')} !== undefined")
    tab.run(f"{having('#tree .row', 'adamw')}.click(), 1")
    until(tab, "document.querySelector('#path').textContent.endsWith('adamw')")
    assert tab.errors() == []


def test_keys_choose_views_and_rows(tab: Tab, page: Path) -> None:
    show(tab, page)
    press(tab, "t")
    until(tab, "!document.querySelector('#text').hidden")
    tab.run("document.querySelector('#textLines').focus(), 1")
    press(tab, "ArrowDown", "ArrowDown", "Enter")
    until(tab, "document.querySelector('#details h2').textContent !== 'Module'")
    press(tab, "/")
    until(tab, "document.activeElement.id === 'find'")
    assert tab.errors() == []


@pytest.mark.parametrize("limit", [0, 1000])
def test_a_layout_that_takes_too_long_is_cancelled(
    tab: Tab, page: Path, tmp_path: Path, limit: int
) -> None:
    changed = tmp_path / "page.html"
    script = page.read_text(encoding="utf-8")
    assert "LAYOUT_TIME = 1000" in script
    changed.write_text(script.replace("LAYOUT_TIME = 1000", f"LAYOUT_TIME = {limit}"), "utf-8")
    show(tab, changed)
    until(tab, "document.querySelector('#graphNote').textContent")
    time.sleep(0.5)
    assert ("was cancelled" in text(tab, "#graphNote")) == (limit == 0)
    assert (tab.run("document.querySelectorAll('.node').length") > 0) == (limit > 0)
    assert tab.errors() == []


@pytest.mark.parametrize("width", [600, 1280, 1920])
@pytest.mark.parametrize("view", ["graph", "text", "schedule", "memory", "cost", "calls"])
def test_a_view_never_scrolls_sideways(tab: Tab, page: Path, width: int, view: str) -> None:
    show(tab, page, f"#tab={view}", width)
    needed, there = tab.run("[document.documentElement.scrollWidth, innerWidth]")
    assert needed <= there


def test_changes_lead_to_instructions(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "changes.html"
    modules = read_module(str(MODULE)), read_module(str(BEFORE))
    after, before = modules
    page = view_of(after, diff_modules(before, after), CostModelChoice())
    path.write_text(page, encoding="utf-8")
    show(tab, path)
    name = text(tab, "#changeLines .mark-added")
    click(tab, "#changeLines .mark-added")
    assert text(tab, "#details h2") in name
    assert "added" in tab.run("document.querySelector('#details dl').textContent")
    assert tab.errors() == []


NASTY = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "quote ' and back`tick${1}",
    "\x1b[31mred",
    "[bold]markup[/bold]",
    "x" * 10_000,
)


@pytest.mark.parametrize("nasty", NASTY, ids=range(len(NASTY)))
def test_names_and_metadata_are_text_in_all_views(tab: Tab, tmp_path: Path, nasty: str) -> None:
    name = "n" * 10_000 if nasty.startswith("x") else "plain"
    module = parse_module(f"""HloModule m, is_scheduled=true
ENTRY {name}.e {{
  p = f32[8] parameter(0), metadata={{op_name="jit(f)/{nasty}/p"}}
  {name} = f32[8] sine(p), metadata={{op_name="jit(f)/{nasty}/a" source_file="{nasty}.py"}}
  ROOT r = f32[8] negate({name}), metadata={{op_name="jit(f)/{nasty}/a"}}
}}
""")
    path = tmp_path / "nasty.html"
    path.write_text(view_of(module, diff_modules(module, module), H100), encoding="utf-8")
    for view in ("graph", "text", "schedule", "memory", "cost", "calls", "changes"):
        show(tab, path, f"#tab={view}&computation={name}.e&instruction={name}")
        assert name[:50] in text(tab, "#details h2")
        assert tab.run("document.querySelectorAll('img').length") == 0
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    assert nasty.replace("\x1b", "\\x1b")[:40] in tab.run(
        "document.querySelector('#details pre').textContent"
    )
    assert not [event for event in tab.events if event["method"] == "Page.javascriptDialogOpening"]
    assert tab.errors() == []
