"""The page of a module: what it holds, and nothing of a module is markup."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from tests.reports.html.pages import Page, column_texts
from tests.reports.scheduled_modules import nested

from hloopt.analysis.stage import Stage
from hloopt.cost_models import CostModelChoice
from hloopt.reports.diff.comparison import diff_modules
from hloopt.reports.memory.model import memory_report
from hloopt.reports.schedule.run import Preset
from hloopt.reports.stage_notices import cost_notices
from hloopt.reports.view.findings import view_of
from hloopt.text import parse_module, print_module

H100 = CostModelChoice(target="h100_sxm")


def view(text: str, before: str | None = None, choice: CostModelChoice = H100) -> Page:
    module = parse_module(text)
    diff = None if before is None else diff_modules(parse_module(before), module)
    was = print_module(module)
    page = Page(view_of(module, diff, choice))
    assert print_module(module) == was
    return page


def block(page: Page, name: str) -> str:
    """A text that scripts unpack."""
    ids = [attributes.get("id", "") for attributes in page.all("script")]
    return gzip.decompress(base64.b64decode(page.scripts[ids.index(name)])).decode()


def columns(page: Page) -> Any:
    return json.loads(block(page, "columnsData"))


def test_a_page_is_whole_and_loads_nothing() -> None:
    page = view(nested())
    assert page.loads == []
    assert not re.search(
        r"https?:(?!//www\.w3\.org/2000/svg)|url\((?!#)|@import|fetch\(", page.html
    )
    assert "call" in column_texts(columns(page)["instructions"]["opcode"])
    for name in ("schedulePage", "memoryPage", "costPage"):
        assert Page(block(page, name)).loads == []
    assert "dagre" in block(page, "layoutLibrary")


def test_scripts_find_what_they_ask_for() -> None:
    page = view(nested(), nested().replace("multiply(", "divide("))
    wanted = set(re.findall(r'\$\("(\w+)"\)', page.scripts[-1]))
    assert wanted - {"lanes", "rows"} <= page.ids
    assert {"graph", "text", "schedule", "memory", "cost", "calls", "changes"} <= page.ids


def test_without_times_a_view_says_what_to_give() -> None:
    page = view(nested(), choice=CostModelChoice())
    assert set(page.data["missing"]) == {"schedule", "cost"}
    words = "\n".join(page.text_of("p"))
    assert "a timeline needs a target: --target NAME, or a file *.yaml: " in words
    assert "the cost by flops per byte needs a target: --target NAME" in words
    assert columns(page)["times"] is None


def test_instructions_have_times_and_what_is_alive() -> None:
    found = columns(view(nested()))
    assert any(found["times"]["cycles"])
    names = column_texts(found["instructions"]["name"])
    alive = {names[place] for place in found["alive"]}
    module = parse_module(nested())
    assert alive == {b.name.partition("{")[0] for b in memory_report(module).live_at_peak}


def test_a_module_without_a_schedule_stays_as_it_is() -> None:
    text = nested().replace(", is_scheduled=true", "")
    page = view(text)
    assert ["scheduled", "no"] in page.data["facts"]
    assert columns(page)["isScheduled"] is False
    assert columns(page)["alive"] is None
    assert "schedulePage" in page.ids


def test_a_module_that_is_not_partitioned_says_so() -> None:
    text = nested().replace("sine(x)", "sine(x), sharding={devices=[4]<=[4]}")
    notices = cost_notices(Stage.of(parse_module(text)))
    assert notices
    for notice in notices:
        assert notice in view(text).text_of("p")


def test_the_streams_are_those_of_the_preset() -> None:
    module = parse_module(nested())
    pages = {
        preset: block(Page(view_of(module, None, H100, preset)), "schedulePage")
        for preset in get_args(Preset)
    }
    assert len(set(pages.values())) == 2


def test_changes_are_listed_and_marked() -> None:
    before = nested()
    page = view(before.replace("multiply(", "divide("), before)
    lines = json.loads(block(page, "changesData"))
    assert page.data["tab"] == "changes"
    assert any(mark in "+~" and "divide(" in text for mark, _, text in lines)
    assert columns(page)["changes"]
    assert "changes" not in view(before).ids


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<img src=x>", "[red]x[/]"])
def test_markup_is_text(text: str) -> None:
    page = view(nested().replace("jit(f)/inner", text))
    assert page.all("img") == []
    assert all(a.get("type") or a == {} for a in page.all("script"))
    assert text in block(page, "linesData")


@pytest.mark.parametrize(("raw", "shown"), [("\x1b[31m", r"\x1b[31m"), ("\u202e", r"\u202e")])
def test_what_is_not_printable_is_shown_escaped(raw: str, shown: str) -> None:
    page = view(nested().replace("jit(f)/inner", raw))
    for name in ("linesData", "columnsData", "memoryPage", "schedulePage"):
        assert raw not in block(page, name)
        assert shown.replace("\\", "\\\\") in block(page, name) or shown in block(page, name)


def test_the_layout_library_is_what_its_record_says() -> None:
    root = Path(__file__).resolve().parents[3]
    vendor = root / "src/hloopt/reports/html/assets/vendor"
    record = yaml.safe_load((vendor / "dagre.yaml").read_text(encoding="utf-8"))
    assert record["license"] == "MIT"
    for path, checksum in record["files"].items():
        content = (vendor / Path(path).name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == checksum
