"""Selections in the page of a module stay, in reports, history and lists. Needs a browser."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.reports.html.browsing import (
    BROWSER,
    CHOSEN,
    ENTRY,
    click,
    having,
    inside,
    press,
    show,
    text,
    until,
)

from gallery_lib.chromium import Tab
from hloopt.cost_models import CostModelChoice
from hloopt.reports.diff.comparison import diff_modules
from hloopt.reports.view.findings import view_of
from hloopt.text import parse_module

pytestmark = BROWSER

TITLE = "document.querySelector('#details h2').textContent"


BODY = """  p = f32[8] parameter(0)
  {} = f32[8] {}(p)
  k = f32[8] negate({}), metadata={{op_name="jit(f)/net/a"}}
  m = f32[8] tanh(k), metadata={{op_name="jit(f)/net/b"}}
  ROOT r = f32[8] {}(m)
"""


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a module in which an instruction is new, one is gone and one differs."""
    path = tmp_path_factory.mktemp("pages") / "changes.html"
    before, after = (
        parse_module(f"HloModule m\nENTRY e {{\n{BODY.format(*words)}}}\n")
        for words in (("gone", "sine", "gone", "cosine"), ("new", "exponential", "new", "abs"))
    )
    path.write_text(
        view_of(after, diff_modules(before, after), CostModelChoice()), encoding="utf-8"
    )
    return path


def current(tab: Tab, box: str = "#tree") -> str:
    return text(tab, f"{box} .row.current")


def set_value(tab: Tab, field: str, value: str, event: str) -> None:
    tab.run(f"document.querySelector('{field}').value = '{value}', 1")
    tab.run(f"document.querySelector('{field}').dispatchEvent(new Event('{event}')), 1")


def click_in(tab: Tab, report: str, canvas: str, across: float, down: float) -> None:
    """A click at shares of the width and height of a picture of a report."""
    box = json.loads(
        tab.run(f"""JSON.stringify((() => {{
          const frame = document.querySelector('#{report} iframe');
          const canvas = frame.contentDocument.querySelector('{canvas}');
          canvas.scrollIntoView({{ block: "center" }});
          const a = frame.getBoundingClientRect(), b = canvas.getBoundingClientRect();
          return [a.x + b.x, a.y + b.y, b.width, b.height]; }})())""")
    )
    tab.click(box[0] + across * box[2], box[1] + down * box[3])
    time.sleep(0.3)


# -- reports --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "canvas", "place"),
    [("schedule", "#lanes", (0.3, 0.5)), ("memory", "#time", (0.6, 0.5))],
)
def test_a_click_in_a_report_leaves_its_window(
    tab: Tab, page: Path, report: str, canvas: str, place: tuple[float, float]
) -> None:
    show(tab, page, f"#tab={report}")
    until(tab, inside(report, "data !== null"))
    window = until(tab, inside(report, "JSON.stringify(view)"))
    click_in(tab, report, canvas, *place)
    assert text(tab, "#details h2") != "Module"
    assert tab.run(inside(report, "JSON.stringify(view)")) == window
    tab.run(f"go({{ tab: 'text' }}), go({{ tab: '{report}' }}), 1")
    time.sleep(0.3)
    assert tab.run(inside(report, "JSON.stringify(view)")) == window
    assert tab.errors() == []


def test_a_hit_in_a_later_trip_stays_there(tab: Tab, page: Path) -> None:
    show(tab, page, "#tab=schedule")
    until(tab, inside("schedule", "data !== null"))
    script = """JSON.stringify((() => {
      const call = frames[0].calls.find(call => call.isLoop && call.trips > 2);
      setTime(call.begin + 2 * call.period, call.begin + 3 * call.period);
      return call.begin + 2 * call.period; })())"""
    begin = json.loads(until(tab, inside("schedule", script)))
    for down in (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9):
        click_in(tab, "schedule", "#lanes", 0.5, down)
        hit = json.loads(tab.run(inside("schedule", "JSON.stringify(selected)")))
        if hit and hit["trips"]:
            break
    assert hit["trips"][0].startswith("trip 3 of ")
    assert hit["begin"] > begin
    assert tab.errors() == []


def test_a_report_zooms_to_what_is_out_of_its_window_only(tab: Tab, page: Path) -> None:
    fragment = f"&computation={ENTRY}&instruction={CHOSEN}"
    for report, move in (("schedule", "setTime(0, 1)"), ("memory", "setTime(0, 3)")):
        show(tab, page, f"#tab={report}")
        whole = until(tab, inside(report, "JSON.stringify(view)"))
        tab.run(f"go({{ instruction: model.byName.get('{CHOSEN}') }}), 1")
        until(tab, inside(report, "selected !== null && selected !== -1"))
        assert tab.run(inside(report, "JSON.stringify(view)")) == whole, fragment
        tab.run(inside(report, f"{move}, 1"))
        tab.run("go({ instruction: 0 }), 1")
        tab.run(f"go({{ instruction: model.byName.get('{CHOSEN}') }}), 1")
        until(tab, inside(report, "view.left > 3"))
    assert tab.errors() == []


