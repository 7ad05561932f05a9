"""Readers of large buffers that have to come before operations that start later."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import run_checked

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "scheduler-memory-fencing"
SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"


def permute(name: str, operand: str) -> tuple[str, str]:
    start = f"collective-permute-start({operand}), source_target_pairs={{{{0,1}},{{1,0}}}}"
    done = f"collective-permute-done({name})"
    return f"{name} = (f32[16], f32[16]) {start}", f"{name}.d = f32[16] {done}"


S, S_DONE = permute("s", "q")
T, T_DONE = permute("t", "q")
U, U_DONE = permute("u", "q")
LARGE, READ = "large = f32[64] sine(p)", "r = f32[16] slice(large), slice={[0:16]}"
ROOT = "ROOT root = (f32[16], f32[16], f32[16], f32[16]) tuple(r, s.d, t.d, u.d)"
ARGUMENTS = ("p = f32[64] parameter(0)", "q = f32[16] parameter(1)")


def program(*lines: str, callees: str = "", is_scheduled: bool = True) -> str:
    head = f"HloModule m, replica_count=2{', is_scheduled=true' if is_scheduled else ''}"
    body = "\n  ".join((*ARGUMENTS, *lines))
    return f"{head}\n{callees}ENTRY e {{\n  {body}\n}}"


def fences(text: str, *, threshold_bytes: int = 256, **options: Any) -> dict[str, str]:
    """The new control predecessors of each instruction that has some."""
    module, context = parse_module(text), PassContext()
    created = create_pass(NAME, {"threshold_bytes": threshold_bytes, **options})
    changed = created.run(module, context)
    found = {
        i.name: " ".join(before.name for before in i.control_predecessors)
        for i in module.instructions()
        if i.control_predecessors
    }
    assert changed == bool(found)
    assert context.statistics.get("buffers fenced", 0) == len(found)
    return found


THREE = (LARGE, S, READ, S_DONE, T, T_DONE, U, U_DONE, ROOT)


@pytest.mark.parametrize(("threshold", "fenced"), [(255, "t"), (256, "t"), (257, "")])
def test_a_buffer_of_the_threshold_is_large(threshold: int, fenced: str) -> None:
    expected = {fenced: "r"} if fenced else {}
    assert fences(program(*THREE), threshold_bytes=threshold) == expected


@pytest.mark.parametrize(
    ("slack", "fenced"), [(0, {"t": "r"}), (1, {"t": "r"}), (2, {"u": "r"}), (3, {})]
)
def test_some_operations_may_still_start_before_the_buffer_ends(
    slack: int, fenced: dict[str, str]
) -> None:
    """An operation in flight where the buffer ends is one of them, and must not wait itself."""
    assert fences(program(*THREE), slack_windows=slack) == fenced


@pytest.mark.parametrize(
    ("lines", "fenced"),
    [
        ((LARGE, READ, S, S_DONE, T, T_DONE, U, U_DONE, ROOT), "t"),
        ((LARGE, S, S_DONE, READ, T, T_DONE, U, U_DONE, ROOT), "u"),
        ((LARGE, S, T, READ, S_DONE, T_DONE, U, U_DONE, ROOT), "u"),
        ((LARGE, S, T, READ, T_DONE, S_DONE, U, U_DONE, ROOT), "u"),
        ((LARGE, S, T, T_DONE, READ, S_DONE, U, U_DONE, ROOT), "u"),
        ((LARGE, S, T, U, READ, S_DONE, T_DONE, U_DONE, ROOT), ""),
        ((S, S_DONE, T, T_DONE, LARGE, READ, U, U_DONE, ROOT), ""),
    ],
)
def test_the_operation_after_the_one_under_way_waits(lines: tuple[str, ...], fenced: str) -> None:
    assert fences(program(*lines)) == ({fenced: "r"} if fenced else {})


def test_all_readers_come_first_that_do_not_already() -> None:
    more = "w = f32[16] slice(large), slice={[16:32]}"
    sent, sent_done = permute("t", "w")
    root = "ROOT root = (f32[16], f32[16], f32[16], f32[16], f32[16]) tuple(r, s.d, t.d, u.d, w)"
    text = program(LARGE, S, READ, more, S_DONE, sent, sent_done, U, U_DONE, root)
    assert fences(text) == {"t": "r"}
    assert fences(text, slack_windows=2) == {"u": "r w"}


def test_what_comes_first_already_needs_no_fence() -> None:
    sent, sent_done = permute("t", "r")
    text = program(LARGE, S, READ, S_DONE, sent, sent_done, U, U_DONE, ROOT)
    assert fences(text) == {}


def test_two_buffers_are_fenced_each_at_its_end() -> None:
    other = ("other = f32[64] cosine(p)", "v = f32[16] slice(other), slice={[0:16]}")
    root = "ROOT root = (f32[16], f32[16], f32[16], f32[16], f32[16]) tuple(r, s.d, t.d, u.d, v)"
    text = program(LARGE, S, READ, S_DONE, other[0], T, other[1], T_DONE, U, U_DONE, root)
    assert fences(text) == {"t": "r", "u": "v"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("slice(large)", "slice(p)"),  # an argument
        ("tuple(r,", "tuple(large,"),  # a result
    ],
)
def test_arguments_and_results_are_left_alone(old: str, new: str) -> None:
    text = program(*THREE).replace(old, new)
    if new == "tuple(large,":
        text = text.replace("ROOT root = (f32[16],", "ROOT root = (f32[64],")
    assert fences(text) == {}


def test_what_several_computations_read_is_left_alone() -> None:
    callee = """f { x = f32[64] parameter(0)
  ROOT y = f32[16] slice(x), slice={[0:16]} }
