"""The page of a module's memory: what is stacked is what the report counts."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.properties.strategies.modules import module_texts
from tests.reports.html.pages import Page, column_texts
from tests.reports.memory.test_memory import TEXT

from hloopt.files import read_module
from hloopt.memory.limit import MemoryLimit
from hloopt.reports.memory.model import MemoryFindings
from hloopt.reports.memory.page import memory_page, packed
from hloopt.targets import load_target
from hloopt.text import parse_module

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"


def model_of(text: str, limit: int | None = None) -> dict[str, Any]:
    limits = [] if limit is None else [MemoryLimit(limit, "--limit")]
    return MemoryFindings.of(parse_module(text), load_target("h100_sxm"), limits=limits).model


def check(model: dict[str, Any], data: dict[str, Any]) -> None:
    """By each grouping, stacks add up to the timeline of the report at every position."""
    buffers = data["buffers"]
    starts = list(accumulate(buffers["start"]))
    count = len(starts)
    aside = sum(data["setAside"]["size"])
    assert aside == model["throughout"] == data["throughout"]
    for grouping in data["groupings"]:
        column = buffers[grouping["column"]]
        numbers = column["at"] or [0] * count
        assert len(grouping["groups"]) * 2 == len(column["texts"])
        assert not grouping["groups"] or max(map(int, grouping["groups"])) <= len(
            grouping["labels"]
        )
        change = [0] * (data["positions"] + 1)
        for i in range(count):
            if buffers["inTimeline"][i] == "1":
                group = int(grouping["groups"][numbers[i]])
                assert group < len(grouping["labels"])  # it has a colour, and that a label
                change[starts[i]] += buffers["size"][i]
                end = starts[i] + buffers["length"][i]
                change[min(end, data["positions"])] -= buffers["size"][i]
        total = list(accumulate(change[:-1], initial=aside))[1:]
        assert total == timeline(model)


def timeline(model: dict[str, Any]) -> list[int]:
    changes = dict(map(tuple, model["timeline"]))
    result: list[int] = []
    for position in range(model["positions"]):
        result.append(changes.get(position, result[-1] if result else 0))
    return result


@given(module_texts())
def test_stacks_add_up_to_the_timeline_of_any_module(text: str) -> None:
    model = model_of(text)
    check(model, packed(model))


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.after_*")), ids=lambda path: path.name)
def test_stacks_add_up_to_the_timeline_of_real_modules(path: Path) -> None:
    model = MemoryFindings.of(read_module(str(path)), load_target("h100_sxm")).model
    check(model, packed(model))
    alive = [b for b in model["buffers"] if b["in_timeline"] and _is_alive_at_peak(b, model)]
    aside = [b for b in model["live_at_peak"] if b["kind"] != "temporary"]
    listed = sorted(b["size"] for b in model["live_at_peak"])
    assert sorted(b["size"] for b in [*alive, *aside]) == listed  # as in the text


def _is_alive_at_peak(buffer: dict[str, Any], model: dict[str, Any]) -> bool:
    first, last = buffer["live"]
    return bool(first <= model["peak_instruction"]["position"] <= last)


def test_stacks_are_scopes_kinds_and_more() -> None:
    data = packed(model_of(TEXT))
    found = {grouping["name"]: grouping["labels"] for grouping in data["groupings"]}
    assert found["scope, 2 parts"] == ["jit(f)/layer_1", "jit(f)/layer_2", "jit(f)/f"]
    assert found["kind"] == ["temporaries"]
    assert found["opcode"][0] == "concatenate"
    assert found["shape"][0] == "f32[2048]"
    assert [kind["label"] for kind in data["setAsideKinds"]] == [
        "arguments",
        "outputs",
        "constants",
    ]
    assert list(found)[data["by"]] == "scope, 3 parts"


@pytest.mark.parametrize(
    ("by", "depth", "name"),
    [
        ("scope", 2, "scope, 2 parts"),
        ("scope", 9, "shape"),
        ("source", 3, "source"),
        ("kind", 3, "kind"),
    ],
)
def test_the_grouping_to_begin_with_can_be_asked_for(by: str, depth: int, name: str) -> None:
    data = packed(model_of(TEXT), by=by, depth=depth)
    assert data["groupings"][data["by"]]["name"] == name


def test_without_scopes_stacks_are_shapes() -> None:
    text = "ENTRY e { p = f32[8] parameter(0) a = f32[8] sine(p) ROOT r = f32[8] cosine(a) }"
    data = packed(model_of(f"HloModule m\n{text}"))
    assert data["groupings"][data["by"]]["name"] == "shape"


def test_every_buffer_is_there_with_its_texts() -> None:
    model = model_of(TEXT)
    data = packed(model)
    columns = data["buffers"]
    columns["name"] = {"texts": data["instructions"]["texts"], "at": columns["name"]}
    for name in ("name", "shape", "kind", "op_name", "computation", "opcode", "source"):
        texts = column_texts(columns[name])
        wanted = [buffer[name] for buffer in model["buffers"]]
        assert texts * (len(wanted) // len(texts)) == wanted
    starts = list(accumulate(columns["start"]))
    for number, buffer in enumerate(model["buffers"]):
        first, last = buffer["live"]
        assert (starts[number], columns["length"][number]) == (first, last - first + 1)
        assert columns["size"][number] == buffer["size"]
        assert columns["offset"][number] == buffer["offset"]


def test_the_page_says_what_does_not_fit() -> None:
    page = Page(memory_page(model_of(TEXT, limit=20_000)))
    assert any("RESOURCE_EXHAUSTED" in text for text in page.text_of("p"))
    assert {"time", "packing", "timeLegend", "packingLegend", "rows"} <= page.ids


def test_a_module_without_memory_has_a_page() -> None:
    page = Page(memory_page(model_of("HloModule m\nENTRY e { ROOT t = () tuple() }")))
    assert page.data["peak"] == 0
