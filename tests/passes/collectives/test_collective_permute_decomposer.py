"""What collective-permute-decomposer leaves alone, and what has to wait."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "collective-permute-decomposer"
ALL = "channel_id=9, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=plus"


def loop(*lines: str, result: str = "c", header: str = "num_partitions=4") -> str:
    """A loop over one array, `x` in its body."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"""HloModule m, {header}

plus {{
  plus.a = f32[] parameter(0)
  plus.b = f32[] parameter(1)
  ROOT plus.s = f32[] add(plus.a, plus.b)
}}

body {{
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[8] get-tuple-element(state), index=1
{body}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8]) tuple(next, {result})
}}

condition {{
  test = (s32[], f32[8]) parameter(0)
  n = s32[] get-tuple-element(test), index=0
  three = s32[] constant(3)
  ROOT more = pred[] compare(n, three), direction=LT
}}

ENTRY e {{
  zero = s32[] constant(0)
  p = f32[8] parameter(0)
  initial = (s32[], f32[8]) tuple(zero, p)
  ROOT loop = (s32[], f32[8]) while(initial), condition=condition, body=body
}}
"""


def permute(pairs: str, operand: str = "x", *, more: str = "channel_id=1") -> str:
    return f"f32[8] collective-permute({operand}), source_target_pairs={pairs}, {more}"


def named(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


@pytest.mark.parametrize(
    ("lines", "options", "header", "reason"),
    [
        (
            [f"c = {permute('{{0,1},{2,3},{3,2}}')}"],
            *({}, "num_partitions=4", "its pairs have a cycle"),
        ),
        (
            [f"c = {permute('{{0,1}}')}"],
            *({"threshold_in_bytes": 33}, "num_partitions=4", "it has 32 bytes"),
        ),
        (
            ["n = f32[8] negate(x)", f"c = {permute('{{0,1}}', 'n')}"],
            {"pipeline_parallelism_opt_level": "enable"},
            *("num_partitions=4", "%n, which it sends, is not an element of the loop's state"),
        ),
        (
            [f"c = {permute('{{0,1}}', more='metadata={}')}"],
            *({}, "num_partitions=4", "are cross_replica and would be cross_partition in a send"),
        ),
        (
            [f"c = {permute('{{0,1}}')}"],
            *({}, "replica_count=4", "are cross_partition and would be cross_replica in a send"),
        ),
        (
            ["n = f32[8] negate(x)",
             f"c = {permute('{{0,1}}', more='channel_id=1, control-predecessors={n}')}"],
            *({}, "num_partitions=4", "it has control dependencies"),
        ),
    ],
)  # fmt: skip
def test_what_stays_says_why(
    lines: list[str], options: dict[str, object], header: str, reason: str
) -> None:
    context = PassContext()
    module = parse_module(loop(*lines, header=header))
    assert not create_pass(NAME, options).run(module, context)
    (remark,) = context.remarks
    assert remark.kind == "missed"
    assert reason in remark.reason


def test_a_collective_that_the_send_needs_does_not_wait_for_it() -> None:
    text = loop(f"a = f32[8] all-reduce(x), {ALL}", f"c = {permute('{{0,1},{1,2}}', 'a')}")
    module = run_checked(NAME, text)
    assert not named(module, "a").control_predecessors
    assert named(module, "c-send").operands[0] is named(module, "a")


@pytest.mark.parametrize(("level", "is_parallel"), [("disable", False), ("enable", True)])
def test_sends_of_pipeline_stages_wait_for_the_recv_to_be_over(
    level: str, is_parallel: bool
) -> None:
    text = loop(
        f"c = {permute('{{0,1},{1,2}}')}",
        f"a = f32[8] all-reduce(x), {ALL}",
        "w = f32[8] add(a, c)",
        result="w",
    )
    module = run_checked(NAME, text, pipeline_parallelism_opt_level=level)
    recv, send, done = (named(module, f"c-{step}") for step in ("recv", "send", "recv-done"))
    assert list(send.control_predecessors) == [done if is_parallel else recv]
    assert list(done.control_predecessors) == ([] if is_parallel else [send])
    streams = [
        parse_frontend_attributes(i.attributes.get("frontend_attributes", "{}")).get(
            "_xla_gpu_collective_stream"
        )
        for i in (recv, send, named(module, "a"))
    ]
    assert streams == ["p2p" if is_parallel else None] * 3


@pytest.mark.parametrize(
    ("first", "second", "streams"),
    [
        ("{{3,0}}", "{{0,1},{1,2},{2,3}}", ["0", "1"]),
        ("{{0,1},{1,2},{2,3}}", "{{3,0}}", ["1", "0"]),
        ("{{0,3}}", "{{1,0},{2,1},{3,2}}", ["0", "1"]),
        ("{{2,0}}", "{{0,1},{1,2},{2,3}}", ["0", None]),
        ("{{3,0}}", "{{0,1},{2,3}}", ["0", None]),
    ],
)
def test_two_permutes_that_make_a_ring_have_streams_of_their_own(
    first: str, second: str, streams: list[str | None]
) -> None:
    text = loop(
        f"a = {permute(first)}",
        f"b = {permute(second, more='channel_id=2')}",
        "c = f32[8] add(a, b)",
    )
    module = run_checked(NAME, text)
    notes = [
        parse_frontend_attributes(named(module, f"{name}-recv").attributes["frontend_attributes"])
        for name in "ab"
    ]
    assert [note.get("_xla_send_recv_pipeline") for note in notes] == streams


def test_collectives_wait_by_way_of_others() -> None:
    """The second all-reduce shares no two devices with the permute, but with the first one."""
    text = loop(
        f"c = {permute('{{0,1}}')}",
        f"a = f32[8] all-reduce(x), {ALL}",
        f"b = f32[8] all-reduce(x), {ALL.replace('{{0,1,2,3}}', '{{2,3},{0},{1}}')}",
        f"o = f32[8] all-reduce(x), {ALL.replace('{{0,1,2,3}}', '{{0},{1},{2},{3}}')}",
        *("y = f32[8] add(a, b)", "z = f32[8] add(y, o)", "w = f32[8] add(z, c)"),
        result="w",
    )
    module = run_checked(NAME, text)
    done = named(module, "c-send-done")
    assert [done in named(module, name).control_predecessors for name in "abo"] == [
        *(True, True, False)
    ]


def test_a_schedule_stays_one() -> None:
    text = loop(f"c = {permute('{{0,1}}')}", header="is_scheduled=true, num_partitions=2")
    module = run_checked(NAME, text)
    body = named(module, "c-recv").parent
    order = [i.name for i in body.instructions if i.name.startswith("c-")]
    steps = ["c-after-all", "c-recv", "c-send", "c-recv-done"]
    assert [name for name in order if name in steps] == steps


def test_long_bodies_take_time_in_proportion() -> None:
    """Edges that are looked at grow with the body: 4,000 permutes in a chain are split at once."""
    count = 4000
    lines = [f"cp0 = {permute('{{0,1}}')}"]
    lines += [f"cp{n} = {permute('{{0,1}}', f'cp{n - 1}')}" for n in range(1, count)]
    module = parse_module(loop(*lines, result=f"cp{count - 1}"))
    assert create_pass(NAME).run(module, PassContext())
    assert sum(i.opcode is Opcode.SEND for i in module.instructions()) == count


def test_counts_of_devices_that_the_header_leaves_out_are_found() -> None:
    text = loop(
        f"c = {permute('{{0,1},{1,2},{2,3}}')}",
        f"a = f32[8] all-reduce(x), {ALL}",
        "w = f32[8] add(a, c)",
        result="w",
        header="entry_computation_layout={(f32[8]{0})->(s32[], f32[8]{0})}",
    )
    module = run_checked(NAME, text)
    assert named(module, "c-send-done") in named(module, "a").control_predecessors


NESTED = """inner {
  inner.state = (s32[], f32[8]) parameter(0)
  inner.i = s32[] get-tuple-element(inner.state), index=0
  inner.x = f32[8] get-tuple-element(inner.state), index=1
  inner.n = f32[8] negate(inner.x)
  inner.y = f32[8] collective-permute(inner.n), source_target_pairs={{1,2}}INNER
  inner.one = s32[] constant(1)
  inner.next = s32[] add(inner.i, inner.one)
  ROOT inner.r = (s32[], f32[8]) tuple(inner.next, inner.y)
}

