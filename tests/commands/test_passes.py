"""`hloopt passes`, and that table and decorators agree."""

from __future__ import annotations

import json

import pytest

from hloopt.cli import main
from hloopt.pass_framework.options import documented_options, make_options
from hloopt.pass_framework.registry import PASSES, find_pass


@pytest.mark.parametrize("name", sorted(PASSES))
def test_a_pass_is_found_by_the_name_it_has(name: str) -> None:
    pass_class = find_pass(name)
    assert pass_class.name == name
    assert find_pass(name.replace("-", "_")) is pass_class


@pytest.mark.parametrize("name", sorted(PASSES))
def test_a_pass_is_described_with_all_its_options(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["passes", name]) == 0
    out = capsys.readouterr().out
    infos = documented_options(find_pass(name))
    assert all(info.name in out and info.doc for info in infos)
    assert make_options(find_pass(name), {}) == find_pass(name).Options()
    assert main(["passes", name, "--format", "json"]) == 0
    (described,) = json.loads(capsys.readouterr().out)
    assert [option["name"] for option in described["options"]] == [i.name for i in infos]
    assert described["documentation"]


def test_descriptions_are_wrapped_for_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "sort-simplifier"]) == 0
    title, others = capsys.readouterr().out.splitlines()[:2]
    assert (title, others) == ("simplify-sorts", "also called sort-simplifier")
    assert main(["passes", "simplify-conditional"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("- ") for line in lines) == 4  # items stay items
    assert main(["passes", "call-inliner"]) == 0
    assert "\nafterwards dead code is removed. Copies" in capsys.readouterr().out


def test_all_passes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{out}" for name in PASSES)


def test_defaults_are_shown_as_they_are_given() -> None:
    infos = documented_options(find_pass("latency-hiding-scheduler"))
    shown = {info.name: info.default_text for info in infos}
    assert shown["rerun"] == shown["search.seed"] == "0"
    assert shown["copy_overlap_limit"] == "1"
    assert shown["resource_sharing"] == "false"
    assert shown["search.budget"] == "30s"
    assert shown["search"] == ""
