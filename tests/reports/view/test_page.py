"""The page of a module: what it holds, and nothing of a module is markup."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.reports.html.pages import Page
from tests.reports.scheduled_modules import nested

from hloopt.cost_models import CostModelChoice
from hloopt.reports.view.findings import view_of
from hloopt.text import parse_module

H100 = CostModelChoice(target="h100_sxm")


def view(text: str, before: str | None = None, choice: CostModelChoice = H100) -> Page:
    module = parse_module(text)
    return Page(view_of(module, None if before is None else parse_module(before), choice))


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
    assert columns(page)["name"] == "nested"
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
    words = "no times without a target; give --target NAME: `hloopt targets` lists them"
    assert page.text_of("p").count(words) == 2
    assert columns(page)["microseconds"] is None


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
