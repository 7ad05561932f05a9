"""Transfers between device and host in loops."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations
from tests.checks.lint.loops import UNKNOWN_LIMIT, in_loop

from hloopt.checks.results import Verdict
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

CODE = "HLL501"
DEVICE, HOST = "f32[1048576]{0}", "f32[1048576]{0:S(5)}"
LARGE, LARGE_HOST = "f32[8,1048576]{1,0}", "f32[8,1048576]{1,0:S(5)}"
SLICE, SLICE_HOST = "f32[1,1048576]{1,0}", "f32[1,1048576]{1,0:S(5)}"
FUSED = f"""
stored {{
  f0 = {LARGE_HOST} parameter(0)
  f1 = {SLICE} parameter(1)
  f2 = s32[] parameter(2)
  f3 = s32[] parameter(3)
  ROOT f4 = {LARGE_HOST} dynamic-update-slice(f0, f1, f2, f3)
}}
"""
MOVED = 10 * 4 * (1 << 20)
OUTFEED = "a = token[] after-all() x = token[] outfeed(v1, a), outfeed_shape=f32[4]{0}"


def named(work: str, results: str, *shapes: str, **given: str) -> list[str]:
    return found_names(CODE, in_loop(work, results, *shapes, **given))


@pytest.mark.parametrize(
    ("work", "kind", "moved"),
    [
        ("a = token[] after-all() x = (f32[4]{0}, token[]) infeed(a)", "an infeed", 160),
        (OUTFEED, "an outfeed", 160),
        (
            "a = token[] after-all() x = (f32[4]{0}, u32[], token[]) send(v1, a), channel_id=1, "
            "is_host_transfer=true z = token[] send-done(x), channel_id=1, is_host_transfer=true",
            "a send to the host",
            160,
        ),
        (
            "a = token[] after-all() x = (f32[4]{0}, u32[], token[]) recv(a), channel_id=1, "
            "is_host_transfer=true z = (f32[4]{0}, token[]) recv-done(x), channel_id=1, "
            "is_host_transfer=true",
            "a recv from the host",
            160,
        ),
        (
            'x = f32[4]{0} custom-call(v1), custom_call_target="xla_ffi_python_gpu_callback"',
            "a host callback",
            320,
        ),
        (
            'x = f32[4]{0} custom-call(v1), custom_call_target="xla_python_cpu_callback"',
            "a host callback",
            320,
        ),
    ],
)  # fmt: skip
def test_what_waits_for_the_host_is_found_whatever_its_size(
    work: str, kind: str, moved: int
) -> None:
    for header in ("is_scheduled=true", "is_scheduled=false"):
        (found,) = violations(CODE, in_loop(work, "v1", "f32[4]{0}", header=header))
        assert found.location.instruction == "x"
        assert found.message.startswith(f"{kind} stands in the body of a loop: %x, 10 runs")
        assert found.impact.moved == moved


@pytest.mark.parametrize(
    "work",
    [
        'x = f32[4]{0} custom-call(v1), custom_call_target="f"',
        "a = token[] after-all() x = (f32[4]{0}, u32[], token[]) send(v1, a), channel_id=1 "
        "z = token[] send-done(x), channel_id=1",
        "a = token[] after-all() x = (f32[4]{0}, u32[], token[]) recv(a), channel_id=1 "
        "z = (f32[4]{0}, token[]) recv-done(x), channel_id=1",
        "x = f32[4]{0} copy(v1)",
    ],
)
def test_what_stays_on_devices_is_not_found(work: str) -> None:
    assert named(work, "v1", "f32[4]{0}") == []


@pytest.mark.parametrize(
    ("work", "results", "shapes"),
    [
        (f"x = {HOST} copy(v1)", "v1, x", (DEVICE, HOST)),
        (f"x = {DEVICE} copy(v2)", "x, v2", (DEVICE, HOST)),
        (
            f"z = s32[] constant(0) x = {SLICE} dynamic-slice(v2, i, z), "
            "dynamic_slice_sizes={1,1048576}",
            "x, v2",
            (SLICE, LARGE_HOST),
        ),
        (
            f"z = s32[] constant(0) x = {LARGE_HOST} dynamic-update-slice(v2, v1, i, z)",
            "v1, x",
            (SLICE, LARGE_HOST),
        ),
        (
            f"z = s32[] constant(0) x = {LARGE_HOST} fusion(v2, v1, i, z), kind=kLoop, "
            "calls=stored",
            "v1, x",
            (SLICE, LARGE_HOST),
        ),
    ],
)  # fmt: skip
def test_a_synchronous_copy_is_found_by_the_bytes_that_cross(
    work: str, results: str, shapes: tuple[str, ...]
) -> None:
    text = in_loop(work, results, *shapes, computations=FUSED)
    (found,) = violations(CODE, text)
    assert (found.location.instruction, found.impact.moved) == ("x", MOVED)
    assert " the host's memory stands in the body of a loop: %x, 10 runs" in found.message
    assert ("a copy to" in found.message) is work.partition("x = ")[2].startswith(shapes[1])
    assert found_names(CODE, text, size=MOVED) == ["x"]
    assert found_names(CODE, text, size=MOVED + 1) == []


@pytest.mark.parametrize(
    ("work", "results", "shapes"),
    [
        (f"x = {HOST} copy(v1)", "x", (HOST,)),
        (
            f"z = s32[] constant(0) x = {LARGE_HOST} dynamic-update-slice(v2, v1, i, z)",
            "v1, x",
            (SLICE_HOST, LARGE_HOST),
        ),
        (
            f"z = s32[] constant(0) x = {SLICE} dynamic-slice(v2, i, z), "
            "dynamic_slice_sizes={1,1048576}",
            "x, v2",
            (SLICE, LARGE),
        ),
    ],
)  # fmt: skip
def test_a_copy_within_a_memory_is_not_found(
    work: str, results: str, shapes: tuple[str, ...]
) -> None:
    assert named(work, results, *shapes) == []


@pytest.mark.parametrize(
    ("work", "found"),
    [
        (
            f"x = ({HOST}, {DEVICE}, u32[]) copy-start(v1) y = {HOST} copy-done(x)",
            ["x"],
        ),
        (
            f"x = (({DEVICE}), {HOST}, u32[]) async-start(v1), calls=wrapped "
            f"y = {HOST} async-done(x)",
            ["x"],
        ),
        (f"x = ({DEVICE}, {DEVICE}, u32[]) copy-start(v1) y = {DEVICE} copy-done(x)", []),
    ],
)  # fmt: skip
def test_an_asynchronous_copy_is_found_if_asked_for(work: str, found: list[str]) -> None:
    wrapped = f"wrapped {{ g0 = {DEVICE} parameter(0) ROOT g1 = {HOST} copy(g0) }}"
    text = in_loop(work, "v1", DEVICE, computations=wrapped)
    assert found_names(CODE, text) == []
    assert found_names(CODE, text, offloading=True) == found


def test_a_callback_on_another_thread_is_found() -> None:
    wrapped = """wrapped {
  g0 = f32[4]{0} parameter(0)
  ROOT g1 = f32[4]{0} custom-call(g0), custom_call_target="xla_ffi_python_gpu_callback"
}"""
    work = (
        "x = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(v1), calls=wrapped "
        "y = f32[4]{0} async-done(x)"
    )
    assert named(work, "y", "f32[4]{0}", computations=wrapped) == ["g1"]


def test_what_a_body_calls_is_in_the_loop() -> None:
    called = f"called {{ c = {DEVICE} parameter(0) ROOT x = {HOST} copy(c) }}"
    work = f"y = {HOST} call(v1), to_apply=called"
    assert named(work, "v1, y", DEVICE, HOST, computations=called) == ["x"]


def test_what_runs_once_is_not_found() -> None:
    copy = (f"x = {HOST} copy(v1)", "v1, x", DEVICE, HOST)
    assert named(*copy, limit="constant(2)") == ["x"]
    assert named(*copy, limit="constant(1)") == []
    assert named(*copy, limit="constant(0)") == []
    text = f"HloModule m, is_scheduled=true ENTRY e {{ p = {DEVICE} parameter(0) "
    assert found_names(CODE, text + f"ROOT x = {HOST} copy(p) }}") == []


def test_what_is_called_twice_is_not_in_a_loop() -> None:
    text = f"""HloModule m, is_scheduled=true
