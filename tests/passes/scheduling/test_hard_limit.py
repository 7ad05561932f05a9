"""The attempts to keep a hard memory limit: what each aims at, begins with and prefers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.text import parse_module

NAME = "latency-hiding-scheduler"
TEXT = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  t = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  large = f32[64] broadcast(p), dimensions={0}
  n = f32[64] negate(large)
  x = f32[8] slice(n), slice={[0:8]}
  f = f32[16] all-gather-done(t)
  y = f32[8] sine(x)
  s = (f32[8], f32[8], u32[]) copy-start(y)
  z = f32[8] cosine(y)
  d = f32[8] copy-done(s)
  ROOT r = (f32[8], f32[16], f32[8]) tuple(d, f, z)
}""".replace("broadcast(p), dimensions={0}", 'custom-call(p), custom_call_target="c"')
INCOMING = "p t large n x f y s z d r"
COMPACT = "p large n x y s d z t f r"
SHARES = [900, 750, 500, 250, 0]


class Attempt:
    """The questions that the scheduler was asked."""

    def __init__(
        self, module: Module, memory_limit: int, preferences: Mapping[Instruction, float]
    ) -> None:
        self.begin = order_of(module)
        self.memory_limit = memory_limit
        self.preferred = [i.name for i in sorted(preferences, key=preferences.__getitem__)]


def order_of(module: Module) -> str:
    return " ".join(i.name for i in module.entry.instructions)


class Asked:
    """Notes attempts, and gives the peaks of a list as theirs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, peaks: Iterator[int]) -> None:
        self.attempts: list[Attempt] = []
        self.refused: set[int] = set()
        """Attempts for which resources do not suffice."""
        plain = ModuleScheduling.schedule

        def schedule(
            scheduling: ModuleScheduling,
            computations: list[Computation],
            memory_limit: int,
            preferences: Mapping[Instruction, float],
        ) -> None:
            self.attempts.append(Attempt(scheduling.module, memory_limit, preferences))
            if len(self.attempts) in self.refused:
                raise PassRefused("no")
            plain(scheduling, computations, memory_limit, preferences)

        monkeypatch.setattr(ModuleScheduling, "schedule", schedule)
        monkeypatch.setattr(ModuleScheduling, "peak", lambda _: next(peaks))


def run(**options: Any) -> tuple[Module, PassContext]:
    module, context = parse_module(TEXT), PassContext(NAME)
    options = {"memory_limit": 1000, "hard_memory_limit": True, **options}
    create_pass(NAME, options).run(module, context)
    return module, context


def test_attempts_aim_at_less_and_less_then_follow_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, iter([2000, *[1500] * 14, 1000]))
    run()
    limits = [attempt.memory_limit for attempt in asked.attempts]
    assert limits == [1000, *SHARES, 1000, *SHARES, 1000, 1000, 1000, 1000]
    begins = [attempt.begin for attempt in asked.attempts]
    assert begins[:6] == [INCOMING] * 6
    assert begins[6:12] == [COMPACT] * 6
    assert begins[12:] == [INCOMING, INCOMING, COMPACT, COMPACT]
    preferred = [" ".join(attempt.preferred) for attempt in asked.attempts]
    assert preferred[:12] == [""] * 12
    assert preferred[12:] == [
        INCOMING,
        "p large n x t f y z s d r",  # starts next to their dones
        COMPACT,
        "p large n x y s d z t f r",
    ]


@pytest.mark.parametrize(("peaks", "attempts"), [([1000], 1), ([1001, 1000], 2), ([1001, 999], 2)])
def test_the_first_order_within_the_limit_is_kept(
    peaks: list[int], attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, iter(peaks))
    _, context = run()
    assert len(asked.attempts) == attempts
    kept = [r.reason for r in context.remarks if r.reason.startswith("kept the hard")]
    assert len(kept) == attempts - 1


def test_without_a_hard_limit_there_is_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, iter([2000] * 20))
    run(hard_memory_limit=False)
    assert len(asked.attempts) == 1


@pytest.mark.parametrize(
    ("refused", "tried"), [(set(), 16), ({2}, 15), ({2, 5, 16}, 13), ({*range(2, 17)}, 1)]
)
def test_the_best_of_those_that_could_be_made_is_reported(
    refused: set[int], tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaks = iter([2000, *range(1900, 1900 - 20 * 20, -20)])
    asked = Asked(monkeypatch, peaks)
    asked.refused = refused
    with pytest.raises(PassRefused) as caught:
        run()
    least = 2000 if tried == 1 else 1900 - 20 * (tried - 2)
    assert caught.value.message.startswith(
        f"no order that needs at most 1,000 bytes was found: the best of {tried} needs {least:,}, "
    )


def test_later_orders_that_need_as_much_or_more_are_not_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The buffers alive at the peak are those of the best order, the third."""
    Asked(monkeypatch, iter([2000, 1700, 1600, *[1600, 1650] * 7]))
    with pytest.raises(PassRefused, match=r"the best of 16 needs 1,600, at '%\w+'"):
        run()


def test_xla_gpu_has_a_memory_scheduler_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which moves starts up and dones down."""
    asked = Asked(monkeypatch, iter([2000, *[1500] * 5, 1000]))
    run(preset="xla-gpu")
    module = parse_module(TEXT)
    create_pass("hlo-memory-scheduler", {"preset": "xla-gpu"}).run(module, PassContext())
    assert asked.attempts[-1].begin == order_of(module)
    assert order_of(module) != COMPACT
