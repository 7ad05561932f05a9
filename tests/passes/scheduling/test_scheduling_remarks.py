"""Remarks and refusals of the passes that prepare modules for the scheduler."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked

from hloopt.diagnostics import HloError
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

LEGALIZE = "legalize-scheduling-annotations"
GROUP = 'frontend_attributes={{_scheduling_group_id="{}"}}'.format


def module(body: str, *, header: str = "", callees: str = "") -> str:
    return f"""HloModule m{header}
    sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
    {callees}
    ENTRY main {{
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      {body}
    }}"""


def applied(name: str, text: str, **options: Any) -> list[str]:
    """The remarks of a pass on what it changes."""
    run_checked(name, text, **options)
    context = PassContext(name)
    create_pass(name, options).run(parse_module(text), context)
    return [f"%{r.instruction}: {r.reason}" for r in context.remarks if r.kind == "applied"]


def refusal(name: str, text: str, **options: Any) -> str:
    """The error with which a pass refuses a module, which stays as it is."""
    refused = parse_module(text)
    before = print_module(refused)
    with pytest.raises(HloError) as raised:
        create_pass(name, options).run(refused, PassContext())
    assert print_module(refused) == before
    return raised.value.message


# -- collectives-schedule-linearizer ---------------------------------------------------------------


def test_collectives_wait_for_the_one_before() -> None:
    text = module(
        "a.1 = f32[8] all-reduce(p), to_apply=sum\nb.1 = f32[8] all-reduce(q), to_apply=sum\n"
        "ROOT t = tuple(a.1, b.1)"
    )
    assert applied("collectives-schedule-linearizer", text) == ["%b.1: waits for %a.1"]


def test_the_order_of_a_schedule_stays() -> None:
    text = module(
        "s = f32[8] all-reduce-start(p), to_apply=sum\n"
        "t = f32[8] all-reduce-start(q), to_apply=sum\n"
        "d = f32[8] all-reduce-done(s)\ne = f32[8] all-reduce-done(t)\nROOT r = tuple(d, e)",
        header=", is_scheduled=true",
    )
    found = reasons_to_stay("collectives-schedule-linearizer", text)
    assert found == ["the schedule has it before %d"]


# -- scheduler-memory-fencing ----------------------------------------------------------------------


def test_a_start_waits_for_the_readers_of_a_large_value() -> None:
    pairs = "source_target_pairs={{0,1},{1,0}}"
    text = module(
        f"s = (f32[8], f32[8]) collective-permute-start(p), {pairs}\n"
        "large = f32[8] sine(q)\nr = f32[4] slice(large), slice={[0:4]}\n"
        "d = f32[8] collective-permute-done(s)\n"
        f"u = (f32[8], f32[8]) collective-permute-start(d), {pairs}\n"
        "e = f32[8] collective-permute-done(u)\nROOT t = tuple(e, r)",
        header=", is_scheduled=true, replica_count=2",
    )
    found = applied("scheduler-memory-fencing", text, threshold_bytes=32)
    assert found == ["%u: waits for the readers of 32 bytes"]


# -- latency-hiding-scheduler-preparation ----------------------------------------------------------

PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'


def transfer(sent: str) -> str:
    return module(
        f"k = token[] after-all()\nrecv = (f32[8], u32[], token[]) recv(k), channel_id=1, {PAIRS}\n"
        f"got = (f32[8], token[]) recv-done(recv), channel_id=1\n"
        "value = f32[8] get-tuple-element(got), index=0\n"
        f"send = (f32[8], u32[], token[]) send({sent}, k), channel_id=1, {PAIRS}\n"
        "sent = token[] send-done(send), channel_id=1\nROOT t = tuple(value, sent)",
        header=", replica_count=2",
    )


def test_the_steps_of_a_channel_are_chained() -> None:
    found = applied("latency-hiding-scheduler-preparation", transfer("p"))
    assert found == ["%recv: chained with the other steps of its channel"]


def test_a_send_of_what_its_channel_receives_is_not_chained() -> None:
    found = reasons_to_stay("latency-hiding-scheduler-preparation", transfer("value"))
    assert found == ["the steps of its channel depend on each other"]


# -- legalize-scheduling-annotations ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "options", "remarks"),
    [
        (
            f"a.1 = f32[8] negate(p), {GROUP(1)}\nb.1 = f32[8] sine(a.1), {GROUP(1)}\n"
            "ROOT t = tuple(b.1)",
            {"keep_sync_annotation": False},
            [
                "%a.1: taken out of its scheduling group: its annotation is not to be kept",
                "%b.1: taken out of its scheduling group: its annotation is not to be kept",
            ],
        ),
        (
            f"a.1 = f32[8] negate(p), {GROUP(1)}\nROOT t = tuple(a.1)",
            {"keep_sync_annotation": True, "keep_trivial_sync_annotation": False},
            ["%a.1: taken out of its scheduling group: it is alone in its group"],
        ),
    ],
)
def test_annotations_that_go(body: str, options: dict[str, Any], remarks: list[str]) -> None:
    assert applied(LEGALIZE, module(body), **options) == remarks


GAP = f"""s = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}, {GROUP(1)}
  first = f32[8] negate(p), {GROUP(1)}
  between = f32[8] add(first, p)BETWEEN
  last = f32[8] multiply(between, p), {GROUP(1)}
  d = f32[16] all-gather-done(s), {GROUP(1)}
  ROOT t = tuple(last, d)"""


def test_what_is_between_members_of_a_group() -> None:
    text = module(GAP.replace("BETWEEN", ""))
    assert refusal(LEGALIZE, text) == (
        "'%between': Support for annotation groups with gaps doesn't exist yet: it is between "
        "members of scheduling group 1"
    )
    assert applied(LEGALIZE, text, propagate_annotation=True) == [
        "%between: joined scheduling group 1, which is around it"
    ]
    assert applied(LEGALIZE, text, deannotate_unsupported_groups=True) == [
        f"%{name}: taken out of its scheduling group: its group has a gap: %between"
        for name in ("s", "first", "last", "d")
    ]


def test_what_is_between_members_of_one_group_and_in_another() -> None:
    other = f"c = f32[8] collective-permute(p), source_target_pairs={{{{0,1}}}}, {GROUP(2)}\n"
    text = module(other + GAP.replace("BETWEEN", f", {GROUP(2)}"))
    options = {"propagate_annotation": True, "keep_trivial_sync_annotation": True}
    with pytest.raises(HloError) as raised:
        create_pass(LEGALIZE, options).run(parse_module(text), PassContext())
    assert raised.value.message == (
        "'%between': it is between members of scheduling group 1, but it has an existing "
        "annotation of group 2"
    )


def test_what_is_fused_is_in_one_group() -> None:
    text = module(
        "ROOT f = f32[8] fusion(p), kind=kLoop, calls=fused",
        callees="fused { x = f32[8] parameter(0) "
        f"y = f32[8] negate(x), {GROUP(1)} ROOT z = f32[8] sine(y), {GROUP(2)} }}",
    )
    assert refusal(LEGALIZE, text, keep_sync_annotation=True) == (
        "'%f': what it fuses is in several scheduling groups: [1, 2]"
    )


def test_groups_that_each_come_before_the_other() -> None:
    text = module(
        f"a.1 = f32[8] negate(p), {GROUP(1)}\nb.1 = f32[8] sine(a.1), {GROUP(2)}\n"
        f"ROOT c.1 = f32[8] negate(b.1), {GROUP(1)}"
    )
    options = {"run_verification": True, "keep_sync_annotation": True}
    assert refusal(LEGALIZE, text, **options) == (
        "Detected scheduling group annotation cycle between 1 and 2 in '%main'"
    )


def test_a_done_is_in_the_group_of_its_start() -> None:
    text = module(
        f"s = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}, {GROUP(1)}\n"
        f"ROOT d = f32[16] all-gather-done(s), {GROUP(2)}"
    )
    assert refusal(LEGALIZE, text) == (
        "'%d': Done instruction's operand is not annotated with the same id"
    )
