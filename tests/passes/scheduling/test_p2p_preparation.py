"""Sends and receives that are chained before scheduling, and those that are left alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "latency-hiding-scheduler-preparation"
STEPS = ("recv", "send", "recv-done", "send-done")


def transfer(channel: int, data: str, note: str = "") -> list[str]:
    """The steps of a channel, `c1.recv` and so on, each with an attribute more."""
    name, rest = f"c{channel}", f"channel_id={channel}{note}"
    shape = "(f32[8], u32[], token[])"
    return [
        f"{name}.t = token[] after-all()",
        f"{name}.recv = {shape} recv({name}.t), {rest}",
        f"{name}.send = {shape} send({data}, {name}.t), {rest}",
        f"{name}.recv-done = (f32[8], token[]) recv-done({name}.recv), {rest}",
        f"{name}.send-done = token[] send-done({name}.send), {rest}",
        f"{name}.data = f32[8] get-tuple-element({name}.recv-done), index=0",
    ]


def program(*lines: str, before: str = "") -> str:
    body = "\n  ".join(lines)
    return f"HloModule m, num_partitions=2\n{before}\nENTRY e {{\n  {body}\n}}\n"


def stream(number: int) -> str:
    return f', frontend_attributes={{_xla_send_recv_pipeline="{number}"}}'


def waits(module: Module, name: str) -> list[str]:
    return [i.name for i in _named(module, name).control_predecessors]


def _named(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def test_the_steps_of_a_channel_are_chained() -> None:
    text = program("p = f32[8] parameter(0)", *transfer(1, "p"), "ROOT r = f32[8] negate(c1.data)")
    module = run_checked(NAME, text)
    assert waits(module, "c1.send") == ["c1.recv"]
    assert waits(module, "c1.recv-done") == ["c1.send"]
    assert waits(module, "c1.send-done") == ["c1.recv-done"]


def test_transfers_with_the_host_are_left_alone() -> None:
    lines = transfer(1, "p", ", is_host_transfer=true")
    text = program("p = f32[8] parameter(0)", *lines, "ROOT r = f32[8] negate(c1.data)")
    # One channel both ways, which the verifier refuses.
    assert not create_pass(NAME).run(parse_module(text), PassContext())


def test_a_channel_that_lacks_a_step_is_left_alone() -> None:
    lines = [line for line in transfer(1, "p") if "send" not in line]
    text = program("p = f32[8] parameter(0)", *lines, "ROOT r = f32[8] negate(c1.data)")
    run_checked(NAME, text, changes=False)


def test_steps_that_depend_on_each_other_are_not_chained() -> None:
    lines = transfer(1, "c1.data")
    lines = [*lines[:2], lines[3], lines[5], lines[2], lines[4]]  # what is sent was received
    text = program("p = f32[8] parameter(0)", *lines, "ROOT r = f32[8] negate(p)")
    context = PassContext()
    assert not create_pass(NAME).run(parse_module(text), context)
    assert [remark.reason for remark in context.remarks] == [
        "the steps of its channel depend on each other"
    ]


@pytest.mark.parametrize(
    ("streams", "chain"),
    [
        ((0, 1), "c1.recv c1.send c2.recv c2.send c1.recv-done c2.recv-done c1.send-done "
                 "c2.send-done"),
        ((1, 0), "c2.recv c2.send c1.recv c1.send c2.recv-done c1.recv-done c2.send-done "
                 "c1.send-done"),
        ((0, 0), "c1.recv c1.send c1.recv-done c1.send-done"),
        ((2, 3), "c1.recv c1.send c1.recv-done c1.send-done"),
    ],
)  # fmt: skip
def test_two_streams_that_make_up_a_cycle_are_chained_together(
    streams: tuple[int, int], chain: str
) -> None:
    lines = [
        line
        for channel, number in enumerate(streams, start=1)
        for line in transfer(channel, "p", stream(number))
    ]
    text = program("p = f32[8] parameter(0)", *lines, "ROOT r = f32[8] add(c1.data, c2.data)")
    module = run_checked(NAME, text)
    steps = chain.split()
    for before, after in pairwise(steps):
        assert before in waits(module, after)


def test_collectives_come_before_or_after_a_chain_and_other_work_anywhere() -> None:
    plus = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
    text = program(
        "p = f32[8] parameter(0)",
        "free = f32[8] all-reduce(p), to_apply=sum",
        "first = f32[8] all-reduce(p), to_apply=sum",
        *transfer(1, "first"),
        "work = f32[8] negate(p)",
        'called = f32[8] custom-call(c1.data), custom_call_target="f"',
        "ROOT r = (f32[8], f32[8], f32[8]) tuple(free, work, called)",
        before=plus,
    )
    module = run_checked(NAME, text)
    assert sorted(waits(module, "c1.recv")) == ["first", "free"]
    assert waits(module, "called") == ["c1.send-done"]
    assert waits(module, "work") == []


@pytest.mark.parametrize(("inner", "chains"), [(0, True), (1, False)])
def test_a_channel_goes_on_in_a_loop_on_the_same_stream(inner: int, chains: bool) -> None:
    module = run_checked(NAME, looped(inner), changes=chains)
    for name in ("c1", "d1"):
        assert waits(module, f"{name}.send") == ([f"{name}.recv"] if chains else [])


@pytest.mark.parametrize("channel", ["c1", "d1"])
def test_the_stream_of_a_channel_is_that_of_its_recv(channel: str) -> None:
    lines = looped(0).splitlines()
    text = "\n".join(
        line.replace(stream(0), "") if line.strip().startswith(f"{channel}.send =") else line
        for line in lines
    )
    module = run_checked(NAME, text)
    assert waits(module, f"{channel}.send") == [f"{channel}.recv"]


def looped(inner: int) -> str:
    """A channel on stream 0 before a loop, and one on another stream in its body."""
    body = "\n  ".join(
        [
            "s = (s32[], f32[8], token[], f32[8]) parameter(0)",
            "i = s32[] get-tuple-element(s), index=0",
            "x = f32[8] get-tuple-element(s), index=1",
            "one = s32[] constant(1)",
            "j = s32[] add(i, one)",
            *(line.replace("c1.", "d1.") for line in transfer(1, "x", stream(inner))),
            "ROOT t = (s32[], f32[8], token[], f32[8]) tuple(j, d1.data, d1.send-done, x)",
        ]
    )
    before = f"""body {{
  {body}
}}
condition {{
  q = (s32[], f32[8], token[], f32[8]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(k, n), direction=LT
}}"""
    return program(
        "p = f32[8] parameter(0)",
        "zero = s32[] constant(0)",
        *transfer(1, "p", stream(0)),
        "init = (s32[], f32[8], token[], f32[8]) tuple(zero, c1.data, c1.send-done, p)",
        "w = (s32[], f32[8], token[], f32[8]) while(init), condition=condition, body=body",
        "ROOT r = f32[8] get-tuple-element(w), index=1",
        before=before,
    )
