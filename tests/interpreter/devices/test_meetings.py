"""Devices that meet: sends and recvs, loops and branches, and waits that never end."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.several_devices import entry, run_on

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.machine import devices_of
from hloopt.text import parse_module

NUMBERS = [[np.array([device], np.float32)] for device in range(8)]
P1 = "p = f32[1] parameter(0)"
TOKEN = "t = token[] after-all()"
RECV_SHAPE = "(f32[1], u32[], token[])"


def peers(pairs: str, channel: int | None = 1) -> str:
    channel_id = f", channel_id={channel}" if channel is not None else ""
    return f'{channel_id}, frontend_attributes={{_xla_send_recv_source_target_pairs="{pairs}"}}'


def numbers(text: str, replicas: int = 1, partitions: int = 1) -> list[list[float]]:
    """What the devices make of their numbers."""
    found = run_on(replicas, partitions, text, NUMBERS[: replicas * partitions])
    return [array.tolist() for array in found]


# -- send and recv --------------------------------------------------------------------------------

RING = "{{0,1},{1,2},{2,3},{3,0}}"
LINE = "{{0,1},{1,2},{2,3}}"


@pytest.mark.parametrize(("replicas", "partitions"), [(4, 1), (1, 4)])
@pytest.mark.parametrize("channel", [None, 0, 1])
@pytest.mark.parametrize(
    ("pairs", "expected"), [(RING, [[3], [0], [1], [2]]), (LINE, [[0], [0], [1], [2]])]
)
def test_send_and_recv_in_any_order(
    replicas: int, partitions: int, channel: int | None, pairs: str, expected: list[list[float]]
) -> None:
    attributes = peers(pairs, channel)
    recv = f"r = {RECV_SHAPE} recv(t){attributes}"
    send = f"s = {RECV_SHAPE} send(p, t){attributes}"
    sent = f"sd = token[] send-done(s){attributes}"
    received = f"rd = (f32[1], token[]) recv-done(r){attributes}"
    root = "ROOT d = f32[1] get-tuple-element(rd), index=0"
    for order in ((recv, send, sent, received), (send, sent, recv, received)):
        assert numbers(entry(P1, TOKEN, *order, root), replicas, partitions) == expected


def test_transfers_of_one_channel_arrive_in_order() -> None:
    attributes = peers("{{0,1}}")
    text = entry(
        P1,
        TOKEN,
        "q = f32[1] constant({9})",
        f"sa = {RECV_SHAPE} send(p, t){attributes}",
        f"sb = {RECV_SHAPE} send(q, t){attributes}",
        f"r0 = {RECV_SHAPE} recv(t){attributes}",
        f"r1 = {RECV_SHAPE} recv(t){attributes}",
        f"d1 = (f32[1], token[]) recv-done(r1){attributes}",
        f"d0 = (f32[1], token[]) recv-done(r0){attributes}",
        "x0 = f32[1] get-tuple-element(d0), index=0",
        "x1 = f32[1] get-tuple-element(d1), index=0",
        "g = (f32[1], f32[1]) tuple(x0, x1)",
        "ROOT x = f32[1] subtract(x0, x1)",
    )
    assert numbers(text, 2) == [[0], [-9]]


def test_without_pairs_a_device_sends_to_itself() -> None:
    text = entry(
        P1,
        TOKEN,
        f"r = {RECV_SHAPE} recv(t), channel_id=3",
        f"s = {RECV_SHAPE} send(p, t), channel_id=3",
        "rd = (f32[1], token[]) recv-done(r), channel_id=3",
        "sd = token[] send-done(s), channel_id=3",
        "ROOT d = f32[1] get-tuple-element(rd), index=0",
    )
    assert numbers(text, 2) == [[0], [1]]


def test_a_channel_that_only_sends_have_does_not_count() -> None:
    text = entry(
        P1,
        TOKEN,
        f"r = {RECV_SHAPE} recv(t){peers(RING, 2)}",
        f"s = {RECV_SHAPE} send(p, t){peers(RING, 1)}",
        "rd = (f32[1], token[]) recv-done(r), channel_id=2",
        "ROOT d = f32[1] get-tuple-element(rd), index=0",
    )
    assert numbers(text, 4) == [[3], [0], [1], [2]]


def test_host_transfers_need_a_host() -> None:
    text = entry(
        P1,
        TOKEN,
        f"s = {RECV_SHAPE} recv(t), channel_id=3, is_host_transfer=true",
        "ROOT sd = (f32[1], token[]) recv-done(s), channel_id=3, is_host_transfer=true",
    )
    with pytest.raises(RunError, match="%s: there is no host") as caught:
        numbers(text)
    assert caught.value.code == "HLO501"


# A recv that is done one iteration later: its data is that of the iteration before.
PIPELINED = f"""HloModule m

