"""Orders that must not be adopted: by the search for a better one, under a hard memory limit."""

from __future__ import annotations

import pytest

from hloopt.analysis.latency import FixedModel
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.search.module_search import ModuleSearch
from hloopt.scheduling.search_options import SearchOptions
from hloopt.text import parse_module

GATHERS = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  s = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  d = f32[16] all-gather-done(s)
  t = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  f = f32[16] all-gather-done(t)
  ROOT r = (f32[16], f32[16]) tuple(d, f)
}"""


def names(module: Module) -> list[str]:
    return [instruction.name for instruction in module.entry.instructions]


@pytest.mark.parametrize(
    ("order", "limit", "problem"),
    [
        ("p s t d f r", 1000, "'%d' would exceed an overlap limit"),
        ("p d s t f r", None, "'%s' would be on the wrong side of what it depends on"),
        ("p s d t f r", 8, "the module would need 224 bytes instead of 8"),
    ],
)
def test_an_order_that_breaks_a_rule_is_given_up(
    order: str, limit: int | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = parse_module(GATHERS)
    scheduling = ModuleScheduling.of(module, SchedulerConfig().resolved(), FixedModel())
    schedule_and_report(scheduling, PassContext())
    search = ModuleSearch(scheduling.scheduler, scheduling.computations(), SearchOptions())
    (found,) = search.searches
    by_name = {instruction.name: instruction for instruction in module.entry.instructions}
    monkeypatch.setattr(type(found), "best_order", lambda _: [by_name[n] for n in order.split()])
    if limit is not None:
        search.limit = limit
    before = names(module)
    [finding] = search.adopt()
    assert names(module) == before
    assert not finding.is_better
    assert finding.reason == f"the better order was given up: {problem}"


SHARES = ("90%", "75%", "50%", "25%", "0%")
INCOMING, COMPACT = "the incoming order", "the memory scheduler's order"
WAYS = [
    *(f"aiming at {share} of the limit" for share in SHARES),
    *(f"aiming at {share} of the limit, beginning with {COMPACT}" for share in ("100%", *SHARES)),
    f"following {INCOMING}",
    f"following {INCOMING} with starts next to their dones",
    f"following {COMPACT}",
    f"following {COMPACT} with starts next to their dones",
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_ways_to_keep_a_hard_limit_are_tried_in_order(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first that keeps it is named. No program is known that needs the last ones."""
    peaks = iter([2000, *[1500] * number, 900])
    monkeypatch.setattr(ModuleScheduling, "peak", lambda _: next(peaks))
    context = PassContext()
    options = {"memory_limit": 1000, "hard_memory_limit": True}
    create_pass("latency-hiding-scheduler", options).run(parse_module(GATHERS), context)
    [kept] = [r.reason for r in context.remarks if r.reason.startswith("kept")]
    assert kept == (
        "kept the hard memory limit of 1,000 bytes: the peak is 900, that of the plain order "
        f"2,000; found by {WAYS[number]}"
    )
