"""Copies before and after a loop: channels, zeros, nested loops, and what is stored where."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import run_checked
from tests.passes.collectives.collective_pipeliner.loops import STORED, loop

from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.scheduling_annotations import GROUP
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

BACKWARD: dict[str, Any] = {"pipelining_direction": "backward", "should_process": ("all-reduce",)}
SINK: dict[str, Any] = {"pipelining_direction": "forward-sink"}


def pipelined(text: str, **options: Any) -> Module:
    return run_checked("collective-pipeliner", text, **options)


def channels(module: Module, *opcodes: Opcode) -> dict[str, list[str]]:
    """The channels of instructions with some opcodes, by computation."""
    return {
        name: [
            i.attributes.get("channel_id", "-")
            for i in module.computations[name].instructions
            if i.opcode in opcodes
        ]
        for name in ("main", "body")
    }


TRANSFER = """  tk = token[] after-all()
  rv = (f32[1,8], u32[], token[]) recv(tk), channel_id=5{host}
  sd = (f32[1,8], u32[], token[]) send(part, tk), channel_id=6{host}
  rvd = (f32[1,8], token[]) recv-done(rv), channel_id=5{host}
  sdd = token[] send-done(sd), channel_id=6{host}
"""
PAIRS = ', frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'


@pytest.mark.parametrize(
    ("host", "unique", "copied"),
    [
        (PAIRS, True, ["5", "6", "5", "6"]),
        (PAIRS, False, ["5", "6", "5", "6"]),
        (", is_host_transfer=true", False, ["5", "6", "5", "6"]),
        (", is_host_transfer=true", True, ["7", "8", "7", "8"]),
    ],
)
@pytest.mark.parametrize("options", [{}, BACKWARD])
def test_a_transfer_and_its_end_have_one_channel(
    host: str, unique: bool, copied: list[str], options: dict[str, Any]
) -> None:
    """Between devices the other end has it, too; with the host each copy may have its own."""
    body = TRANSFER.replace("{host}", host) + STORED
    text = loop(body, header=", replica_count=2")
    module = pipelined(text, unique_channel_id=unique, **options)
    order = (Opcode.RECV, Opcode.SEND, Opcode.RECV_DONE, Opcode.SEND_DONE)
    found = {opcode: channels(module, opcode) for opcode in order}
    assert [found[opcode]["body"] for opcode in order] == [["5"], ["6"], ["5"], ["6"]]
    for begin, end in ((Opcode.RECV, Opcode.RECV_DONE), (Opcode.SEND, Opcode.SEND_DONE)):
        assert found[begin]["main"] == found[end]["main"]
    assert sorted(found[opcode]["main"][0] for opcode in order) == sorted(copied)


@pytest.mark.parametrize(("unique", "expected"), [(True, ["8", "9"]), (False, ["7", "7"])])
@pytest.mark.parametrize("options", [{}, BACKWARD])
def test_each_copy_of_a_collective_has_a_channel_of_its_own(
    unique: bool, expected: list[str], options: dict[str, Any]
) -> None:
    """Moved collectives leave nothing behind; those without channels get none."""
    text = loop(STORED.replace("to_apply=sum", "to_apply=sum, channel_id=7"))
    module = pipelined(text, unique_channel_id=unique, **options)
    found = channels(module, Opcode.ALL_REDUCE)
    assert sorted(found["main"] + found["body"]) == expected
    without = pipelined(loop(), unique_channel_id=unique, **options)
    assert channels(without, Opcode.ALL_REDUCE) == {"main": ["-"], "body": ["-"]}


@pytest.mark.parametrize(
    ("kind", "operation", "zero"),
    [
        ("f32", "add", "0"),
        ("s32", "add", "0"),
        ("u8", "add", "0"),
        ("pred", "and", "false"),
        ("c64", "add", "(0, 0)"),
    ],
)
def test_stacks_start_as_zeros_of_their_type(kind: str, operation: str, zero: str) -> None:
    text = loop(STORED).replace("f32", kind).replace("add(a, b)", f"{operation}(a, b)")
    module = pipelined(text, **SINK)
    (around,) = module.instructions(Opcode.WHILE)
    stack = around.operands[0].operands[3]
    assert (stack.opcode, stack.shape.dimensions) == (Opcode.BROADCAST, (4, 1, 8))
    assert stack.operands[0].payload == zero


@pytest.mark.parametrize(
    ("start", "step", "part", "at"),
    [
        (-3, 1, "{[0:1], [0:8]}", "0"),
        (-1, 1, "{[0:3], [0:8]}", "0"),
        (0, 1, None, None),
        (1, 1, "{[1:4], [0:8]}", "1"),
        (3, 1, "{[3:4], [0:8]}", "3"),
        (3, -1, None, None),
        (2, -1, "{[0:3], [0:8]}", "0"),
        (5, -1, "{[2:4], [0:8]}", "2"),
    ],
)
def test_what_is_sunk_overwrites_the_slices_that_trips_store(
    start: int, step: int, part: str | None, at: str | None
) -> None:
    text = loop(
        start=start, step=step, limit=start + 4 * step, direction="LT" if step > 0 else "GT"
    )
    module = pipelined(text, **SINK)
    updates = [i for i in module.entry.instructions if i.opcode is Opcode.DYNAMIC_UPDATE_SLICE]
    slices = [i.attributes["slice"] for i in module.entry.instructions if i.opcode is Opcode.SLICE]
    if part is None:
        assert (updates, slices) == ([], [])
        return
    assert slices == [part]
    (update,) = updates
    assert [offset.payload for offset in update.operands[2:]] == [at, "0"]
    assert (update.operands[0].tuple_index, update.operands[1].opcode) == (1, Opcode.SLICE)


@pytest.mark.parametrize(
    ("start", "step", "limit", "compared", "last"),
    [
        (0, 1, 4, "LT", ("3", "LT")),
        (0, 1, 4, "LE", ("4", "LT")),
        (2, 3, 9, "LT", ("8", "LT")),
        (9, -2, 0, "GT", ("1", "GT")),
        (9, -2, 1, "GE", ("1", "GT")),
        (0, 1, 2, "NE", ("1", "LT")),
    ],
)
def test_the_last_trip_is_peeled_off(
    start: int, step: int, limit: int, compared: str, last: tuple[str, str]
) -> None:
    text = loop(start=start, step=step, limit=limit, direction=compared)
    module = pipelined(text, **BACKWARD)
    compare = module.computations["condition"].root
    counter, bound = compare.operands
    assert (bound.payload, compare.attributes["direction"]) == last
    assert counter.tuple_index == 0
    (around,) = module.instructions(Opcode.WHILE)
    assert around.operands[0].operands[-1].payload == str(start + step)


def nested(outer: str) -> str:
    """A loop in a loop, each with an all-reduce."""
    state = "(s32[], f32[4,8], f32[4,8])"
    text = loop("", entry="").replace("ENTRY main", "unused")
    head = text[: text.index("body {")]
    inner = loop().replace("body {", "inner {", 1).replace("condition {", "inner.condition {", 1)
    inner = inner[inner.index("inner {") : inner.index("ENTRY")]
    body = f"""  begin = s32[] constant(0)
  inside = {state} tuple(begin, x, y)
  w.inner = {state} while(inside), condition=inner.condition, body=inner
  x.inner = f32[4,8] get-tuple-element(w.inner), index=1
  flat = f32[8] reshape(part)
  row = f32[1,8] reshape(flat)
  {outer}"""
    whole = loop(body)
    return head + inner + whole[whole.index("body {") :]


def test_loops_in_a_loop_are_copied_with_their_own_computations() -> None:
    """The first trip of the outer loop is peeled off with an inner loop of its own."""
    outer = """ar.outer = f32[1,8] all-reduce(row), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar.outer, i, zero)
  seen = f32[4,8] add(y, x.inner)"""
    text = nested(outer).replace(
        "inside = (s32[], f32[4,8], f32[4,8]) tuple(begin, x, y)",
        "inside = (s32[], f32[4,8], f32[4,8]) tuple(begin, y, y)",
    )
    text = text.replace(
        "tuple(j, stored, y)\n}\n\ncondition", "tuple(j, stored, seen)\n}\n\ncondition"
    )
    module, context = parse_module(text), PassContext()
    assert create_pass("collective-pipeliner").run(module, context)
    found = [f"{r.kind} %{r.instruction}" for r in context.remarks]
    assert sorted(found) == ["applied %ar", "applied %ar.outer"]
    loops = list(module.instructions(Opcode.WHILE))
    assert len(loops) == 3
    called = [computation for w in loops for computation in w.called]
    assert len(set(called)) == 6


def test_inner_loops_are_reported_before_those_around_them() -> None:
    outer = """ar.outer = f32[1,8] all-reduce(row), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar.outer, i, i)"""
    module, context = parse_module(nested(outer)), PassContext()
    assert create_pass("collective-pipeliner").run(module, context)
    assert [(r.kind, r.instruction) for r in context.remarks] == [
        ("applied", "ar"),
        ("missed", "ar.outer"),
    ]


@pytest.mark.parametrize("reuses", [True, False])
def test_a_whole_buffer_waits_in_itself(reuses: bool) -> None:
    """A value of the shape of its buffer is taken from there without a slice."""
    body = """  ar = f32[4,8] all-reduce(y), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""
    module = pipelined(loop(body), reuse_pipelined_op_buffer=reuses)
    (inside,) = [
        i for i in module.computations["body"].instructions if i.opcode is Opcode.ALL_REDUCE
    ]
    taken: Instruction = inside.operands[0]
    assert taken.opcode is Opcode.GET_TUPLE_ELEMENT
    assert taken.tuple_index == (1 if reuses else 4)
    (around,) = module.instructions(Opcode.WHILE)
    assert len(around.shape.elements) == (4 if reuses else 5)


