"""Loops of which only what they are given is read do not run: endless ones have a result, too."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value
from hloopt.text import parse_module

ENDLESS = """HloModule m
body { p = (f32[], f32[]) parameter(0)  x = f32[] get-tuple-element(p), index=0
  c = f32[] copy(x)  y = f32[] get-tuple-element(p), index=1  n = f32[] negate(y)
  BODY
  ROOT t = (f32[], f32[]) tuple(c, n) }
always { p = (f32[], f32[]) parameter(0)  ROOT yes = pred[] constant(true) }
ENTRY e { a = f32[] parameter(0)  b = f32[] parameter(1)  t = (f32[], f32[]) tuple(a, b)
  w = (f32[], f32[]) while(t), condition=always, body=body
  dead = f32[] get-tuple-element(w), index=1
  READ }"""
KEPT = "ROOT r = f32[] get-tuple-element(w), index=0"


def run_endless(read: str, body: str = "", computations: str = "") -> Value:
    """What ENDLESS makes of 3 and 4, stopped after 2,000 steps."""
    text = ENDLESS.replace("READ", read).replace("BODY", body)
    module = parse_module(text.replace("HloModule m", f"HloModule m\n{computations}"))
    arguments = [np.float32(3), np.float32(4)]
    return run_module(
        *(module, [arguments]),
        devices=devices_of(1, 1),
        limits=Limits(steps=2000),
        stand_ins=True,
        feed=lambda *_: None,
    )[0]


@pytest.mark.parametrize(
    ("read", "value"),
    [(KEPT, 3), ("ROOT r = f32[] negate(a)", -3), (f"{KEPT[5:]}\n  ROOT s = f32[] negate(r)", -3)],
    ids=["handed-on", "unread", "read-further"],
)
def test_it_ends_with_what_it_is_given(read: str, value: float) -> None:
    assert run_endless(read) == value


@pytest.mark.parametrize(
    "read",
    [
        "ROOT r = f32[] get-tuple-element(w), index=1",
        "ROOT r = f32[] negate(dead)",
        "ROOT o = (f32[], f32[]) opt-barrier(w)",
    ],
    ids=["changed", "read-further", "whole"],
)
def test_it_runs_where_what_it_computes_is_read(read: str) -> None:
    with pytest.raises(RunError, match="stopped after"):
        run_endless(read)


def test_it_runs_where_it_is_the_result() -> None:
    body = "b { ROOT p = s32[] parameter(0) }  c { q = s32[] parameter(0)  ROOT l = pred[] "
    loop = "ENTRY e { x = s32[] parameter(0)  ROOT w = s32[] while(x), condition=c, body=b }"
    assert run(f"HloModule m {body}constant(true) }} {loop}", np.int32(5)) == 5
    grows = "b { p = s32[] parameter(0)  ROOT s = s32[] add(p, p) }  c { q = s32[] parameter(0)  "
    ends = "n = s32[] constant(9)  ROOT l = pred[] compare(q, n), direction=LT }"
    assert run(f"HloModule m {grows}{ends} {loop}", np.int32(5)) == 10


@pytest.mark.parametrize(
    "body",
    [
        "k = token[] after-all()  o = token[] outfeed(x, k), outfeed_shape=f32[]",
        'o = f32[] custom-call(x), custom_call_target="log", custom_call_has_side_effect=true',
        "g = f32[] all-reduce(x), replica_groups={}, to_apply=sum",
    ],
    ids=["outfeed", "custom-call", "collective"],
)
def test_it_runs_where_it_does_more_than_compute(body: str) -> None:
    add = "sum { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT s = f32[] add(l, r) }"
    called = f"z {{ x = f32[] parameter(0)  {body}  ROOT c = f32[] copy(x) }}"
    for place in (body, "f = f32[] call(x), to_apply=z"):
        with pytest.raises(RunError, match="stopped after"):
            run_endless(KEPT, place, f"{add}\n{called}")
