"""What all pages have in common: nothing loaded, nothing sent raw, tables that fit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.reports.html.pages import Page, column_texts
from tests.reports.scheduled_modules import nested

from hloopt.memory.limit import MemoryLimit
from hloopt.reports.cost.findings import analyze_cost
from hloopt.reports.cost.page import cost_page
from hloopt.reports.html.columns import (
    Criterion,
    Grouping,
    TextColumn,
    packed_rows,
    scope_groupings,
    text_groupings,
)
from hloopt.reports.html.page import Column, as_html, data_table, html_page
from hloopt.reports.memory.model import MemoryFindings
from hloopt.reports.memory.page import memory_page
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.page import schedule_page
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.reports.schedule.timeline import Timeline
from hloopt.targets import load_target
from hloopt.text import parse_module


def memory(text: str) -> Page:
    found = MemoryFindings.of(
        parse_module(text), load_target("h100_sxm"), limits=[MemoryLimit(10**9, "--limit")]
    )
    return Page(memory_page(found.model))


def schedule(text: str) -> Page:
    findings = ScheduleFindings.of(parse_module(text), ScheduleSettings(memory_limit=10**9))
    return Page(schedule_page(findings, Timeline.of(findings)))


def cost(text: str) -> Page:
    return Page(cost_page(analyze_cost(parse_module(text), load_target("h100_sxm"))))


Make = Callable[[str], Page]
PAGES = pytest.mark.parametrize("make", [memory, schedule, cost])


@PAGES
def test_a_page_is_whole_and_loads_nothing(make: Make) -> None:
    page = make(nested())
    assert page.loads == []
    assert not re.search(r"https?:|url\(|@import|fetch\(|\bimport\(", page.html)
    assert len(page.html) < 100_000


@PAGES
def test_scripts_find_what_they_ask_for(make: Make) -> None:
    page = make(nested())
    wanted = set(re.findall(r'\$\("(\w+)"\)', page.scripts[1]))
    assert wanted <= page.ids


# -- what names and metadata may hold -------------------------------------------------------------

_RAW = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"&quot;')
_CONTROL = {
    "\x1b": r"\x1b",
    "\x07": r"\x07",
    "\n": r"\n",
    "\r": r"\r",
    "\u202e": r"\u202e",
    "\u2028": r"\u2028",
    "\u200b": r"\u200b",
    "\ufeff": r"\ufeff",
}


def named(text: str) -> str:
    """A module whose op_names, source and names hold `text`."""
    hlo = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return nested().replace("jit(f)/inner", hlo).replace("jit(f)/helper", hlo)


@PAGES
@pytest.mark.parametrize("text", _RAW)
def test_markup_is_text(make: Make, text: str) -> None:
    page = make(named(text))
    assert len(page.scripts) == 2
    assert page.all("img") == []
    assert text[:8] in "".join([*map(str, strings(page.data)), *(t for _, t in page.texts)])


@PAGES
@pytest.mark.parametrize("character", _CONTROL, ids=_CONTROL.values())
def test_what_is_not_printable_is_shown_escaped(make: Make, character: str) -> None:
    page = make(named(f"x{character}y"))
    assert character == "\n" or character not in page.html
    shown = [*strings(page.data), *(text for _, text in page.texts)]
    assert not any(character in text for text in strings(page.data))
    assert any(f"x{_CONTROL[character]}y" in text for text in shown)


def strings(data: object) -> list[str]:
    """All texts in plain data."""
    if isinstance(data, str):
        return [data]
    if isinstance(data, dict):
        return [text for each in data.items() for text in strings(list(each))]
    return [text for each in data for text in strings(each)] if isinstance(data, list) else []


def test_titles_notices_and_cells_are_text() -> None:
    raw = "</title><b>\u202e"
    table = data_table(raw, [Column(raw), Column("path", "text")], [[raw, "a/<b>/c"]])
    page = Page(html_page(raw, (), table, {raw: raw}, notices=[raw]))
    assert page.all("b") == []
    assert "\u202e" not in page.html
    escaped = "</title><b>\\u202e"
    assert page.text_of("title") == page.text_of("h1") == page.text_of("p") == [escaped]
    assert "".join(page.text_of("td")) == f"{escaped}a/<b>/c"
    assert page.data == {escaped: escaped}
    assert as_html("日本\u3000語 é") == "日本\u3000語 é"


# -- notices --------------------------------------------------------------------------------------

_WHOLE = """HloModule whole, num_partitions=4
ENTRY e {
  p = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  q = f32[8] custom-call(p), custom_call_target="Sharding", sharding={devices=[4]<=[4]}
  ROOT r = f32[8] negate(q), sharding={devices=[4]<=[4]}
}
"""
_PLAIN = """HloModule plain, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] sine(p)
}
"""


@PAGES
def test_notices_stand_above_all_figures(make: Make) -> None:
    page = make(_WHOLE)
    notices = [a for a in page.all("p") if a.get("class") == "notice"]
    assert notices
    assert page.html.index('class="notice"') < page.html.index("<dl>")
    assert any("not partitioned" in text for text in page.text_of("p"))
    assert not [a for a in make(_PLAIN).all("p") if a.get("class") == "notice"]


def test_a_doubted_module_has_no_verdict_and_no_limit() -> None:
    page = memory(_WHOLE)
    assert page.data["limit"] is None
    assert any(text.startswith("no verdict against") for text in page.text_of("p"))
    assert {a.get("class") for a in page.all("p")}.isdisjoint({"fits", "exhausted"})
    assert "share" not in page.text_of("th")
    assert "share" in memory(_PLAIN).text_of("th")
    assert schedule(_WHOLE).data["limit"] is None
    assert "limit" not in schedule(_WHOLE).text_of("dt")


def test_a_limit_is_drawn_where_there_is_a_verdict() -> None:
    assert memory(_PLAIN).data["limit"] == schedule(_PLAIN).data["limit"] == 10**9
    assert "fits" in {a.get("class") for a in memory(_PLAIN).all("p")}
    assert "limit" in schedule(_PLAIN).text_of("dt")


# -- tables ---------------------------------------------------------------------------------------


@PAGES
def test_tables_and_drawings_scroll_in_a_box_of_their_own(make: Make) -> None:
    page = make(nested())
    for tag, _, around in page.elements:
        if tag in ("table", "svg"):
            assert "scroll" in around[-1].split()
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", page.style)
    boxes = [a for a in page.all("div") if a.get("class") == "scroll"]
    assert boxes
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in boxes)  # for keyboards


@PAGES
def test_heads_have_the_style_of_their_cells(make: Make) -> None:
    """Cells that scripts make take the class of their heads; those of the cost page are here."""
    page = make(nested())
    heads = [a.get("class", "") for a in page.all("th")]
    cells = [a.get("class", "") for a in page.all("td")]
    assert heads.count("number") >= 3
    assert set(heads) <= {"", "number", "name", "path", "text"}
    assert cells == heads * (len(cells) // len(heads))
    assert "cell.className = styles[column]" in page.html or cells
    for style in ("number", "name", "text"):
        assert f".{style} {{" in page.style


def test_long_cells_are_cut_where_they_say_least() -> None:
    path, text = "/home/me/" + "x" * 60 + "/model.py:12", "jit(f)/" + "y/" * 200 + "dot"
    columns = [Column("a", "path"), Column("b", "text"), Column("c", "name"), Column("d", "text")]
    page = Page(data_table("label", columns, [[path, text, "name", "short"]]))
    cells = page.all("td")
    assert [cell.get("title") for cell in cells] == [path, text, "name", None]
    shown = "".join(page.text_of("td"))
    assert "…" in shown
    assert "x/model.py:12jit(f)/y/" in shown
    assert shown.endswith("y/dotnameshort")


# -- columns and groups ---------------------------------------------------------------------------


def test_columns_have_each_text_once() -> None:
    texts = ["layer/0/mul", "layer/0/add", "", "layer/0/mul", "layer/1"]
    column = TextColumn.of(texts)
    assert len(column.numbers) == 4
    assert column_texts(column.packed()) == texts
    assert column.packed()["texts"][:4] == [0, "layer/0/mul", 8, "add"]
    assert TextColumn.of(["same"] * 5).packed() == {"texts": [0, "same"], "at": []}
    assert TextColumn.of([]).packed() == {"texts": [], "at": []}


def test_rows_are_columns() -> None:
    rows = [{"name": "a/b", "size": 1, "at": None}, {"name": "a/c", "size": 2, "at": [1, 2]}]
    packed = packed_rows(rows)
    assert column_texts(packed.pop("name")) == ["a/b", "a/c"]
    assert packed == {"size": [1, 2], "at": [None, [1, 2]]}
    assert packed_rows([]) == {}


def test_the_heaviest_texts_are_groups_and_the_others_are_the_rest() -> None:
    texts = ["a", "b", "c", "d", "unweighed"]
    grouping = Grouping.of("name", "column", texts, [1, 8, 4, 2, 0], most=2)
    assert grouping.labels == ["b", "c", "2 more"]
    assert grouping.sums == [8, 4, 3]
    assert grouping.group_of[:4] == [2, 0, 1, 2]
    packed = grouping.packed()
    assert (packed["groups"][:4], packed["hasRest"]) == ("2012", True)


def test_one_text_that_is_left_is_called_by_its_name() -> None:
    grouping = Grouping.of("name", "column", ["a", "b", "c"], [1, 2, 3], most=2)
    assert (grouping.labels, grouping.has_rest) == (["c", "b", "a"], True)


def test_what_is_too_little_to_be_seen_is_no_group() -> None:
    grouping = Grouping.of("name", "column", ["a", "b", "c"], [1e6, 2, 1], most=6)
    assert grouping.labels == ["a", "2 more"]
    assert Grouping.of("name", "column", [""], [1], most=6).labels == ["(no column)"]
    assert Grouping.of("name", "column", [], [], most=6).labels == []


def test_scopes_are_offered_where_they_tell_more_apart() -> None:
    texts = ["jit(f)/while/body/attention/dot", "jit(f)/while/body/mlp/dot", "jit(f)/loss"]
    found = list(scope_groupings(TextColumn.of(texts), [1, 1, 1], depth=3, most=6))
    names = [grouping.name for grouping in found]
    assert names == ["scope, 2 parts", "scope, 3 parts", "scope, 4 parts"]
    assert found[2].labels[0] == "jit(f)/while/body/attention"
    assert list(scope_groupings(TextColumn.of(["", ""]), [1, 1], depth=3, most=6)) == []


def test_things_are_grouped_by_each_criterion_with_their_weights() -> None:
    columns = {"op": TextColumn.of(["a.1", "b", "a.2", "b"]), "kind": TextColumn.of("xyxx")}
    criteria = (Criterion("name", "op", lambda text: text[0]), Criterion("kind", "kind"))
    by_name, by_kind = text_groupings(columns, [1, 2, 3, 5], criteria, most=6)
    assert (by_name.name, by_name.column) == ("name", "op")
    assert (by_name.labels, by_name.sums, by_name.group_of) == (["b", "a"], [7, 4], [1, 0, 1])
    assert (by_kind.labels, by_kind.sums) == (["x", "y"], [9, 2])