body {{
  p = (s32[], f32[1], {RECV_SHAPE}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[1] get-tuple-element(p), index=1
  r = {RECV_SHAPE} get-tuple-element(p), index=2
  rd = (f32[1], token[]) recv-done(r)
  y = f32[1] get-tuple-element(rd), index=0
  two = f32[1] constant({{2}})
  z = f32[1] multiply(y, two)
  t = token[] after-all()
  nr = {RECV_SHAPE} recv(t){peers(RING, None)}
  s = {RECV_SHAPE} send(z, t){peers(RING, None)}
  sd = token[] send-done(s)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT n = (s32[], f32[1], {RECV_SHAPE}) tuple(j, z, nr)
}}

condition {{
  p = (s32[], f32[1], {RECV_SHAPE}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}}

ENTRY e {{
  x = f32[1] parameter(0)
  t = token[] after-all()
  r = {RECV_SHAPE} recv(t){peers(RING, None)}
  s = {RECV_SHAPE} send(x, t){peers(RING, None)}
  sd = token[] send-done(s)
  zero = s32[] constant(0)
  init = (s32[], f32[1], {RECV_SHAPE}) tuple(zero, x, r)
  w = (s32[], f32[1], {RECV_SHAPE}) while(init), body=body, condition=condition
  last = {RECV_SHAPE} get-tuple-element(w), index=2
  rd = (f32[1], token[]) recv-done(last)
  ROOT y = f32[1] get-tuple-element(rd), index=0
}}
"""


def test_a_recv_travels_through_a_loop() -> None:
    # Four steps around a ring of four, doubled three times.
    assert numbers(PIPELINED, 1, 4) == [[0], [8], [16], [24]]


# -- loops and branches ---------------------------------------------------------------------------


def loop(limit: str, parameter: str = "f32[1] parameter(0)") -> str:
    """A loop that adds up over all devices, `limit` times."""
    return f"""HloModule m

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

body {{
  p = (u32[], f32[1]) parameter(0)
  i = u32[] get-tuple-element(p), index=0
  x = f32[1] get-tuple-element(p), index=1
  r = f32[1] all-reduce(x), replica_groups={{}}, to_apply=sum
  one = u32[] constant(1)
  j = u32[] add(i, one)
  ROOT n = (u32[], f32[1]) tuple(j, r)
}}

condition {{
  p = (u32[], f32[1]) parameter(0)
  i = u32[] get-tuple-element(p), index=0
  n = u32[] {limit}
  ROOT c = pred[] compare(i, n), direction=LT
}}

ENTRY e {{
  x = {parameter}
  zero = u32[] constant(0)
  init = (u32[], f32[1]) tuple(zero, x)
  w = (u32[], f32[1]) while(init), body=body, condition=condition
  ROOT y = f32[1] get-tuple-element(w), index=1
}}
"""


def test_collectives_in_a_loop_meet_iteration_by_iteration() -> None:
    assert numbers(loop("constant(3)"), 4) == [[96]] * 4


def test_made_up_inputs_let_devices_take_the_same_way() -> None:
    module = parse_module(
        "HloModule m\n\nENTRY e {\n  n = s32[] parameter(0)\n  b = pred[] parameter(1)\n"
        "  v = s32[9] parameter(2)\n  ROOT t = (s32[], pred[], s32[9]) tuple(n, b, v)\n}\n"
    )
    for seed in range(5):
        made = [Inputs().arguments(module.entry, device, seed) for device in devices_of(4, 1)]
        steering = [[int(n), bool(b)] for n, b, _ in made]
        assert steering == steering[:1] * 4
        assert any((v != made[0][2]).any() for _, _, v in made)


def test_a_branch_that_all_members_of_a_group_take() -> None:
    text = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

low {
  x = f32[1] parameter(0)
  ROOT r = f32[1] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum
}

high {
  x = f32[1] parameter(0)
  ROOT r = f32[1] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum
}

ENTRY e {
  x = f32[1] parameter(0)
  id = u32[] replica-id()
  two = u32[] constant(2)
  c = pred[] compare(id, two), direction=LT
  ROOT r = f32[1] conditional(c, x, x), true_computation=low, false_computation=high
}
"""
    assert numbers(text, 4) == [[1], [1], [5], [5]]


def test_a_start_does_not_hold_a_device_up() -> None:
    # Device 1 starts the reduction only after it has what device 0 sends behind its own start.
    start = "f32[1] all-reduce-start(x), replica_groups={}, to_apply=sum"
    attributes = peers("{{0,1}}")
    text = f"""HloModule m

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY e {{
  x = f32[1] parameter(0)
  t = token[] after-all()
  a = {start}
  s = {RECV_SHAPE} send(x, t){attributes}
  sd = token[] send-done(s)
  r = {RECV_SHAPE} recv(t){attributes}
  rd = (f32[1], token[]) recv-done(r)
  d = f32[1] all-reduce-done(a)
  y = f32[1] get-tuple-element(rd), index=0
  ROOT z = f32[1] add(d, y)
}}
"""
    assert numbers(text, 2) == [[1], [1]]


# -- waits without end ----------------------------------------------------------------------------


def deadlock(text: str, replicas: int) -> list[str]:
    """The lines of the error."""
    with pytest.raises(RunError) as caught:
        numbers(text, replicas)
    assert caught.value.code == "HLO504"
    assert caught.value.span is not None
    return [line.strip() for line in caught.value.message.splitlines()]


def test_loops_that_do_not_run_equally_often() -> None:
    assert deadlock(loop("replica-id()"), 4) == [
        "devices wait for each other for ever:",
        "devices 1, 2, 3 wait at %r for device 0",
        "device 0 has finished the program",
    ]


def test_a_recv_without_a_send() -> None:
    attributes = peers("{{0,1}}")
    text = entry(
        P1,
        TOKEN,
        f"r = {RECV_SHAPE} recv(t){attributes}",
        "rd = (f32[1], token[]) recv-done(r)",
        "ROOT d = f32[1] get-tuple-element(rd), index=0",
    )
    assert deadlock(text, 2)[1:] == [
        "device 1 waits at %rd for device 0",
        "device 0 has finished the program",
    ]


def test_a_send_without_a_recv() -> None:
    text = entry(P1, TOKEN, f"ROOT s = {RECV_SHAPE} send(p, t){peers('{{1,0}}')}")
    assert deadlock(text, 2)[1:] == [
        "what device 1 sends at %s is never received by device 0",
        "device 0 has finished the program",
    ]


def test_different_branches() -> None:
    text = """HloModule m

ENTRY e {
  x = f32[1] parameter(0)
  id = u32[] replica-id()
  ROOT r = f32[1] conditional(id, x, x, x), branch_computations={one, two, three}
}
""".replace(
        "ENTRY",
        "\n".join(
            f"{name} {{\n  x = f32[1] parameter(0)\n  ROOT r{name} = f32[1] "
            "collective-permute(x), source_target_pairs={{0,1},{1,2}}\n}\n"
            for name in ("one", "two", "three")
        )
        + "\nENTRY",
    )
    assert deadlock(text, 3)[1:] == [
        "device 0 waits at %rone for devices 1, 2",
        "device 1 waits at %rtwo for devices 0, 2",
        "device 2 waits at %rthree for devices 0, 1",
    ]


def test_long_lists_are_cut() -> None:
    branches = "\n".join(
        f"b{n} {{\n  x = f32[1] parameter(0)\n  ROOT r{n} = f32[32] all-gather(x), "
        "replica_groups={}, dimensions={0}\n}\n"
        for n in range(32)
    )
    names = ", ".join(f"b{n}" for n in range(32))
    text = f"""HloModule m

{branches}
ENTRY e {{
  x = f32[1] parameter(0)
  id = s32[] parameter(1)
  ROOT r = f32[32] conditional(id{", x" * 32}), branch_computations={{{names}}}
}}
"""
    arguments = [[np.zeros(1, np.float32), np.array(device, np.int32)] for device in range(32)]
    with pytest.raises(RunError) as caught:
        run_on(32, 1, text, arguments)
    lines = caught.value.message.splitlines()
    assert len(lines) == 12
    assert lines[1] == "  device 0 waits at %r0 for devices 1, 2, 3, 4, 5, 6, 7, 8 and 23 more"
    assert lines[-1] == "  and so on at 22 more places"


def test_many_devices_and_instructions() -> None:
    """64 devices, 1000 collectives each: about a second; quadratic scheduling takes minutes."""
    lines = [
        f"x{n + 1} = f32[1] collective-permute(x{n}), source_target_pairs="
        + "{"
        + ",".join(f"{{{d},{(d + 1) % 64}}}" for d in range(64))
        + "}"
        for n in range(1000)
    ]
    text = entry("x0 = f32[1] parameter(0)", *lines, "ROOT r = f32[1] copy(x1000)")
    found = run_on(64, 1, text, [[np.array([d], np.float32)] for d in range(64)])
    assert [array.tolist() for array in found] == [[(d - 1000) % 64] for d in range(64)]
