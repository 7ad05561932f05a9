"""Remarks and refusals of latency-hiding-scheduler: why an order is as it is, or cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.scheduling.asynchronous_programs import random_program

from hloopt.diagnostics import HloError
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

NAME = "latency-hiding-scheduler"
SUM = "sum { l = f32[] parameter(0) m = f32[] parameter(1) ROOT plus = f32[] add(l, m) }\n"
GATHER = """p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  s = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  d = f32[16] all-gather-done(s)
  """
PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'


def group(number: int) -> str:
    return f', frontend_attributes={{_scheduling_group_id="{number}"}}'


GROUPED = GATHER.replace("={0}\n", f"={{0}}{group(1)}\n").replace("(s)\n", f"(s){group(1)}\n")


def scheduled(body: str, callees: str = "") -> str:
    header = "HloModule m, is_scheduled=true, num_partitions=2"
    return f"{header}\n{SUM}{callees}ENTRY e {{\n  {body}\n}}"


def remarks(text: str, **options: Any) -> dict[str, str]:
    """The remarks of a run: `kind instruction` and the reason."""
    context = PassContext(NAME)
    create_pass(NAME, options).run(parse_module(text), context)
    return {f"{r.kind} {r.instruction}": r.reason for r in context.remarks}


def refusal(text: str, **options: Any) -> HloError:
    """The error with which the pass refuses a module, which stays as it is, or its options."""
    module = parse_module(text)
    before = print_module(module)
    with pytest.raises(HloError) as raised:
        create_pass(NAME, options).run(module, PassContext())
    assert print_module(module) == before
    return raised.value


# -- decisions -------------------------------------------------------------------------------------


def test_members_of_a_group_go_together() -> None:
    text = scheduled(
        f"{GROUPED}a = f32[16] negate(q){group(1)}\nb = f32[16] negate(q)\nROOT r = tuple(d, a, b)"
    )
    found = remarks(text, explain=("a", "p"))
    assert found["analysis a"] == "step 2, at 2 cycles: scheduled with its group 1"
    assert found["analysis p"].endswith(
        ": takes no time, so it is scheduled as soon as it is ready"
    )
    assert (
        found["missed s"] == "4,998 of 5,000 cycles are exposed: it is scheduled with its group 1"
    )


def test_a_choice_names_what_it_was_made_among() -> None:
    names = [f"n{i}" for i in range(9)]
    work = "\n".join(f"{name} = f32[16] negate(q)" for name in names)
    text = scheduled(
        f"{GATHER}t = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}\n"
        f"e.1 = f32[16] all-gather-done(t)\n{work}\nROOT r = tuple(d, e.1, {', '.join(names)})"
    )
    found = remarks(text, explain=("n1", "n2", "e.1"))
    assert found["analysis n1"].endswith(
        "of 3 candidates better than %n0 by kOriginalOrder; 1 comparison before, among others; "
        "not allowed: %d (kExceedsOverlapLimit)"
    )
    assert "; 2 comparisons before, among others; not allowed: %d" in found["analysis n2"]
    assert "%n0, %n1, %n2, %n3, %n4 and 4 more by kScheduleDone" in (found["analysis e.1"])


def test_a_computation_without_operations_keeps_its_order() -> None:
    text = scheduled(
        f"{GATHER}a = f32[16] call(q), to_apply=quiet\nROOT r = tuple(d, a)",
        "quiet { x = f32[16] parameter(0) ROOT y = f32[16] negate(x) }\n",
    )
    assert remarks(text, explain=("y",))["analysis y"] == (
        "nothing asynchronous is in its computation, so the order of that stays"
    )


# -- exposed latency -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "options", "reason"),
    [
        (
            f"{GATHER}t = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}\n"
            "e.1 = f32[16] all-gather-done(t)\nROOT r = tuple(d, e.1)",
            {"all_gather_overlap_limit": 2},
            "the wait is that for another operation in flight",
        ),
        (
            f"{GATHER}v = f32[] parameter(2)\na = f32[1024] broadcast(v), dimensions={{}}\n"
            "b = f32[] reduce(a, v), dimensions={0}, to_apply=sum\nc = f32[] add(b, b)\n"
            "ROOT r = tuple(d, c)",
            {"memory_limit": 1},
            "the memory limit decided against %c (kDecreaseMemoryOverLimit)",
        ),
        (
            f'{GATHER}a = f32[8] custom-call(p), custom_call_target="x", '
            'frontend_attributes={scheduler_hint="force_delay"}\nROOT r = tuple(d, a)',
            {},
            "another rule decided against %a (kForceDelay)",
        ),
    ],
)
def test_why_latency_is_exposed(body: str, options: dict[str, Any], reason: str) -> None:
    exposed = remarks(scheduled(body), **options)
    assert any(found.endswith(f" cycles are exposed: {reason}") for found in exposed.values())


def test_an_operation_that_the_profile_does_not_name(tmp_path: Path) -> None:
    profile = tmp_path / "profile.pbtxt"
    profile.write_text('costs { name: "other" cost_us: 40 }')
    options = {"preset": "xla-gpu", "profile": str(profile)}
    text = scheduled(f"{GATHER}ROOT r = tuple(d, q)")
    found = remarks(text, **options)
    assert found["analysis s"] == "the cost model does not know how long it takes"
    refused = refusal(text, **options, pgle_accuracy_checker="error")
    assert refused.message == "Found 1 missing instruction. Discarding the profile."
    assert refused.help == "the profile does not name %s"


def test_a_search_that_finds_nothing_better() -> None:
    text = scheduled(f"{GATHER}a = f32[16] negate(q)\nROOT r = tuple(d, a)")
    found = remarks(text, search={"iterations": 20})
    assert found["missed r"] == (
        "no order of %e was found that takes less than 5,003 cycles; none takes less than 5,003"
    )


def test_a_search_names_waiting_for_the_host() -> None:
    text = scheduled("""p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  h = (f32[16]{0:S(5)}, f32[16], u32[]) copy-start(q)
  e = f32[16]{0:S(5)} copy-done(h)
  s = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  d = f32[16] all-gather-done(s)
  a = f32[16] negate(d)
  c = (f32[16], f32[16]{0:S(5)}, u32[]) copy-start(e)
  k = f32[16] copy-done(c)
  g = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  j = f32[16] all-gather-done(g)
  ROOT r = tuple(a, k, j)""")
    found = remarks(text, search={"iterations": 3000})
    assert found["applied r"] == (
        "%e takes 10,006 cycles instead of 10,006, 0 instead of 1 of them waiting for collectives, "
        "9,994 instead of 9,993 for copies to or from the host; no order takes less than 10,004"
    )


def test_arguments_that_leave_no_memory() -> None:
    text = scheduled(f"{GATHER}ROOT r = tuple(d, q)")
    found = remarks(text, preset="xla-gpu", device_memory_size=240)
    assert found["missed r"] == (
        "arguments and results take 240 bytes, and device_memory_size is 240 bytes: nothing is "
        "left for temporaries, and the memory limit is 0, as in XLA"
    )
    assert "missed r" not in remarks(text, preset="xla-gpu", device_memory_size=241)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"all_gather_overlap_limit": -1}, "all_gather_overlap_limit is -1: it takes 0 or more"),
        (
            {"memory_limit": 8, "device_memory_size": 8},
            "memory_limit and device_memory_size cannot both be given",
        ),
        ({"search": {"iterations": -2}}, "the search's iterations is -2: it has to be 0 or more"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    assert refusal(scheduled(f"{GATHER}ROOT r = tuple(d, q)"), **options).message == message


def test_a_module_without_a_schedule() -> None:
    text = scheduled(f"{GATHER}ROOT r = tuple(d, q)").replace("is_scheduled=true, ", "")
    assert refusal(text).message == "it needs a module with a schedule"


def test_a_group_that_needs_more_than_the_limit() -> None:
    refused = refusal(scheduled(f"{GROUPED}ROOT r = tuple(d, q)"), all_gather_overlap_limit=0)
    assert refused.message == (
        "There is a scheduling group which exceeds the overlap limits. Annotation id: 1. "
        "It needs 1 kAllGather resources, but the limit is 0. "
    )


def test_groups_that_wait_for_each_other() -> None:
    text = scheduled(
        f"{GATHER}a = f32[16] negate(d){group(1)}\nb = f32[16] negate(a){group(2)}\n"
        f"ROOT c = f32[16] negate(b){group(1)}"
    )
    refused = refusal(text)
    begin = "FindAndExtractBestNodeAvailable failed to find a node to schedule, skipped nodes: "
    assert refused.message == f"{begin}c: Skipped due to kAnnotationNotReady.; "
    assert refused.help == (
        "scheduling groups wait for each other: "
        "legalize-scheduling-annotations{run_verification=true} names two of them"
    )


def test_more_transfers_in_flight_than_a_gpu_has() -> None:
    names = [f"r{i}" for i in range(6)]
    starts = [
        f"{name} = (f32[8], u32[], token[]) recv(k), channel_id={i}, {PAIRS}"
        for i, name in enumerate(names, 1)
    ]
    dones = [
        f"d{i} = (f32[8], token[]) recv-done({name}), channel_id={i}, "
        f"control-predecessors={{{', '.join(n for n in names if n != name)}}}"
        for i, name in enumerate(names, 1)
    ]
    lines = ["k = token[] after-all()", *starts, *dones, "ROOT r = tuple(d1, d2, d3, d4, d5, d6)"]
    refused = refusal(scheduled("\n".join(lines)), preset="xla-gpu", schedule_send_recvs=True)
    assert refused.help == (
        "dependencies make more operations overlap than the limits allow: raise a limit"
    )


LOOP = """body {
  t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[8] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT next = tuple(j, x)
}
condition {
  u = (s32[], f32[8]) parameter(0)
  now = s32[] get-tuple-element(u), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(now, n), direction=LT
}
"""


def test_a_transfer_that_needs_the_loop_before_which_it_ends() -> None:
    text = scheduled(
        f"""k = token[] after-all()
        zero = s32[] constant(0)
        recv = (f32[8], u32[], token[]) recv(k), channel_id=1, {PAIRS}
        got = (f32[8], token[]) recv-done(recv), channel_id=1
        v = f32[8] get-tuple-element(got), index=0
        init = (s32[], f32[8]) tuple(zero, v)
        w = (s32[], f32[8]) while(init), condition=condition, body=body
        o = f32[8] get-tuple-element(w), index=1
        send = (f32[8], u32[], token[]) send(o, k), channel_id=1, {PAIRS}
        sent = token[] send-done(send), channel_id=1, control-predecessors={{got}}
        ROOT r = f32[8] negate(o)""",
        LOOP,
    )
    assert refusal(text, schedule_send_recvs=True).message == (
        "'%w' cannot be scheduled: a transfer has to end before this loop, and depends on it"
    )


# -- hard memory limit -----------------------------------------------------------------------------

HARD = {"hard_memory_limit": True}


@pytest.mark.parametrize(
    ("seed", "limit", "options", "way"),
    [
        (34, 356, {}, "aiming at 90% of the limit"),
        (34, 328, {}, "aiming at 75% of the limit, beginning with the memory scheduler's order"),
        (27, 304, {}, "following the memory scheduler's order"),
        (
            30,
            392,
            {"collective_permute_overlap_limit": 2, "all_reduce_overlap_limit": 2},
            "following the incoming order",
        ),
    ],
)
def test_which_way_kept_the_hard_limit(
    seed: int, limit: int, options: dict[str, Any], way: str
) -> None:
    found = remarks(random_program(seed), memory_limit=limit, **options, **HARD)
    [kept] = [reason for reason in found.values() if reason.startswith("kept the hard")]
    assert kept.startswith(f"kept the hard memory limit of {limit} bytes: the peak is ")
    assert kept.endswith(f"; found by {way}")


def test_of_many_buffers_at_the_peak_the_largest_are_named() -> None:
    names = [f"n{i}" for i in range(9)]
    work = "\n".join(
        f"{name} = f32[{16 * number}] broadcast(v), dimensions={{}}"
        for number, name in enumerate(names, 1)
    )
    text = scheduled(
        f"{GATHER}v = f32[] parameter(2)\n{work}\nROOT r = tuple(d, {', '.join(names)})"
    )
    module = parse_module(text)
    with pytest.raises(HloError) as raised:
        create_pass(NAME, {"memory_limit": 8, **HARD}).run(module, PassContext())
    assert raised.value.message == (
        "no order that needs at most 8 bytes was found: the best of 16 needs 2,944, at '%r' in "
        "'%e' (the entry's parameters not counted)"
    )
    assert raised.value.help is not None
    assert raised.value.help.startswith("alive there: %n8 (576 bytes, until %r), %n7 (512 bytes, ")
    assert raised.value.help.endswith(" and 5 smaller")
