"""Computations inside of each other, and the limits of a run."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import run_module
from hloopt.interpreter.values import Value
from hloopt.text import parse_module

COUNT_TO_1000 = """HloModule m
body { i = s32[] parameter(0) one = s32[] constant(1) ROOT j = s32[] add(i, one) }
more { i = s32[] parameter(0) n = s32[] constant(1000) ROOT r = pred[] compare(i, n), direction=LT }
ENTRY e { i = s32[] parameter(0) ROOT w = s32[] while(i), condition=more, body=body }
"""
FOUR_KILOBYTES = """HloModule m
ENTRY e { p = f32[1024] parameter(0)
  a = f32[1024] negate(p)
  b = f32[1024] negate(a)
  c = f32[1024] negate(b)
  ROOT d = f32[1024] negate(c) }
"""


def run_within(limits: Limits, text: str, argument: Value) -> Value:
    return run_module(parse_module(text), [[argument]], limits=limits)[0]


def test_calls_can_be_nested_deeper_than_python_s_stack() -> None:
    depth = 2000
    calls = "".join(
        f"call.{n} {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=call.{n - 1} }}\n"
        for n in range(1, depth)
    )
    text = f"""HloModule m
call.0 {{ p = f32[] parameter(0) ROOT r = f32[] add(p, p) }}
{calls}ENTRY e {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=call.{depth - 1} }}"""
    assert run(text, np.float32(1)) == 2


def test_a_loop_stops_at_the_limit_of_steps() -> None:
    assert run_within(Limits(), COUNT_TO_1000, np.int32(0)) == 1000
    limits = Limits(steps=2500)
    with pytest.raises(RunError, match="stopped after 2,500 steps"):
        run_within(limits, COUNT_TO_1000, np.int32(0))
    assert limits.done == 2501


def test_progress_is_told_every_thousand_steps() -> None:
    told: list[int] = []
    run_within(Limits(on_steps=told.append), COUNT_TO_1000, np.int32(700))
    assert told == [1000]


def test_only_values_that_are_still_to_be_read_count_as_memory() -> None:
    values = np.ones(1024, np.float32)
    limits = Limits(memory=2 * 4096)
    run_within(limits, FOUR_KILOBYTES, values)
    assert limits.held == 0
    with pytest.raises(RunError, match="values would take 8,192 bytes here, the limit is 8,191"):
        run_within(Limits(memory=2 * 4096 - 1), FOUR_KILOBYTES, values)


def test_tuples_nested_deeply_pass_through() -> None:
    shape = "(" * 3000 + "f32[2]" + ")" * 3000
    module = parse_module(f"HloModule m ENTRY e {{ ROOT p = {shape} parameter(0) }}")
    settings = RunSettings(seeds=1)
    assert Reference(module, settings).compare(module) is None


BRANCHES = """HloModule m
zero { p = s32[] parameter(0) ROOT r = s32[] constant(0) }
one { p = s32[] parameter(0) ROOT r = s32[] constant(1) }
two { p = s32[] parameter(0) ROOT r = s32[] constant(2) }
ENTRY e { i = s32[] parameter(0)
  ROOT c = s32[] conditional(i, i, i, i), branch_computations={zero, one, two} }
"""


@pytest.mark.parametrize(
    ("index", "branch"), [(0, 0), (1, 1), (2, 2), (3, 2), (1000, 2), (-1, 2), (-2, 2), (-3, 2)]
)
def test_an_index_out_of_range_takes_the_last_branch(index: int, branch: int) -> None:
    assert run(BRANCHES, np.int32(index)) == branch


@pytest.mark.parametrize(("selector", "branch"), [(True, 0), (False, 1)])
def test_true_takes_the_first_branch(selector: bool, branch: int) -> None:
    text = BRANCHES.replace("i = s32[]", "b = pred[]").replace(
        "conditional(i, i, i, i), branch_computations={zero, one, two}",
        "conditional(b, x, x), true_computation=zero, false_computation=one",
    )
    text = text.replace("  ROOT c", "  x = s32[] constant(7)\n  ROOT c")
    assert run(text, np.bool_(selector)) == branch
