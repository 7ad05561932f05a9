"""The memory that searches in the computations of a module leave to each other."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.scheduling.test_search import figures, scheduling_of

from hloopt.scheduling.search.module_search import search_module
from hloopt.scheduling.search_options import SearchOptions

Objective = Literal["makespan", "exposed"]
WORK = "work { w.x = f32[4096] parameter(0) ROOT w.z = f32[4096] negate(w.x) }\n"
CALLEE = """f {
  p = f32[64] parameter(0)
  q = f32[] parameter(1)
  large = f32[4096] broadcast(q), dimensions={}
  a = f32[4096] fusion(large), kind=kOutput, calls=work
  b = f32[64] slice(a), slice={[0:64]}
  s = (f32[64], f32[2048]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[2048] all-gather-done(s)
  c = f32[64] slice(d), slice={[0:64]}
  ROOT r = f32[64] add(b, c)
}
"""
CALLED = "c = f32[64] call(x, y), to_apply=f"


def program(*lines: str) -> str:
    """An operation makes each computation one that is searched."""
    begin = ("x = f32[64] parameter(0)", "y = f32[] parameter(1)")
    copied = "x.s = (f32[], f32[], u32[]) copy-start(y)\n  x.d = f32[] copy-done(x.s)"
    body = "\n  ".join((*begin, copied, *lines))
    return f"HloModule m, is_scheduled=true\n{WORK}{CALLEE}ENTRY e {{\n  {body}\n}}"


PROGRAMS = {
    "alone": program("ROOT c = f32[64] call(x, y), to_apply=f"),
    "beside a buffer": program(
        'k = f32[1000] custom-call(y), custom_call_target="t"',
        CALLED,
        "l = f32[64] slice(k), slice={[0:64]}",
        "ROOT t = f32[64] add(c, l)",
    ),
    "twice, once beside a buffer": program(
        CALLED,
        'k = f32[1000] custom-call(y), custom_call_target="t"',
        "c2 = f32[64] call(c, y), to_apply=f",
        "l = f32[64] slice(k), slice={[0:64]}",
        "ROOT t = f32[64] add(c2, l)",
    ),
}


def searched(
    text: str, limit: int, iterations: int, objective: Objective = "makespan"
) -> tuple[float, int]:
    """The exposed cycles of %f, and the peak of the module, after a search with a limit."""
    plain = scheduling_of(text, memory_limit=1)
    options = SearchOptions(iterations=iterations, memory_limit=limit, objective=objective)
    outcome = search_module(plain.scheduler, plain.computations(), options)
    assert not any("given up" in finding.reason for finding in outcome.findings)
    plain.scheduler.life.restart()
    names = [computation.name for computation in plain.computations()]
    return figures(plain)[names.index("f")][1], plain.scheduler.life.peak


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_callee_may_use_what_its_callers_leave_to_the_byte(name: str) -> None:
    text = PROGRAMS[name]
    plain, plain_peak = searched(text, 0, 400)
    free, needed = searched(text, 1 << 20, 400)
    assert (plain, free) == (4999.0, 0.0)
    assert plain_peak < needed
    assert searched(text, needed, 400)[0] == 0.0
    waits, peak = searched(text, needed - 1, 400)
    assert waits > 0
    assert peak < needed


@pytest.mark.parametrize("objective", ["makespan", "exposed"])
def test_callees_have_the_first_choice_as_they_run_many_times(objective: Objective) -> None:
    assert searched(PROGRAMS["alone"], 1 << 20, 2000, objective)[0] == 0.0