inner.condition {
  inner.test = (s32[], f32[8]) parameter(0)
  inner.k = s32[] get-tuple-element(inner.test), index=0
  inner.two = s32[] constant(2)
  ROOT inner.more = pred[] compare(inner.k, inner.two), direction=LT
}

run {
  run.x = f32[8] parameter(0)
  run.zero = s32[] constant(0)
  run.s = (s32[], f32[8]) tuple(run.zero, run.x)
  run.w = (s32[], f32[8]) while(run.s), condition=inner.condition, body=inner
  ROOT run.y = f32[8] get-tuple-element(run.w), index=1
}

pass {
  ROOT pass.x = f32[8] parameter(0)
}

body {"""
CALLERS = [
    ["y = f32[8] call(OPERAND), to_apply=run"],
    [
        "k = s32[] constant(0)",
        "y = f32[8] conditional(k, OPERAND, OPERAND), branch_computations={run, pass}",
    ],
    [
        "st = (s32[], f32[8]) tuple(i, OPERAND)",
        "wh = (s32[], f32[8]) while(st), condition=inner.condition, body=inner",
        "y = f32[8] get-tuple-element(wh), index=1",
    ],
]


@pytest.mark.parametrize("channels", [("", ""), (", channel_id=1", ", channel_id=1")])
@pytest.mark.parametrize("caller", CALLERS, ids=["call", "conditional", "while"])
@pytest.mark.parametrize("is_needed", [True, False])
def test_what_callers_run_is_kept_apart_from_sends(
    caller: list[str], channels: tuple[str, str], is_needed: bool
) -> None:
    """Sends of one channel, or with the same pairs, would meet the recv of another permute."""
    inner, outer = channels
    operand, sent = ("x", "y") if is_needed else ("c", "x")
    lines = [line.replace("OPERAND", operand) for line in caller]
    split = f"c = {permute('{{0,1},{1,2}}', sent, more=outer[2:] or 'metadata={}')}"
    lines = [*lines, split] if is_needed else [split, *lines]
    header = "num_partitions=3" if outer else "replica_count=3"
    text = loop(*lines, "a = f32[8] add(c, y)", result="a", header=header)
    text = text.replace("body {", NESTED.replace("INNER", inner), 1)
    reference = Reference(parse_module(text), RunSettings())
    module = run_checked(NAME, text)
    running = next(i for i in named(module, "c-send").parent.instructions if i.name in ("y", "wh"))
    if running.opcode is Opcode.GET_TUPLE_ELEMENT:
        running = running.operands[0]
    recv, done = named(module, "c-recv"), named(module, "c-send-done")
    assert (running in recv.control_predecessors) is is_needed
    assert (done in running.control_predecessors) is not is_needed
    assert reference.compare(module) is None


def test_callers_between_two_permutes_run_between_their_sends() -> None:
    text = loop(
        f"c = {permute('{{0,1},{1,2}}')}",
        "y = f32[8] call(x), to_apply=run",
        f"d = {permute('{{0,1},{1,2}}', 'y', more='channel_id=2')}",
        *("a = f32[8] add(c, d)",),
        result="a",
        header="num_partitions=3",
    ).replace("body {", NESTED.replace("INNER", ", channel_id=1"), 1)
    reference = Reference(parse_module(text), RunSettings())
    module = run_checked(NAME, text)
    assert named(module, "c-send-done") in named(module, "y").control_predecessors
    assert named(module, "y") in named(module, "d-recv").control_predecessors
    assert reference.compare(module) is None


def test_callers_without_shared_devices_stay_free() -> None:
    text = loop(
        f"c = {permute('{{0,1}}')}",
        "y = f32[8] call(x), to_apply=run",
        *("a = f32[8] add(c, y)",),
        result="a",
        header="num_partitions=3",
    ).replace("body {", NESTED.replace("INNER", ", channel_id=1"), 1)
    assert not named(run_checked(NAME, text), "y").control_predecessors


def test_a_recv_waits_for_the_done_of_what_its_send_needs() -> None:
    text = loop(
        f"s = f32[8] all-reduce-start(x), {ALL}",
        "a = f32[8] all-reduce-done(s)",
        f"c = {permute('{{0,1},{1,2}}', 'a')}",
    )
    module = run_checked(NAME, text)
    assert list(named(module, "c-recv").control_predecessors) == [named(module, "a")]


def test_a_permute_on_the_channel_of_a_send_stays() -> None:
    notes = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
    text = loop(
        "t = token[] after-all()",
        f"v = (f32[8], u32[], token[]) recv(t), channel_id=1, {notes}",
        f"s = (f32[8], u32[], token[]) send(x, t), channel_id=1, {notes}",
        *("vd = (f32[8], token[]) recv-done(v), channel_id=1",),
        *("sd = token[] send-done(s), channel_id=1",),
        f"c = {permute('{{0,1}}')}",
    )
    context = PassContext()
    module = parse_module(text)
    assert not create_pass(NAME).run(module, context)
    assert context.remarks[0].reason in ("%v has the same channel", "%s has the same channel")