def test_keys_choose_views_from_a_report(tab: Tab, page: Path) -> None:
    show(tab, page, "#tab=cost")
    until(tab, inside("cost", "data !== null"))
    frame = "document.querySelector('#cost iframe')"
    tab.run(f"{frame}.contentWindow.focus(), 1")
    tab.run(inside("cost", "document.querySelector('#rows tr').focus(), 1"))
    press(tab, "Enter")
    assert text(tab, "#details h2") != "Module"
    press(tab, "t")
    until(tab, "!document.querySelector('#text').hidden")
    assert tab.run("document.activeElement.dataset.tab") == "text"
    press(tab, "c")
    tab.run(f"{frame}.contentWindow.focus(), 1")
    press(tab, "/")
    until(tab, "document.activeElement.id === 'find'")
    assert tab.errors() == []


def test_work_has_the_colours_of_the_graph(tab: Tab, page: Path) -> None:
    show(tab, page, "#tab=schedule")
    kinds = json.loads(
        until(
            tab,
            inside(
                "schedule",
                "JSON.stringify(data.groupings[0].labels.map((label, k) => "
                "[label, grouping.fills[k]]))",
            ),
        )
    )
    assert ["collective", "c5"] in kinds
    styles = tab.run("[...document.styleSheets[0].cssRules].map(r => r.cssText).join('')")
    for label, fill in kinds:
        assert f".kind-{label.replace(' ', '-')} {{ --fill: var(--{fill})" in styles
    fills = "slices.kind[i] === FLIGHT ? fillOf(i) + ' ' + text('work', i) : ''"
    flying = tab.run(
        inside("schedule", f"[...new Set(Array.from(slices.kind, (_, i) => {fills}))].join()")
    )
    assert "flight" not in flying
    for each in filter(None, flying.split(",")):
        fill, _, kind = each.partition(" ")
        assert [kind, fill] in kinds


# -- lists ----------------------------------------------------------------------------------------


def test_keys_keep_the_row_when_a_branch_opens(tab: Tab, page: Path) -> None:
    show(tab, page)
    tab.run("document.querySelector('#tree').focus(), 1")
    press(tab, "ArrowDown", "ArrowLeft")
    assert current(tab).startswith("▸")
    press(tab, "ArrowDown", "ArrowDown")
    branch = current(tab)[1:]
    press(tab, "Enter")
    until(tab, "document.querySelector('#tree .row.current')?.textContent.startsWith('▾')")
    assert current(tab)[1:] == branch
    active = tab.run("document.querySelector('#tree').getAttribute('aria-activedescendant')")
    assert tab.run(f"document.getElementById('{active}').textContent")[1:] == branch
    press(tab, "ArrowDown", "Enter")
    assert text(tab, "#details h2") != "Module"
    press(tab, "Home")
    until(tab, f"{having('#tree .row.current', ENTRY)} !== undefined")
    assert tab.errors() == []


def test_the_find_box_leads_into_the_list(tab: Tab, page: Path) -> None:
    show(tab, page)
    set_value(tab, "#find", f"%{CHOSEN}", "input")
    until(tab, "document.querySelector('#treeHead').textContent === '1 instruction found'")
    set_value(tab, "#find", ENTRY, "input")
    until(tab, "document.querySelector('#treeHead').textContent === '1 computation found'")
    set_value(tab, "#find", "all-reduce", "input")
    tab.run("document.querySelector('#find').focus(), 1")
    press(tab, "ArrowDown")
    assert tab.run("document.activeElement.id") == "tree"
    assert "all-reduce" in current(tab)
    press(tab, "ArrowDown", "Enter")
    assert "all-reduce" in text(tab, "#details h2")
    assert current(tab).startswith(text(tab, "#details h2"))
    assert tab.errors() == []


def test_arrows_choose_tabs(tab: Tab, page: Path) -> None:
    show(tab, page)
    tab.run("document.querySelector('#tabs button').focus(), 1")
    press(tab, "ArrowRight")
    assert tab.run("state.tab") == tab.run("document.activeElement.dataset.tab") == "text"
    press(tab, "End", "ArrowRight")
    assert tab.run("state.tab") == "graph"
    focusable = "[...document.querySelectorAll('#tabs button')].filter(e => e.tabIndex === 0)"
    assert tab.run(f"{focusable}.map(e => e.dataset.tab).join()") == "graph"
    assert "d changes" not in text(tab, "#details")


