"""Loops that are unrolled. The analysis has its own tests."""

from __future__ import annotations

from tests.analysis.loops.test_unrolled import module, product
from tests.checks.lint.linting import found_names, violations

CODE = "HLL504"


def test_a_block_that_is_repeated_is_found() -> None:
    (found,) = violations(CODE, module(product, 12), repeats=4, block=2)
    first = found.location.instruction
    assert found.message == (
        f"a block of 2 instructions is repeated 10 times, first around %{first}: 20 instructions "
        "where a loop has 2"
    )
    assert [each.instruction for each in found.related] == ["d4", "d5", "d6", "d7", "d8"]
    assert first == "d3"


def test_the_least_of_both_are_options() -> None:
    text = module(product, 12)
    assert found_names(CODE, text) == []
    assert found_names(CODE, text, block=2) == ["d3"]
    assert found_names(CODE, text, block=2, repeats=11) == []