called {{ c = {DEVICE} parameter(0) ROOT x = {HOST} copy(c) }}
ENTRY e {{
  p = {DEVICE} parameter(0)
  y = {HOST} call(p), to_apply=called
  z = {HOST} call(p), to_apply=called
  ROOT t = ({HOST}, {HOST}) tuple(y, z)
}}
"""
    assert found_names(CODE, text) == []


def test_a_loop_of_unknown_trips_counts_for_one() -> None:
    text = in_loop(OUTFEED.replace("v1", "v2"), "v1, v2", "s32[]", "f32[4]{0}", limit=UNKNOWN_LIMIT)
    (found,) = violations(CODE, text)
    assert "%x, in a loop whose trip count is not known (16 B moved)" in found.message


@pytest.mark.parametrize(
    "work",
    [
        f"x = {HOST} copy(v1)",
        f'x = {DEVICE} custom-call(v1), custom_call_target="MoveToHost"',
        f'x = {DEVICE} custom-call(v1), custom_call_target="MoveToDevice"',
        f'x = {DEVICE} custom-call(v1), custom_call_target="annotate_device_placement"',
    ],
)
def test_without_a_schedule_copies_may_become_asynchronous(work: str) -> None:
    found = check(CODE, in_loop(work, "v1", DEVICE, header="is_scheduled=false"))
    assert found.verdict is Verdict.NONE
    assert found.reason == "the module is not scheduled: %x may become asynchronous"
    assert named(work, "v1", DEVICE) == ["x"]


def test_an_asynchronous_copy_needs_no_schedule() -> None:
    work = f"x = ({HOST}, {DEVICE}, u32[]) copy-start(v1) y = {HOST} copy-done(x)"
    assert named(work, "v1", DEVICE, header="is_scheduled=false") == []


def test_the_pass_that_splits_copies_mends_it() -> None:
    text = in_loop(f"x = {HOST} copy(v1)", "v1, x", DEVICE, HOST)
    module = parse_module(text)
    assert create_pass("host-memory-transfer-asyncifier").run(module, PassContext())
    (before,) = violations(CODE, text)
    assert found_names(CODE, print_module(module)) == []
    (after,) = violations(CODE, print_module(module), offloading=True)
    assert before.impact.moved == after.impact.moved == MOVED