def test_keys_stop_at_changes_that_lead_somewhere(tab: Tab, changes: Path) -> None:
    show(tab, changes)
    until(tab, "document.querySelector('#changeLines .mark-removed') !== null")
    tab.run("document.querySelector('#changeLines').focus(), 1")
    for _ in range(4):
        press(tab, "ArrowDown")
        assert not tab.run("document.querySelector('#changeLines .current.mark-head') !== null")
    press(tab, "Enter")
    until(tab, f"{TITLE} !== 'Module'")
    assert tab.errors() == []


def test_a_removed_line_is_in_the_details(tab: Tab, changes: Path) -> None:
    show(tab, changes)
    line = text(tab, "#changeLines .mark-removed")
    click(tab, "#changeLines .mark-removed")
    until(tab, f"{TITLE} !== 'Module'")
    assert text(tab, "#details pre")[:80] in line
    assert text(tab, "#details h2").split("…")[0] in line
    assert "removed" in text(tab, "#details dl")
    tab.run("go({ instruction: 3 }), 1")
    assert "removed" not in text(tab, "#details dl")
    assert tab.errors() == []


def test_the_graph_marks_changes(tab: Tab, changes: Path) -> None:
    show(tab, changes, "#tab=graph")
    until(tab, "document.querySelectorAll('.node').length > 2")
    marked = "[...document.querySelectorAll('.node.marked')].map(e => e.getAttribute('aria-label'))"
    found = tab.run(marked)
    assert any(each.startswith("added %new,") for each in found), found
    assert any(each.startswith("net, 2 instructions, ") and "changed" in each for each in found)
    kinds = tab.run("[...model.changeOf].map(([i, kind]) => [model.name(i), kind])")
    titles = tab.run("[...document.querySelectorAll('.node .title')].map(e => e.textContent)")
    for name, kind in kinds:
        if name in ("new", "r"):
            assert f"{kind} %{name}" in titles
    assert tab.run("document.querySelectorAll('.node:not(.marked)').length") > 0
    assert tab.errors() == []


# -- the address ----------------------------------------------------------------------------------


def test_a_scope_survives_a_reload(tab: Tab, page: Path) -> None:
    show(tab, page)
    set_value(tab, "#treeBy", "scope", "change")
    until(tab, f"{having('#tree .row', 'adamw')} !== undefined")
    tab.run(f"{having('#tree .row', 'adamw')}.click(), 1")
    until(tab, "document.querySelector('#path').textContent.endsWith('adamw')")
    fragment = tab.run("location.hash")
    show(tab, page, fragment)
    until(tab, "document.querySelector('#path').textContent.endsWith('adamw')")
    assert tab.run("document.querySelector('#treeBy').value") == "scope"
    assert tab.errors() == []


def test_back_and_forward_select_again(tab: Tab, page: Path) -> None:
    show(tab, page)
    titles = []
    for instruction in (5, 9):
        tab.run(f"go({{ instruction: {instruction} }}), 1")
        titles.append(text(tab, "#details h2"))
        time.sleep(0.2)
    tab.run("go({ tab: 'text' }), 1")
    tab.run("history.back(), 1")
    until(tab, "state.tab === 'graph'")
    tab.run("history.back(), 1")
    until(tab, f"{TITLE} === '{titles[0]}'")
    tab.run("history.forward(), 1")
    until(tab, f"{TITLE} === '{titles[1]}'")
    tab.run("history.go(-2), 1")
    until(tab, f"{TITLE} === 'Module'")
    assert tab.errors() == []


# -- text -----------------------------------------------------------------------------------------


def test_names_without_percent_signs_are_links(tab: Tab, page: Path) -> None:
    module = parse_module("""HloModule m
f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { p = f32[8] parameter(0)  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=f }
""")
    path = page.with_name("links.html")
    path.write_text(view_of(module, None, CostModelChoice()), encoding="utf-8")
    show(tab, path)
    line = 'ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=f, calls={f}, x=\\"p f\\"'
    script = f"""highlighted("{line}", name => targetOf(name, model.byName.get("r")))
      .filter(part => part.matches?.(".link")).map(part => part.textContent).join()"""
    assert tab.run(script) == "p,z,f,f"
    assert tab.run(script.replace("p, z", "%p, %z").replace("=f,", "=%f,")) == "%p,%z,%f,f"
    plain = f'make("p", "", ...highlighted("{line}", () => null)).textContent'
    assert tab.run(plain) == line.replace("\\", "")
