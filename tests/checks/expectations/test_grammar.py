"""Mistakes in expectations have their place, and the name that was meant."""

from __future__ import annotations

import pytest

from hloopt.checks.expectations.grammar import (
    ExpectationError,
    parse_expectation,
    parse_figure,
)
from hloopt.diagnostics import HloError


@pytest.mark.parametrize(
    ("text", "marked", "message", "help"),
    [
        ("", " ", "expected the name of a table", "collectives"),
        ("memry.peak <= 1B", "memry", "unknown table 'memry'", "'memory'"),
        ("memory.peek <= 1B", "peek", "unknown figure of memory 'peek'", "'peak'"),
        ("memory <= 1B", "<", "expected '.' and a figure of memory", "peak"),
        ("memory. <= 1B", "<", "expected a figure of memory", "peak"),
        ("memory(a=1).peak <= 1B", "a", "memory takes no arguments", "tables"),
        ("schedule(targt=x).exposed <= 1s", "targt", "unknown argument", "'target'"),
        ("schedule(target).exposed <= 1s", ")", "expected '=' and a target", ""),
        ("schedule(target=).exposed <= 1s", ")", "expected a target", ""),
        ("schedule(target=h10).exposed <= 1s", "h10", "no target 'h10'", "h100_sxm"),
        ("schedule(cost_model=so).makespan <= 1s", "so", "unknown cost model 'so'", "'sol'"),
        (
            "schedule(target=b200, target=b200).exposed <= 1s",
            "target",
            "'target' is given twice",
            "",
        ),
        ("schedule(target=b200 <= 1s", "(", "never closed", ""),
        ("loops(trips=5", "(", "never closed", ""),
        ("memory.peak", " ", "expected a comparison of peak", "=="),
        ("memory.peak = 1B", "=", "does not take '='", "'=='"),
        ("memory.peak =< 1B", "=<", "does not take '=<'", "'<='"),
        ("memory.peak ~ 1B", "~", "does not take '~'", "=="),
        ("dots.shape <= f32[]", "<=", "does not take '<='", "=="),
        ("memory.peak <=", " ", "expected a size", "KiB"),
        ("memory.peak <= much", "much", "expected a size", "KiB"),
        ("memory.peak <= 5", "5", "'5' has no unit", "KiB"),
        ("memory.peak <= 5Kib", "Kib", "unknown unit 'Kib'", "'KiB'"),
        ("memory.peak <= 5ms", "ms", "'ms' is of a time", "KiB"),
        ("memory.peak <= 5%", "%", "'%' is of a share", "KiB"),
        ("loops.count == 5GiB", "GiB", "'GiB' is of a size", "k"),
        ("loops.count in 5", " ", "expected '..'", "30..40"),
        ("loops.count in 5..1", "5..1", "the lower end is above the upper one", ""),
        ("schedule.exposed in 1us..5%", "1us..5%", "both ends need the same unit", ""),
        ("loops.count == 1 2", "2", "expected the end of the expectation", "another one"),
        ("dots.shape ==", " ", "expected a text for shape", ""),
        ('dots.shape ~ "("', "(", "not a regular expression", ""),
        ("dots(lsh=f32).count == 0", "lsh", "unknown key 'lsh'", "'lhs'"),
        ("dots(lhs=f31).count == 0", "f31", "'f31' is not an element type", "'f32'"),
        ("dots(lhs=floot).count == 0", "floot", "'floot' is not an element type", "'float'"),
        (
            "collectives(kind=all-gater).count == 0",
            "all-gater",
            "is not a collective",
            "all-gather",
        ),
        ("collectives(kind=dot).count == 0", "dot", "is not a collective", ""),
        ("collectives(form=asynk).count == 0", "asynk", "is not a form", "'async'"),
        ("loops(trips<unknown).count == 0", "unknown", "neither more nor less", ""),
    ],
)
def test_mistakes(text: str, marked: str, message: str, help: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_expectation(text)
    error = caught.value
    assert message in error.message
    assert help in (error.help or "")
    assert error.span is not None
    assert f"{text} "[error.span.start : error.span.end] == marked


@pytest.mark.parametrize(
    "text",
    [
        "memory.peak<=1GiB",
        " memory . peak <= 1 GiB ",
        "loops().count == 0",
        "loops(trips=unknown|4, not in-loop).count in 0 .. 4",
        "collectives(kind=all-*).count == 0",
        "instructions(op_name~'a, b').count == 0",
        "schedule(target=h100_sxm, cost_model=sol).exposed <= 5.5%",
        "memory.peak == 0",
        "loops.count <= 1.5k",
        "parameters.sharding == {devices=[2,2]<=[4] last_tile_dim_replicate}",
    ],
)
def test_forms(text: str) -> None:
    assert parse_expectation(text).text == text.strip()


def test_a_figure_alone_is_no_expectation_and_the_other_way_round() -> None:
    assert parse_figure("memory.peak").measure.name == "peak"
    with pytest.raises(ExpectationError, match="expected the end of the figure"):
        parse_figure("memory.peak <= 1B")