"""
    read = "r = f32[16] call(large), to_apply=f"
    assert fences(program(LARGE, S, read, *THREE[3:], callees=callee)) == {}


def test_buffers_inside_of_a_called_computation_are_fenced_there() -> None:
    body = "\n  ".join(("p = f32[64] parameter(0)", "q = f32[16] parameter(1)", *THREE[:-1], ROOT))
    text = (
        f"HloModule m, replica_count=2, is_scheduled=true\nf {{\n  {body}\n}}\n"
        "ENTRY e { a = f32[64] parameter(0) b = f32[16] parameter(1)\n"
        "ROOT c = (f32[16], f32[16], f32[16], f32[16]) call(a, b), to_apply=f }"
    )
    assert fences(text) == {"t": "r"}


def test_a_module_without_a_schedule_has_no_fences() -> None:
    assert fences(program(*THREE, is_scheduled=False)) == {}


def test_without_operations_there_is_nothing_to_fence() -> None:
    assert fences(program(LARGE, "ROOT r = f32[16] slice(large), slice={[0:16]}")) == {}


@pytest.mark.parametrize(
    ("options", "fenced"),
    [
        ({"threshold_bytes": -1}, False),
        ({"threshold_bytes": -1, "memory_limit": 1}, False),
        ({"threshold_bytes": 1000}, False),
        ({"threshold_bytes": 1000, "memory_limit": 256}, True),
        ({"threshold_bytes": 1000, "memory_limit": 257}, False),
        ({"threshold_bytes": 0, "memory_limit": 25_699}, True),
        ({"threshold_bytes": 0, "memory_limit": 25_700}, False),
        ({"threshold_bytes": 200, "memory_limit": 10_000}, True),
    ],
)
def test_the_threshold_may_be_a_part_of_the_memory_limit(
    options: dict[str, int], *, fenced: bool
) -> None:
    assert bool(fences(program(*THREE), **options)) == fenced


def test_none_is_fenced_unless_asked_for() -> None:
    run_checked(NAME, program(*THREE), changes=False)


def test_a_part_of_no_limit_is_refused() -> None:
    with pytest.raises(PassRefused, match="1 % of memory_limit, which is not given"):
        fences(program(*THREE), threshold_bytes=0)


def test_each_operation_of_xla_gpu_makes_a_window() -> None:
    """An all-reduce marked as synchronous makes none."""
    sync = 'backend_config={"collective_backend_config":{"is_sync":true}}'
    for config, fenced in (("", "t"), (f", {sync}", "u")):
        t = f"t = f32[16] all-reduce-start(q), to_apply=sum{config}"
        done = "t.d = f32[16] all-reduce-done(t)"
        text = program(LARGE, S, READ, S_DONE, t, done, U, U_DONE, ROOT, callees=SUM)
        assert fences(text) == {fenced: "r"}
