"""Permutes in place, asynchronous forms, and what cannot be run."""

from __future__ import annotations

import pytest
from tests.interpreter.devices.arrays import FOUR, NUMBERS, P1, P4, lists
from tests.interpreter.several_devices import entry, run_on

from hloopt.interpreter.errors import RunError


def test_a_permute_in_place_writes_slices() -> None:
    text = entry(
        P4,
        "q = f32[4] constant({-1,-2,-3,-4})",
        "one = s32[] constant(1)",
        "two = s32[] constant(2)",
        "x = (s32[]) tuple(one)",
        "y = (s32[]) tuple(two)",
        "ROOT r = f32[4] collective-permute(p, q, x, y), source_target_pairs={{0,1}}, "
        "slice_sizes={{2}}",
    )
    found = run_on(4, 1, text, FOUR)
    assert lists(found) == [
        [-1, -2, -3, -4],
        [-1, -2, 1, 2],
        [-1, -2, -3, -4],
        [-1, -2, -3, -4],
    ]


def test_a_permute_in_place_of_several_slices() -> None:
    text = entry(
        P4,
        "q = f32[4] constant({-1,-2,-3,-4})",
        "zero = s32[] constant(0)",
        "two = s32[] constant(2)",
        "x0 = (s32[]) tuple(zero)",
        "x2 = (s32[]) tuple(two)",
        "x = ((s32[]), (s32[])) tuple(x0, x2)",
        "y = ((s32[]), (s32[])) tuple(x2, x0)",
        "ROOT r = f32[4] collective-permute(p, q, x, y), "
        "source_target_pairs={{0,1},{1,0},{0,1},{1,0}}, slice_sizes={{2},{1}}",
    )
    assert lists(run_on(2, 1, text, FOUR[:2])) == [[12, -2, 10, 11], [2, -2, 0, 1]]


# -- asynchronous forms ---------------------------------------------------------------------------
ASYNCHRONOUS = {
    "all-reduce": (
        "s = f32[4] all-reduce-start(p), replica_groups={}, to_apply=sum",
        "ROOT d = f32[4] all-reduce-done(s)",
        "f32[4] all-reduce(p), replica_groups={}, to_apply=sum",
    ),
    "all-gather": (
        "s = (f32[4], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}",
        "ROOT d = f32[16] all-gather-done(s)",
        "f32[16] all-gather(p), replica_groups={}, dimensions={0}",
    ),
    "collective-permute": (
        "s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(p), "
        "source_target_pairs={{0,3},{3,1}}",
        "ROOT d = f32[4] collective-permute-done(s)",
        "f32[4] collective-permute(p), source_target_pairs={{0,3},{3,1}}",
    ),
    "two permutes": (
        "s = ((f32[4], f32[4]), (f32[4], f32[4])) collective-permute-start(p, p), "
        "source_target_pairs={{0,3},{3,1}}",
        "ROOT d = (f32[4], f32[4]) collective-permute-done(s)",
        "(f32[4], f32[4]) collective-permute(p, p), source_target_pairs={{0,3},{3,1}}",
    ),
    "reduce-scatter": (
        "s = ((f32[4]), f32[1]) reduce-scatter-start(p), replica_groups={}, dimensions={0}, "
        "to_apply=sum",
        "ROOT d = f32[1] reduce-scatter-done(s)",
        "f32[1] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=sum",
    ),
    "all-to-all": (
        "s = ((f32[4]), f32[4]) all-to-all-start(p), replica_groups={}, dimensions={0}",
        "ROOT d = f32[4] all-to-all-done(s)",
        "f32[4] all-to-all(p), replica_groups={}, dimensions={0}",
    ),
}


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_asynchronous_forms_give_the_same(name: str) -> None:
    start, done, plain = ASYNCHRONOUS[name]
    found = run_on(4, 1, entry(P4, start, done), FOUR)
    assert lists(found) == lists(run_on(4, 1, entry(P4, f"ROOT r = {plain}"), FOUR))


WRONG = {
    "all-reduce(p), replica_groups={{0,1}}, to_apply=sum": "none of its .* has device 2",
    "all-reduce(p), replica_groups={{0,1,2,9}}, to_apply=sum": "replica 9, .* runs on 4 replicas",
    "all-reduce(p), replica_groups={{0,1,2,3,0}}, to_apply=sum": "name a device twice",
    "all-gather(p), replica_groups={}, dimensions={0}": r"f32\[1\], .* comes to f32\[4\]",
    "all-to-all(p), replica_groups={}, dimensions={0}": "1 elements, .* no 4 equal parts",
    "collective-permute(p), source_target_pairs={{7,1}}": "names replica 7",
    "collective-permute(p), source_target_pairs={{2,1},{3,1}}": "device 1 is the target of 2",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_be_run(line: str) -> None:
    with pytest.raises(RunError, match=WRONG[line]) as caught:
        run_on(4, 1, entry(P1, f"ROOT r = f32[1] {line}"), NUMBERS)
    assert caught.value.code == "HLO500"
    assert caught.value.span is not None


def test_a_start_is_done_once() -> None:
    text = entry(
        P1,
        "s = f32[1] all-reduce-start(p), replica_groups={}, to_apply=sum",
        "d = f32[1] all-reduce-done(s)",
        "ROOT e = f32[1] all-reduce-done(s)",
    )
    with pytest.raises(RunError, match="its operand is no all-reduce-start that is still open"):
        run_on(1, 1, text, NUMBERS[:1])
