"""Files of expectations are read as a whole; mistakes are at their line."""

from __future__ import annotations

import pytest
from tests.checks.expecting import view_of

from hloopt.amounts import parse_share
from hloopt.checks.expectations.files import parse_expectations
from hloopt.diagnostics import HloError, Source


def test_a_list_and_a_mapping() -> None:
    found = parse_expectations(Source("e.yaml", "- memory.peak <= 1GiB\n- loops.count == 0\n"))
    assert [entry.expectation.text for entry in found.entries] == [
        "memory.peak <= 1GiB",
        "loops.count == 0",
    ]
    text = """target: h100_sxm
cost_model: sol
max_guessed: 7%
expectations:
  - expect: "loops.count == 0"
    modules: jit_*
    why: they are unrolled
"""
    found = parse_expectations(Source("e.yaml", text))
    assert (found.target, found.cost_model, found.max_guessed) == ("h100_sxm", "sol", 0.07)
    (entry,) = found.entries
    assert entry.why == "they are unrolled"
    assert not entry.is_for(view_of().subject.module)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", (1, 1), "the file holds no expectations"),
        ("5", (1, 1), "expected a list of expectations or settings with them (a mapping)"),
        ("- [a]", (1, 3), "expected an expectation (a mapping)"),
        ("- {expct: a}", (1, 4), "unknown key 'expct'"),
        ("- {why: a}", (1, 3), "the key 'expect' is missing"),
        ("- {expect: loops.count == 0, expect: a}", (1, 30), "key 'expect' is given twice"),
        ("- {expect: [a]}", (1, 12), "expected a single value"),
        ("target: h100_sxm", (1, 1), "the key 'expectations' is missing"),
        ("expectations: 5", (1, 15), "expected a list of expectations"),
        ("target: h10\nexpectations: []", (1, 9), "no target 'h10'"),
        ("cost_model: so\nexpectations: []", (1, 13), "there is no cost model 'so'"),
        ("max_guessed: 101%\nexpectations: []", (1, 14), "'101%' is no share"),
        ("- loops.count == 0\n- memory.peek <= 1B", (2, 10), "unknown figure of memory 'peek'"),
        ("- loops.count == 0\n- 'memory.peek <= 1B'", (2, 11), "unknown figure of memory 'peek'"),
        ("- |\n  memory.peek <= 1B\n", (1, 3), "unknown figure of memory 'peek'"),
        ("- dots(lsh=f32).count == 0", (1, 8), "unknown key 'lsh'"),
        ("- {expect: a", (1, 13), "not YAML"),
        ("- \x1b", (1, 3), "not YAML"),
        ("[" * 200, (1, 101), "the YAML is nested too deeply"),
    ],
)
def test_mistakes(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_expectations(Source("e.yaml", text))
    assert message in caught.value.message
    assert caught.value.location == place


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("0", 0), ("100%", 1)])
def test_shares(text: str, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["-1%", "2", "", "%", "nan", "5 kg"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_share(text)
