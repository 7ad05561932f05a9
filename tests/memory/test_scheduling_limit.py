"""The part of a device's memory that is left for temporaries."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.memory.limit import Fit, MemoryLimit
from hloopt.memory.scheduling_limit import scheduling_limit
from hloopt.text import parse_module

LINES = (
    "p = (f32[100], f32[20]{0:S(5)}) parameter(0)",
    "q = f32[30] parameter(1)",
    "a = f32[100] get-tuple-element(p), index=0",
    "n = f32[100] negate(a)",
    "m = f32[30]{0:S(5)} copy(q)",
    "k = f32[30] negate(q)",
    "t = (f32[100], f32[30]{0:S(5)}, f32[30]) tuple(n, m, k)",
)
ARGUMENTS = 16 + 400 + 120  # a table, and arrays but those on the host
RESULTS = 24 + 400 + 120


def limit_of(usable: int, slop: int, *aliases: str) -> int:
    header = f"is_scheduled=true, input_output_alias={{ {', '.join(aliases)} }}"
    return scheduling_limit(parse_module(module_text(*LINES, header=header)), usable, slop)


def test_arguments_and_results_are_taken_off() -> None:
    assert limit_of(5000, 100) == 5000 - ARGUMENTS - RESULTS
    assert limit_of(5000, 95) == (5000 - ARGUMENTS - RESULTS) * 95 // 100
    assert limit_of(ARGUMENTS + RESULTS + 1, 100) == 1
    assert limit_of(ARGUMENTS + RESULTS, 100) == limit_of(7, 100) == 0


@pytest.mark.parametrize(
    ("alias", "shared"), [("{0}: (0, {0})", 400), ("{2}: (1, {})", 120), ("{1}: (0, {1})", 0)]
)
def test_a_result_in_the_place_of_an_argument_counts_once(alias: str, shared: int) -> None:
    assert limit_of(5000, 100, alias) == 5000 - ARGUMENTS - RESULTS + shared
    both = limit_of(5000, 100, "{0}: (0, {0})", "{2}: (1, {})")
    assert both == 5000 - ARGUMENTS - RESULTS + 520


@pytest.mark.parametrize(
    ("needed", "fits", "missing"), [(9, True, 0), (10, True, 0), (12, False, 2)]
)
def test_what_fits_is_at_most_as_large_as_the_limit(needed: int, fits: bool, missing: int) -> None:
    fit = Fit(needed, MemoryLimit(10, "--limit"))
    assert (fit.fits, fit.missing) == (fits, missing)
