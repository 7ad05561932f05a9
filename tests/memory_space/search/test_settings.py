"""Settings that a search varies, orders of buffers, and uses that it leaves outside."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.memory_space.chains import chain
from tests.memory_space.search.test_search import BY_COST, options_of

from hloopt.memory_space.allocation.hints import Hints
from hloopt.passes.memory_space.search.orders import (
    Worth,
    per_area,
    per_root_of_area,
    per_step,
    ranked,
    worths,
)
from hloopt.passes.memory_space.search.settings import WITHOUT_COPIES, varied, with_settings
from hloopt.passes.memory_space.search.trial import try_assignment
from hloopt.text import parse_module

OPTIONS = options_of(BY_COST)


@pytest.mark.parametrize(("most", "wanted", "found"), [(-1, 8, 8), (4, 8, 4), (4, 2, 2), (0, 1, 0)])
def test_limits_on_copies_are_not_exceeded(most: int, wanted: int, found: int) -> None:
    options = replace(OPTIONS, max_outstanding_prefetches=most, max_outstanding_evictions=most)
    settings = {"max_outstanding_prefetches": wanted, "max_outstanding_evictions": wanted}
    changed = with_settings(options, settings)
    assert (changed.max_outstanding_prefetches, changed.max_outstanding_evictions) == (found,) * 2


@pytest.mark.parametrize("kind", ["instruction-count", "cost-analysis"])
def test_settings_of_the_other_picker_stay(kind: str) -> None:
    options = options_of({**BY_COST, "prefetch_interval_picker": {"kind": kind}})
    names = {name for seed in range(60) for name in varied(options, {}, Random(seed))}
    ratios = {name for name in names if name.endswith("_ratio") and "picker" in name}
    assert len(ratios) == (0 if kind == "instruction-count" else 3)
    assert ("prefetch_interval_picker.max_overlap" in names) == (kind == "instruction-count")
    assert "max_outstanding_prefetches" in names


def test_a_variation_is_another_value() -> None:
    for seed in range(40):
        changed = varied(OPTIONS, WITHOUT_COPIES, Random(seed))
        assert changed != WITHOUT_COPIES
        assert WITHOUT_COPIES.keys() <= changed.keys()


def test_orders_divide_by_live_ranges() -> None:
    found = {("short", 0): Worth(1.0, 16, 1), ("long", 0): Worth(2.0, 40, 10)}
    assert list(ranked(found, lambda worth: worth.seconds)) == [("long", 0), ("short", 0)]
    for value in (per_step, per_root_of_area, per_area):
        ranks = ranked(found, value)
        assert list(ranks) == [("short", 0), ("long", 0)]
        assert list(ranks.values()) == [-2, -1]


def test_a_worth_counts_all_reads_and_the_live_range() -> None:
    text = chain(3, at_end="add(%n{last}, %n0)")
    found = worths(parse_module(text), OPTIONS)
    twice, once = found["n0", 0], found["n1", 0]
    assert twice.seconds == pytest.approx(1.5 * once.seconds)  # written once, read twice
    assert (twice.bytes, once.bytes) == (32, 32)
    assert twice.steps == once.steps + 2


def test_a_use_that_is_denied_reads_default_memory() -> None:
    module = parse_module(chain(6))
    plain = try_assignment(module, OPTIONS, Hints())
    denied = try_assignment(module, OPTIONS, Hints(denied=frozenset([("n2", 0, 0)])))
    assert ("n1", 0) in denied.outside
    assert ("n1", 0) not in plain.outside
    assert denied.seconds > plain.seconds
    assert (
        denied.seconds
        < try_assignment(module, replace(OPTIONS, max_size_in_bytes=0), Hints()).seconds
    )


def test_what_has_a_lower_rank_is_placed_first() -> None:
    module = parse_module(chain(3, at_end="add(%n{last}, %n0)"))
    options = replace(OPTIONS, max_size_in_bytes=32, max_outstanding_prefetches=0)
    first = try_assignment(module, options, Hints(ranks={("n0", 0): -1}))
    last = try_assignment(module, options, Hints(ranks={("n0", 0): 1}))
    assert ("n0", 0) not in first.outside
    assert ("n0", 0) in last.outside
