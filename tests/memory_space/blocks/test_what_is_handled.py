"""Values for which no block prefetch is made, beside the like for which there is one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.blocks.blocks import LOOP, assign, entry, loads

from hloopt.diagnostics import HloError

READ = ("a = f32[6] negate(q)", "b = f32[6] negate(a)", "c = f32[6] add(b, p)")
BRANCHES = """
yes {
  y = f32[6] parameter(0)
  y1 = f32[6] abs(y)
  y2 = f32[6] negate(y1)
  y3 = f32[6] add(y1, y2)
  ROOT yt = (f32[6]) tuple(y3)
}
no {
  n = f32[6] parameter(0)
  n1 = f32[6] negate(n)
  ROOT nt = (f32[6]) tuple(n1)
}
"""
BODY = LOOP.replace("LINES", "x3 = f32[6] add(x2, x1)")
RUNS = """
runs {
  rs = (s32[], f32[6]) parameter(0)
  w = (s32[], f32[6]) while(rs), condition=condition, body=body
  w0 = s32[] get-tuple-element(w), index=0
  w1 = f32[6] get-tuple-element(w), index=1
  ROOT rt = (s32[], f32[6]) tuple(w0, w1)
}
rests {
  es = (s32[], f32[6]) parameter(0)
  e0 = s32[] get-tuple-element(es), index=0
  e1 = f32[6] get-tuple-element(es), index=1
  ROOT et = (s32[], f32[6]) tuple(e0, e1)
}
"""
SUM = """
sum {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT uv = f32[] add(u, v)
}
"""
ASYNC = """
inner {
  z = f32[6] parameter(0)
  ROOT z1 = f32[6] negate(z)
}
"""


def test_a_parameter_is_loaded() -> None:
    module, report = assign(entry(*READ, "ROOT r = f32[6] abs(c)"), "p")
    assert loads(module) == {"p": ("p", "c")}
    assert [c.instruction.name for c in report.chunks if c.instruction.opcode == "copy-done"]


def test_what_the_program_makes_is_loaded_from_where_it_was_made() -> None:
    module, _ = assign(entry(*READ, "d = f32[6] add(c, a)", "ROOT r = f32[6] abs(d)"), "a")
    assert loads(module) == {"a": ("a", "b")}


def test_a_value_within_a_loop_is_loaded_within_it() -> None:
    text = entry(
        "s = (s32[], f32[6]) tuple(i, p)",
        "w = (s32[], f32[6]) while(s), condition=condition, body=body",
        "w1 = f32[6] get-tuple-element(w), index=1",
        "ROOT r = f32[6] negate(w1)",
        computations=BODY.replace("LAST", "x3"),
    )
    assert loads(assign(text, "x1")[0]) == {"x1": ("x1", "x2")}


@pytest.mark.parametrize("last", ["x", "x3"])
def test_the_state_of_a_loop_is_not(last: str) -> None:
    text = entry(
        "s = (s32[], f32[6]) tuple(i, p)",
        "w = (s32[], f32[6]) while(s), condition=condition, body=body",
        "w1 = f32[6] get-tuple-element(w), index=1",
        "ROOT r = f32[6] negate(w1)",
        computations=BODY.replace("LAST", last),
    )
    assert loads(assign(text, "p", "x", "w")[0]) == {}


CONDITIONAL = (
    "k = pred[] constant(true)",
    "o = (f32[6]) conditional(k, p, q), true_computation=yes, false_computation=no",
    "o0 = f32[6] get-tuple-element(o), index=0",
    "ROOT r = f32[6] negate(o0)",
)
NOT_LOADED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "shares memory with an output": (
        entry(*READ, "ROOT t = (f32[6], f32[6]) tuple(c, p)"),
        "p",
        {},
    ),
    "is made within a branch": (entry(*CONDITIONAL, computations=BRANCHES), "y1", {}),
    "is made in a loop within a branch": (
        entry(
            "k = pred[] constant(true)",
            "s = (s32[], f32[6]) tuple(i, p)",
            "o = (s32[], f32[6]) conditional(k, s, s), true_computation=runs, "
            "false_computation=rests",
            "o0 = f32[6] get-tuple-element(o), index=1",
            "ROOT r = f32[6] negate(o0)",
            computations=BODY.replace("LAST", "x3") + RUNS,
        ),
        "x1",
        {},
    ),
    "reaches branches": (entry(*CONDITIONAL, computations=BRANCHES), "p", {}),
    "is read by an async-start": (
        entry(
            *READ,
            "s = ((f32[6]), f32[6], u32[]) async-start(p), calls=inner",
            "d = f32[6] async-done(s)",
            "ROOT r = f32[6] add(d, c)",
            computations=ASYNC,
        ),
        "p",
        {},
    ),
    "is read by an all-reduce-start": (
        entry(
            *READ,
            "s = f32[6] all-reduce-start(p), replica_groups={}, to_apply=sum",
            "d = f32[6] all-reduce-done(s)",
            "ROOT r = f32[6] add(d, c)",
            computations=SUM,
        ),
        "p",
        {},
    ),
    "is read by a copy-start": (
        entry(
            *READ,
            "s = (f32[6], f32[6], u32[]) copy-start(p)",
            "d = f32[6] copy-done(s)",
            "ROOT r = f32[6] add(d, c)",
        ),
        "p",
        {},
    ),
    "is sent": (
        entry(
            *READ,
            "k = token[] after-all()",
            "s = (f32[6], u32[], token[]) send(p, k), channel_id=1",
            "d = token[] send-done(s), channel_id=1",
            "ROOT r = f32[6] abs(c)",
        ),
        "p",
        {},
    ),
    "is copied": (entry(*READ, "d = f32[6] copy(p)", "ROOT r = f32[6] add(c, d)"), "p", {}),
    "is sliced": (
        entry(*READ, "d = f32[2] slice(p), slice={[0:2]}", "ROOT r = (f32[2], f32[6]) tuple(d, c)"),
        "p",
        {},
    ),
    "is sliced by a number": (
        entry(
            *READ,
            "d = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}",
            "ROOT r = (f32[2], f32[6]) tuple(d, c)",
        ),
        "p",
        {},
    ),
    "is a scalar": (entry("j = s32[] negate(i)", "ROOT r = s32[] add(i, j)"), "i", {}),
    "is written in place": (
        entry(
            "z = f32[6] negate(q)",
            "h = f32[1] constant({1})",
            "u = f32[6] dynamic-update-slice(z, h, i)",
            "v = f32[6] negate(u)",
            "ROOT r = f32[6] negate(v)",
        ),
        "z",
        {},
    ),
    "has no use": (entry(*READ, "ROOT r = f32[6] abs(q)"), "c", {}),
    "must be read in default memory": (
        entry(*READ, "ROOT r = f32[6] abs(c)"),
        "p",
        {"uses_not_allowed": {"names": ["c"]}},
    ),
    "is read where the use is colored default": (
        entry(*READ, "ROOT r = f32[6] abs(c)"),
        "p",
        {"buffer_colorings": ({"use": "c", "operand": 1, "memory_space": 0},)},
    ),
    "keeps its place": (
        entry(*READ, "ROOT r = f32[6] add(c, a)"),
        "a",
        {"positions_require_contiguous_allocation": ({"name": "a"},)},
    ),
    "is defined where alternate memory is demanded": (
        entry(*READ, "ROOT r = f32[6] add(c, a)"),
        "a",
        {"buffer_colorings": ({"position": "a", "memory_space": 1},)},
    ),
}


@pytest.mark.parametrize("reason", NOT_LOADED)
def test_a_value_is_left_alone_that(reason: str) -> None:
    text, name, options = NOT_LOADED[reason]
    assert loads(assign(text, name, **options)[0]) == loads(assign(text, **options)[0])


def test_what_is_not_handled_is_left_to_the_ordinary_procedure() -> None:
    text = entry(*READ, "d = f32[6] add(b, c)", "e = f32[6] copy(p)", "ROOT r = f32[6] add(e, d)")
    assert loads(assign(text, "p", max_outstanding_prefetches=-1)[0])


def test_without_outstanding_block_prefetches_there_are_none() -> None:
    text = entry(*READ, "ROOT r = f32[6] abs(c)")
    assert loads(assign(text, "p", max_outstanding_block_prefetches=0)[0]) == {}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("block_prefetched_positions", ("pp",)),
        ("custom_call_prefetches", (("pp", "a", "b"),)),
    ],
)
def test_a_name_that_is_not_there(option: str, words: tuple[object, ...]) -> None:
    with pytest.raises(HloError, match=f"{option} names '%pp', which is not in the schedule"):
        assign(entry(*READ, "ROOT r = f32[6] abs(c)"), **{option: words})


def test_a_name_of_the_text_is_one_of_the_schedule() -> None:
    fused = "f {\n p = f32[6] parameter(0)\n ROOT n = f32[6] negate(p)\n}"
    call = "d = f32[6] fusion(c), kind=kLoop, calls=f"
    module, _ = assign(entry(*READ, call, "ROOT r = f32[6] abs(d)", computations=fused), "p")
    assert len(loads(module)) == 1
