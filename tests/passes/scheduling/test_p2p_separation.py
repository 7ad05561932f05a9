"""The places of chains of transfers among collectives, calls and each other."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.passes.checked_run import run_checked
from tests.passes.scheduling.test_p2p_preparation import NAME, program, stream, transfer

from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

SUM = """sum { sum.a = f32[] parameter(0) sum.b = f32[] parameter(1)
  ROOT sum.c = f32[] add(sum.a, sum.b) }
"""
CALLEES = (
    SUM
    + """busy { busy.y = f32[8] parameter(0) ROOT busy.z = f32[8] all-reduce(busy.y), to_apply=sum }
outer { outer.y = f32[8] parameter(0) ROOT outer.z = f32[8] call(outer.y), to_apply=busy }
quiet { quiet.y = f32[8] parameter(0) ROOT quiet.z = f32[8] negate(quiet.y) }
away { away.y = f32[8] parameter(0) ROOT away.z = f32[8] negate(away.y) }, execution_thread="host"
wrapped { wrapped.y = f32[8] parameter(0)
  ROOT wrapped.z = f32[8] all-to-all(wrapped.y), dimensions={0} }
"""
)
P = "p = f32[8] parameter(0)"


def waits(module: Module) -> dict[str, str]:
    """The control predecessors of each instruction that has some."""
    found = {
        i.name: " ".join(sorted(before.name for before in i.control_predecessors))
        for i in module.instructions()
    }
    return {name: before for name, before in found.items() if before}


def chain(name: str, first: str = "") -> dict[str, str]:
    """The control predecessors of the steps of one channel; `first`: those of its recv."""
    found = {
        f"{name}.recv": first,
        f"{name}.send": f"{name}.recv",
        f"{name}.recv-done": f"{name}.send",
        f"{name}.send-done": f"{name}.recv-done",
    }
    return {step: before for step, before in found.items() if before}


def after(*lines: str, before: str = CALLEES, **options: bool) -> dict[str, str]:
    return waits(run_checked(NAME, program(*lines, before=before), **options))


# -- what runs collectives -------------------------------------------------------------------------

BUSY = [
    ("f32[8] all-reduce({}), to_apply=sum", True),
    ("f32[8] collective-permute({}), source_target_pairs={{{{0,1}}}}", True),
    ('f32[8] custom-call({}), custom_call_target="f"', True),
    ("f32[8] call({}), to_apply=busy", True),
    ("f32[8] call({}), to_apply=outer", True),
    ("f32[8] call({}), to_apply=quiet", False),
    ("f32[8] negate({})", False),
    ("f32[8] copy({})", False),
]


@pytest.mark.parametrize(("call", "is_busy"), BUSY)
def test_what_runs_collectives_comes_before_or_after_a_chain(call: str, *, is_busy: bool) -> None:
    free = after(
        P,
        f"x = {call.format('p')}",
        *transfer(1, "p"),
        "ROOT r = (f32[8], f32[8]) tuple(x, c1.data)",
    )
    assert free == chain("c1", "x" if is_busy else "")
    needs_data = after(P, *transfer(1, "p"), f"ROOT x = {call.format('c1.data')}")
    assert needs_data == {**chain("c1"), **({"x": "c1.send-done"} if is_busy else {})}
    is_sent = after(P, f"x = {call.format('p')}", *transfer(1, "x"), "ROOT r = f32[8] negate(x)")
    assert is_sent == chain("c1", "x" if is_busy else "")


@pytest.mark.parametrize(
    ("start", "done", "is_busy"),
    [
        ("f32[8] all-reduce-start(p), to_apply=sum", "all-reduce-done", True),
        ("((f32[8]), f32[8]) async-start(p), calls=wrapped", "async-done", True),
        ("(f32[8], f32[8], u32[]) copy-start(p)", "copy-done", False),
        (
            '((f32[8]), f32[8]) async-start(p), calls=away, async_execution_thread="host"',
            "async-done",
            False,
        ),
    ],
)
def test_of_asynchronous_collectives_the_dones_count(
    start: str, done: str, *, is_busy: bool
) -> None:
    found = after(
        P,
        f"s = {start}",
        f"d = f32[8] {done}(s)",
        *transfer(1, "p"),
        "ROOT r = (f32[8], f32[8]) tuple(d, c1.data)",
    )
    assert found == chain("c1", "d" if is_busy else "")


def test_a_module_without_chains_stays() -> None:
    run_checked(
        NAME, program(P, "ROOT x = f32[8] all-reduce(p), to_apply=sum", before=SUM), changes=False
    )


def test_what_is_ordered_already_gets_no_dependency() -> None:
    lines = transfer(1, "p")
    lines[0] += ", control-predecessors={x}"
    found = after(
        P, "x = f32[8] all-reduce(p), to_apply=sum", *lines, "ROOT r = f32[8] add(x, c1.data)"
    )
    assert found == {**chain("c1"), "c1.t": "x"}


def test_dependencies_that_others_imply_are_left_out() -> None:
    """An instruction that needs the second collective after the chain needs the first, too."""
    found = after(
        P,
        "x = f32[8] all-reduce(p), to_apply=sum",
        "y = f32[8] all-reduce(x), to_apply=sum",
        *transfer(1, "p"),
        "v = f32[8] all-reduce(c1.data), to_apply=sum",
        "w = f32[8] all-reduce(v), to_apply=sum",
        "ROOT r = f32[8] add(y, w)",
    )
    assert found == {**chain("c1", "x y"), "v": "c1.send-done"}


# -- several chains --------------------------------------------------------------------------------


def test_of_two_chains_the_later_one_comes_first_where_nothing_orders_them() -> None:
    found = after(P, *transfer(1, "p"), *transfer(2, "p"), "ROOT r = f32[8] add(c1.data, c2.data)")
    assert found == {**chain("c1", "c2.send-done"), **chain("c2")}


def test_a_chain_that_sends_what_another_received_comes_after_it() -> None:
    found = after(P, *transfer(1, "p"), *transfer(2, "c1.data"), "ROOT r = f32[8] negate(c2.data)")
    assert found == {**chain("c1"), **chain("c2", "c1.send-done")}


def test_three_chains_do_not_overlap() -> None:
    text = program(
        P,
        *(line for channel in (1, 2, 3) for line in transfer(channel, "p")),
        "ROOT r = (f32[8], f32[8], f32[8]) tuple(c1.data, c2.data, c3.data)",
    )
    module = parse_module(text)
    context = PassContext()
    assert create_pass(NAME).run(module, context)
    assert context.statistics["chains of transfers"] == 3
    assert waits(module) == {
        **chain("c1", "c2.send-done c3.send-done"),
        **chain("c2", "c3.send-done"),
        **chain("c3"),
    }


def test_a_schedule_follows_the_new_dependencies() -> None:
    lines = [
        P,
        *transfer(1, "p"),
        "x = f32[8] all-reduce(p), to_apply=sum",
        "ROOT r = f32[8] add(x, c1.data)",
    ]
    text = program(*lines, before=SUM)
    scheduled = run_checked(NAME, text.replace("HloModule m", "HloModule m, is_scheduled=true"))
    names = [i.name for i in scheduled.entry.instructions]
    assert names.index("x") < names.index("c1.recv")
    assert names.index("c1.send") < names.index("c1.recv-done")
    assert waits(scheduled) == chain("c1", "x")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_stream_without_its_other_half_is_chained_alone(number: int) -> None:
    found = after(P, *transfer(1, "p", stream(number)), "ROOT r = f32[8] negate(c1.data)")
    assert found == chain("c1")


def test_two_streams_that_make_up_a_cycle_have_one_chain() -> None:
    found = after(
        P,
        *transfer(1, "p", stream(1)),
        *transfer(2, "p", stream(0)),
        "x = f32[8] all-reduce(p), to_apply=sum",
        "ROOT r = (f32[8], f32[8], f32[8]) tuple(c1.data, c2.data, x)",
    )
    steps = ("2.recv", "2.send", "1.recv", "1.send", "2.recv-done", "1.recv-done")
    ends = ("2.send-done", "1.send-done")
    expected = {f"c{step}": f"c{before}" for before, step in pairwise((*steps, *ends))}
    assert found == {**expected, "c2.recv": "x"}


# -- what makes no chain ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["recv", "send", "recv-done", "send-done"])
def test_a_step_that_there_is_twice_keeps_a_channel_from_being_chained(step: str) -> None:
    lines = transfer(1, "p")
    again = next(line for line in lines if line.startswith(f"c1.{step} ")).replace("c1.", "d1.", 1)
    text = program(P, *lines, again, "ROOT r = f32[8] negate(c1.data)")
    assert not create_pass(NAME).run(parse_module(text), PassContext())


def test_channels_are_told_apart_by_their_numbers() -> None:
    """A transfer with the host and one without a number do not keep others from being chained."""
    host = [line.replace("c3", "h") for line in transfer(3, "p", ", is_host_transfer=true")]
    text = program(
        P, *transfer(1, "p"), *host, *transfer(2, "c1.data"), "ROOT r = f32[8] negate(c2.data)"
    )
    module = parse_module(text)
    assert create_pass(NAME).run(module, PassContext())
    assert waits(module) == {**chain("c1"), **chain("c2", "c1.send-done")}


def test_one_channel_whose_steps_depend_on_each_other_leaves_others_alone() -> None:
    lines = transfer(1, "c1.data")
    lines = [*lines[:2], lines[3], lines[5], lines[2], lines[4]]  # what is sent was received
    text = program(P, *lines, *transfer(2, "p"), "ROOT r = f32[8] negate(c2.data)")
    module = parse_module(text)
    context = PassContext(NAME)
    assert create_pass(NAME).run(module, context)
    assert waits(module) == chain("c2")
    assert [(r.kind, r.instruction) for r in context.remarks] == [
        ("missed", "c1.recv"),
        ("applied", "c2.recv"),
    ]


# -- loops -----------------------------------------------------------------------------------------

STATE = "(s32[], f32[8], token[])"


def loop(
    *, outside: list[str], inside: list[str], sent: str = "c1.send-done", work: str = ""
) -> str:
    """A channel outside of a loop and one in its body, with work in the body that uses nothing."""
    before = f"""{CALLEES}body {{
  s = {STATE} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  {"  ".join(line + chr(10) for line in inside)}
  {work}
  ROOT t = {STATE} tuple(j, d1.data, d1.send-done)
}}
condition {{
  q = {STATE} parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(k, n), direction=LT
}}
"""
    return program(
        P,
        "zero = s32[] constant(0)",
        "k0 = token[] after-all()",
        *outside,
        f"init = {STATE} tuple(zero, c1.data, {sent})",
        f"w = {STATE} while(init), condition=condition, body=body",
        "ROOT r = f32[8] get-tuple-element(w), index=1",
        before=before,
    )


INSIDE = [line.replace("c1.", "d1.") for line in transfer(1, "x")]


def test_a_pipelined_loop_needs_no_order_with_its_own_channel() -> None:
    module = run_checked(NAME, loop(outside=transfer(1, "p"), inside=INSIDE))
    assert waits(module) == {**chain("c1"), **chain("d1")}


def test_another_loop_has_to_be_apart_from_a_channel() -> None:
    other = [line.replace("channel_id=1", "channel_id=2") for line in INSIDE]
    module = run_checked(NAME, loop(outside=transfer(1, "p"), inside=other, sent="k0"))
    assert waits(module) == {**chain("c1"), **chain("d1"), "w": "c1.send-done"}


def test_in_the_body_of_a_pipelined_loop_all_comes_before_the_chain() -> None:
    work = "a = f32[8] all-reduce(d1.data), to_apply=sum\n  b = f32[8] all-reduce(x), to_apply=sum"
    module = parse_module(loop(outside=transfer(1, "p"), inside=INSIDE, work=work))
    create_pass(NAME).run(module, PassContext())
    assert waits(module) == {**chain("c1"), **chain("d1", "b")}


def test_a_loop_that_does_not_get_the_token_continues_no_channel() -> None:
    text = loop(outside=transfer(1, "p"), inside=INSIDE, sent="k0")
    assert not create_pass(NAME).run(parse_module(text), PassContext())


def test_three_places_of_a_channel_are_left_alone() -> None:
    third = "\n".join(line.replace("c1.", "f1.") for line in transfer(1, "y"))
    callee = f"more {{ y = f32[8] parameter(0)\n{third}\nROOT z = f32[8] negate(f1.data) }}\n"
    text = loop(outside=[*transfer(1, "p"), "m = f32[8] call(p), to_apply=more"], inside=INSIDE)
    text = text.replace("busy {", f"{callee}busy {{", 1)
    assert not create_pass(NAME).run(parse_module(text), PassContext())


def test_a_cycle_goes_on_in_a_loop() -> None:
    """Both channels are chained together outside, and together in the body."""
    outside = [*transfer(1, "p", stream(0)), *transfer(2, "p", stream(1))]
    inside = [
        line.replace("c1.", "d1.").replace("c2.", "d2.")
        for line in (*transfer(1, "x", stream(0)), *transfer(2, "x", stream(1)))
    ]
    text = loop(outside=outside, inside=inside)
    for name in ("c", "d"):
        token, state = f"{name}2.send-done)", f"{name}1.send-done)"
        text = text.replace(state, f"{name}1.send-done, {token}")
    text = text.replace(STATE, "(s32[], f32[8], token[], token[])")
    found = waits(run_checked(NAME, text))
    starts, dones = ("1.recv", "1.send", "2.recv", "2.send"), ("recv-done", "send-done")
    steps = (*starts, *(f"{channel}.{done}" for done in dones for channel in (1, 2)))
    expected = {
        f"{name}{step}": f"{name}{before}"
        for name in ("c", "d")
        for before, step in pairwise(steps)
    }
    assert found == expected
