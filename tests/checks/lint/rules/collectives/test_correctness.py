"""Rules about channels, groups and transfers."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.results import Severity, Verdict

SUM = """sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""
ALL = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"
PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'


def entry(*lines: str, header: str = "num_partitions=4", more: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m, {header}\n\n{SUM}\n{more}\nENTRY e {{\n{body}\n}}\n"


def two_reductions(first: str, second: str, **given: str) -> str:
    return entry(
        "p = f32[64] parameter(0)",
        f"x = f32[64] all-reduce(p), {first}, to_apply=sum",
        f"ROOT y = f32[64] all-reduce(x), {second}, to_apply=sum",
        **given,
    )


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (f"channel_id=1, {ALL}", []),
        (f"channel_id=1, {ALL.replace(',1', ', 1')}", []),
        (f"channel_id=2, {ALL.replace('{0,1,2,3}', '{0,1},{2,3}')}", []),
        (f"channel_id=1, {ALL.replace('{0,1,2,3}', '{0,1},{2,3}')}", ["x"]),
        ("replica_groups={}", []),
    ],
)
def test_a_channel_is_for_the_same_devices(second: str, found: list[str]) -> None:
    assert found_names("HLL109", two_reductions(f"channel_id=1, {ALL}", second)) == found


def test_a_channel_is_for_one_kind_and_a_pair_counts_once() -> None:
    lines = [
        "p = f32[64] parameter(0)",
        f"s = f32[64] all-reduce-start(p), channel_id=1, {ALL}, to_apply=sum",
        "x = f32[64] all-reduce-done(s)",
    ]
    assert violations("HLL109", entry(*lines, "ROOT y = f32[64] negate(x)")) == ()
    gather = f"ROOT y = f32[256] all-gather(x), dimensions={{0}}, channel_id=1, {ALL}"
    (found,) = violations("HLL109", entry(*lines, gather))
    assert "%s and %y have channel 1" in found.message
    assert "one all-reduce and one all-gather" in found.message


def test_permutes_on_one_channel_differ_by_their_pairs() -> None:
    def permutes(second: str) -> str:
        return entry(
            "p = f32[64] parameter(0)",
            "x = f32[64] collective-permute(p), source_target_pairs={{0,1}}, channel_id=1",
            f"ROOT y = f32[64] collective-permute(x), source_target_pairs={second}, channel_id=1",
        )

    assert found_names("HLL109", permutes("{{0,1}}")) == []
    (found,) = violations("HLL109", permutes("{{1,0}}"))
    assert "are between other devices" in found.message
    assert found.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ("{{0,1,2,3}}", ""),
        ("{{0,1},{2,3}}", ""),
        ("{}", ""),
        ("[2,2]<=[4]", ""),
        ("{{0},{1,2,3}}", "have 1, 3 devices"),
    ],
)
def test_groups_have_one_size(groups: str, found: str) -> None:
    text = two_reductions("replica_groups={}", f"replica_groups={groups}", header="replica_count=4")
    messages = [each.message for each in violations("HLL110", text)]
    assert bool(messages) == bool(found)
    assert all(found in message for message in messages)


# -- transfers ------------------------------------------------------------------------------------


def transfers(*lines: str, header: str = "num_partitions=2") -> str:
    return entry(
        "p = f32[64] parameter(0)", "t = token[] after-all()", *lines, header=header
    )  # fmt: skip


SEND = f"s = (f32[64], u32[], token[]) send(p, t), channel_id=1, {PAIRS}"
SENT = "ROOT sd = token[] send-done(s), channel_id=1"
RECV = f"r = (f32[64], u32[], token[]) recv(t), channel_id=1, {PAIRS}"
RECEIVED = "rd = (f32[64], token[]) recv-done(r), channel_id=1"
SCHEDULED = "num_partitions=2, is_scheduled=true"


def test_a_send_needs_a_recv_and_a_recv_a_send() -> None:
    assert found_names("HLL111", transfers(SEND, SENT)) == ["s"]
    alone = transfers(RECV, f"ROOT {RECEIVED}")
    assert found_names("HLL111", alone) == ["r"]
    assert found_names("HLL111", transfers(RECV, SEND, RECEIVED, SENT)) == []
    apart = (each.replace("channel_id=1", "channel_id=2") for each in (RECV, RECEIVED))
    other = transfers(*apart, SEND, SENT)
    assert sorted(found_names("HLL111", other)) == ["r", "s"]


def test_the_host_needs_no_partner() -> None:
    assert found_names("HLL111", transfers(
        SEND.replace(PAIRS, "is_host_transfer=true"),
        SENT.replace("channel_id=1", "channel_id=1, is_host_transfer=true"),
    )) == []  # fmt: skip


def test_a_schedule_must_not_deadlock() -> None:
    assert violations("HLL111", transfers(RECV, SEND, RECEIVED, SENT, header=SCHEDULED)) == ()
    gather = "x = f32[128] all-gather(p), replica_groups={{0,1}}, dimensions={0}, channel_id=2, "
    gather += "use_global_device_ids=true"
    lines = (RECV, gather, SEND, RECEIVED, SENT)
    (found,) = violations("HLL111", transfers(*lines, header=SCHEDULED))
    assert "deadlock" in found.message
    assert violations("HLL111", transfers(*lines)) == ()  # it has no order yet


def test_transfers_of_a_whole_program_are_not_there_yet() -> None:
    text = transfers(SEND, SENT).replace(
        "p = f32[64] parameter(0)", "p = f32[64] parameter(0), sharding={devices=[2]<=[2]}"
    )
    text = text.replace("send(p, t)", "send(n, t)").replace(
        "t = token[]", "n = f32[64] negate(p), sharding={devices=[2]<=[2]}\n  t = token[]"
    )
    assert check("HLL111", text).verdict is Verdict.NONE
