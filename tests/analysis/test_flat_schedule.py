"""The order of a whole module."""

from __future__ import annotations

import pytest

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.diagnostics import HloVerifyError
from hloopt.ir.ordering import post_order
from hloopt.text import parse_module

LOOP = """HloModule m, is_scheduled=true
cond { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT }
body { q = (s32[], f32[4]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[4] get-tuple-element(q), index=1
  next = s32[] negate(j)
  ROOT r = (s32[], f32[4]) tuple(next, x) }
ENTRY e { a = s32[] parameter(0)
  b = f32[4] parameter(1)
  t = (s32[], f32[4]) tuple(a, b)
  ROOT w = (s32[], f32[4]) while(t), condition=cond, body=body }
"""


def flat(text: str) -> FlatSchedule:
    return FlatSchedule.of(parse_module(text))


def test_a_condition_stands_before_its_body_and_both_before_the_while() -> None:
    names = [step.name for step in flat(LOOP).steps]
    assert names == ["a", "b", "t", "p", "i", "n", "less", "q", "j", "x", "next", "r", "w"]


def test_spans_hold_the_steps_of_a_computation() -> None:
    schedule = flat(LOOP)
    spans = {computation.name: span for computation, span in schedule.spans.items()}
    assert spans == {"cond": (3, 7), "body": (7, 12), "e": (0, 13)}


def test_a_computation_called_twice_is_laid_out_at_its_first_call() -> None:
    schedule = flat("""HloModule m, is_scheduled=true
f { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
ENTRY e { a = f32[] parameter(0)
  c = f32[] call(a), to_apply=f
  ROOT d = f32[] call(c), to_apply=f }
""")
    assert [step.name for step in schedule.steps] == ["a", "p", "n", "c", "d"]


def test_orders_replace_that_of_the_module() -> None:
    module = parse_module("""HloModule m
ENTRY e { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] subtract(b, a) }
""")
    schedule = FlatSchedule.of(module, {module.entry: post_order(module.entry)})
    assert [step.name for step in schedule.steps] == ["b", "a", "s"]
    assert [schedule.times[step] for step in schedule.steps] == [0, 1, 2]


def test_an_operand_behind_its_user_is_an_error() -> None:
    module = parse_module("""HloModule m, is_scheduled=true
ENTRY e { a = f32[] parameter(0)
  ROOT b = f32[] negate(a) }
""")
    module.entry.reorder(reversed(list(module.entry.instructions)))
    with pytest.raises(HloVerifyError, match="'%b' is scheduled before its operand '%a'"):
        FlatSchedule.of(module)


def test_fusions_are_not_entered() -> None:
    schedule = flat("""HloModule m, is_scheduled=true
f { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
ENTRY e { a = f32[] parameter(0)
  ROOT c = f32[] fusion(a), kind=kLoop, calls=f }
""")
    assert [step.name for step in schedule.steps] == ["a", "c"]


def test_a_computation_that_calls_itself_is_an_error() -> None:
    module = parse_module("""HloModule m, is_scheduled=true
f { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
ENTRY e { a = f32[] parameter(0)
  ROOT c = f32[] call(a), to_apply=f }
""")
    callee = module.computations["f"]
    callee.root.set_called((callee,))
    callee.root.opcode = module.entry.root.opcode
    with pytest.raises(HloVerifyError, match="computation '%f' calls itself"):
        FlatSchedule.of(module)
