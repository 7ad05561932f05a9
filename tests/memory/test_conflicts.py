"""Values that are computed where another one, in the same buffer, is still needed."""

from __future__ import annotations

import pytest
from tests.memory.modules import assign

UPDATE = (
    "a = f32[8] parameter(0)",
    "u = f32[1] parameter(1)",
    "i = s32[] parameter(2)",
    "c = f32[8] sine(a)",
    "d = f32[8] dynamic-update-slice(c, u, i)",
)


def conflicts(*lines: str, before: str = "", header: str = "") -> int:
    return assign(*lines, before=before, header=f"is_scheduled=true{header}").ranges.conflicts


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((), 0),
        (("e = f32[8] negate(d)",), 0),
        (("e = f32[8] add(d, c)",), 1),
        (("e = f32[8] dynamic-update-slice(d, u, i)",), 0),
        (("e = f32[8] dynamic-update-slice(c, u, i)", "f = f32[8] add(d, e)"), 2),
        (("e = f32[8] dynamic-update-slice(d, u, i)", "f = f32[8] add(d, e)"), 1),
        (("e = f32[8] dynamic-update-slice(d, u, i)", "f = f32[8] add(c, e)"), 2),
        (("b = f32[2,4] bitcast(c)", "e = f32[8] bitcast(b)", "f = f32[8] add(d, e)"), 1),
        (("t = (f32[8], f32[8]) tuple(c, d)",), 1),  # both are results
        (("t = (f32[8], f32[8]) tuple(d, d)",), 0),
    ],
)
def test_what_is_read_behind_the_update_is_written_over(
    lines: tuple[str, ...], expected: int
) -> None:
    assert conflicts(*UPDATE, *lines) == expected


@pytest.mark.parametrize(
    ("updated", "header", "expected"),
    [
        ("a", "", 1),
        ("a", ", input_output_alias={ {}: (0, {}) }", 0),
        ("k", "", 1),  # a constant
    ],
)
def test_arguments_and_constants_are_never_written(
    updated: str, header: str, expected: int
) -> None:
    lines = (
        "a = f32[4] parameter(0)",
        "u = f32[1] parameter(1)",
        "i = s32[] parameter(2)",
        "k = f32[4] constant({1, 2, 3, 4})",
        f"d = f32[4] dynamic-update-slice({updated}, u, i)",
    )
    assert conflicts(*lines, header=header) == expected


def test_nothing_is_lost_where_nothing_is_stored() -> None:
    lines = (
        "a = f32[0] parameter(0)",
        "u = f32[0] parameter(1)",
        "i = s32[] parameter(2)",
        "d = f32[0] dynamic-update-slice(a, u, i)",
        "t = (f32[0], f32[0]) tuple(a, d)",
    )
    assert conflicts(*lines) == 0


BRANCHES = """
f { x = (f32[8], f32[1], s32[]) parameter(0)
  y = f32[8] get-tuple-element(x), index=0
  u = f32[1] get-tuple-element(x), index=1
  i = s32[] get-tuple-element(x), index=2
  ROOT z = f32[8] dynamic-update-slice(y, u, i) }
g { x.1 = (f32[8], f32[1], s32[]) parameter(0)
  y.1 = f32[8] get-tuple-element(x.1), index=0
  ROOT z.1 = f32[8] %s(y.1) }
"""


@pytest.mark.parametrize(
    ("other", "behind", "expected"),
    [
        ("sine", (), 0),  # only one of the branches runs
        ("copy", (), 0),
        ("sine", ("e = f32[8] add(d, d)",), 0),
        ("sine", ("e = f32[8] add(c, d)",), 3),  # the result of each branch, and that of both
    ],
)
def test_only_one_branch_of_a_conditional_runs(
    other: str, behind: tuple[str, ...], expected: int
) -> None:
    found = conflicts(
        "p = pred[] parameter(0)",
        "a = f32[8] parameter(1)",
        "u.1 = f32[1] parameter(2)",
        "i.1 = s32[] parameter(3)",
        "c = f32[8] sine(a)",
        "t = (f32[8], f32[1], s32[]) tuple(c, u.1, i.1)",
        "d = f32[8] conditional(p, t, t), true_computation=f, false_computation=g",
        *behind,
        before=BRANCHES % other,
    )
    assert found == expected


def test_what_runs_asynchronously_may_write_over_its_operand() -> None:
    wrapped = """w { x = f32[8] parameter(0)
  u.1 = f32[1] parameter(1)
  i.1 = s32[] parameter(2)
  ROOT y = f32[8] dynamic-update-slice(x, u.1, i.1) }
"""
    start = "s = ((f32[8], f32[1], s32[]), f32[8]) async-start(c, u, i), calls=w"
    lines = (*UPDATE[:4], start, "n = f32[8] negate(a)", "d = f32[8] async-done(s)")
    assert conflicts(*lines, "r = f32[8] add(d, n)", before=wrapped) == 0
    assert conflicts(*lines, "r = f32[8] add(d, c)", before=wrapped) == 1
    between = (*lines[:5], "n = f32[8] negate(c)", lines[6])
    assert conflicts(*between, "r = f32[8] add(d, n)", before=wrapped) == 1


LOOP = """
cond { p = (s32[], f32[8], f32[1]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ROOT less = pred[] compare(i, i), direction=LT }
body { q = (s32[], f32[8], f32[1]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[8] get-tuple-element(q), index=1
  u = f32[1] get-tuple-element(q), index=2
  v = f32[8] dynamic-update-slice(x, u, j)
  k = f32[1] slice(%s), slice={[0:1]}
  ROOT r = (s32[], f32[8], f32[1]) tuple(j, v, k) }
"""


@pytest.mark.parametrize(("read", "expected"), [("v", 0), ("x", 1)])
def test_a_loop_reads_its_state_before_it_writes_over_it(read: str, expected: int) -> None:
    found = conflicts(
        "a = f32[8] parameter(0)",
        "b = f32[1] parameter(1)",
        "n = s32[] parameter(2)",
        "c = f32[8] copy(a)",
        "d = f32[1] copy(b)",
        "e = s32[] copy(n)",
        "t = (s32[], f32[8], f32[1]) tuple(e, c, d)",
        "w = (s32[], f32[8], f32[1]) while(t), condition=cond, body=body",
        before=LOOP % read,
    )
    assert found == expected


def test_a_loop_or_a_branch_reads_what_it_is_given_when_it_begins() -> None:
    """`c` is given to both, and written over before."""
    update = (
        *UPDATE[:4],
        "g = f32[1] copy(u)",
        "h = s32[] copy(i)",
        "d = f32[8] dynamic-update-slice(c, u, i)",
        "o = f32[1] slice(d), slice={[0:1]}",
    )
    loop = "w = (s32[], f32[8], f32[1]) while(t), condition=cond, body=body"
    state = "t = (s32[], f32[8], f32[1]) tuple(h, %s, g)"
    assert conflicts(*update, state % "d", loop, before=LOOP % "v") == 0
    assert conflicts(*update, state % "c", loop, before=LOOP % "v") == 1
    branch = "e = f32[8] conditional(p, k, k), true_computation=f, false_computation=g"
    given = ("p = pred[] parameter(3)", "k = (f32[8], f32[1], s32[]) tuple(%s, u, i)", branch)
    for name, expected in (("d", 0), ("c", 1)):
        lines = (line.replace("%s", name) for line in given)
        assert conflicts(*update, *lines, before=BRANCHES % "sine") == expected