@pytest.mark.parametrize("options", [{}, BACKWARD, SINK])
def test_what_a_loop_says_of_its_trips_goes(options: dict[str, Any]) -> None:
    entry = """  w = {state} while(init), condition=condition, body=body, \
backend_config={{"known_trip_count":{{"n":"4"}}}}
  ROOT r = f32[4,8] get-tuple-element(w), index=1"""
    module = pipelined(loop(entry=entry), **options)
    (around,) = module.instructions(Opcode.WHILE)
    assert dict(around.attributes) == {}


@pytest.mark.parametrize(
    ("given", "first", "inside"),
    [
        ("0", "6", "0"),
        ("3", "6", "3"),
        ("3:1", None, "3:1"),  # an iteration that the first trip has not
        ("3:-1", None, "3:-1"),
    ],
)
def test_scheduling_groups_of_the_first_trip(given: str, first: str | None, inside: str) -> None:
    """They are new, after the last that is taken; what is moved loses them behind the loop."""
    note = f', frontend_attributes={{_scheduling_group_id="{given}"}}'
    body = f"""  before = f32[1,8] negate(part){note}
  ar = f32[1,8] all-reduce(before), replica_groups={{}}, to_apply=sum{note}
  last = f32[1,8] abs(ar){note}
  stored = f32[4,8] dynamic-update-slice(x, last, i, zero)
  taken = f32[1,8] sine(part), frontend_attributes={{_scheduling_group_id="5"}}
  used = f32[1,8] cosine(taken)
  seen = f32[4,8] dynamic-update-slice(y, used, i, zero)"""
    module = pipelined(loop(body, ends="stored, seen"))

    def groups(computation: str, opcode: Opcode) -> list[str | None]:
        here = module.computations[computation].instructions
        return [frontend_attribute(i, GROUP) for i in here if i.opcode is opcode]

    assert groups("main", Opcode.NEGATE) == [first]
    assert groups("main", Opcode.ALL_REDUCE) == groups("main", Opcode.ABS) == [None]
    assert groups("main", Opcode.SINE) == ["7" if first else "6"]
    for opcode in (Opcode.NEGATE, Opcode.ALL_REDUCE, Opcode.ABS):
        assert groups("body", opcode) == [inside]


@pytest.mark.parametrize("at", ["i, zero", "zero, i"])
def test_a_later_round_finds_the_marked_index_in_any_dimension(at: str) -> None:
    part = "column" if at.startswith("zero") else "part"
    shape = "f32[4,1]" if part == "column" else "f32[1,8]"
    body = f"""  column = f32[4,1] dynamic-slice(y, zero, i), dynamic_slice_sizes={{4,1}}
  rs = {shape} reduce-scatter({part}), replica_groups={{{{0}}}}, dimensions={{1}}, to_apply=sum
  ar = {shape} all-reduce(rs), replica_groups={{}}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, {at})"""
    module = parse_module(loop(body))
    for level, opcode in enumerate(("reduce-scatter", "all-reduce")):
        context = PassContext()
        options: dict[str, Any] = {
            "level_to_operate_on": level,
            "should_process": (opcode,),
            "last_run": level == 1,
        }
        assert create_pass("collective-pipeliner", options).run(module, context)
        assert [remark.reason for remark in context.remarks] == [
            f"pipelined forward, level {level}: a trip later in %w"
        ]
        assert context.statistics == {"pipelined forward": 1} | (
            {"marks removed": 5} if level else {}
        )
