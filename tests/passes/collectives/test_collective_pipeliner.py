"""Corners of collective-pipeliner: what it must not move, and what it keeps of what it moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.properties.consistency import assert_consistent

from conformance_lib.options import pass_options
from hloopt.diagnostics import HloError
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.frontend_attributes import set_frontend_attributes
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

LOOP = """HloModule m{header}

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

body {{
  p = {state} parameter(0)
  i = {counter}[] get-tuple-element(p), index=0
  x = f32[4,8] get-tuple-element(p), index=1
  y = f32[4,8] get-tuple-element(p), index=2
  zero = {counter}[] constant(0)
  part = f32[1,8] dynamic-slice(y, i, zero), dynamic_slice_sizes={{1,8}}
{body}
  step = {counter}[] constant({step})
  j = {counter}[] add(i, step)
  ROOT next = {state} tuple(j, {ends})
}}

condition {{
  q = {state} parameter(0)
  k = {counter}[] get-tuple-element(q), index=0
  n = {counter}[] constant({limit})
  ROOT less = pred[] compare(k, n), direction={direction}
}}

ENTRY main {{
  x0 = f32[4,8] parameter(0)
  y0 = f32[4,8] parameter(1)
  start = {counter}[] constant({start})
  init = {state} tuple(start, x0, y0)
{entry}
}}
"""
STORED = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""
ONE_LOOP = """  w = {state} while(init), condition=condition, body=body
  ROOT r = f32[4,8] get-tuple-element(w), index=1"""


def loop(
    body: str = STORED,
    *,
    ends: str = "stored, y",
    counter: str = "s32",
    start: int = 0,
    step: int = 1,
    limit: int = 4,
    direction: str = "LT",
    entry: str = ONE_LOOP,
    header: str = "",
) -> str:
    state = f"({counter}[], f32[4,8], f32[4,8])"
    return LOOP.format(
        header=header,
        state=state,
        counter=counter,
        body=body,
        ends=ends,
        start=start,
        step=step,
        limit=limit,
        direction=direction,
        entry=entry.format(state=state),
    )


def pipelined(text: str, *, changes: bool = True, **options: Any) -> tuple[Module, list[str]]:
    """The module after the pass, which computes the same, and the remarks on it."""
    module, context = parse_module(text), PassContext("collective-pipeliner")
    assert verify_module(module) == []
    reference = Reference(parse_module(text), RunSettings())
    assert create_pass("collective-pipeliner", options).run(module, context) == changes
    assert verify_module(module) == []
    assert_consistent(module)
    assert reference.compare(module) is None
    return module, [f"{r.kind} %{r.instruction}: {r.reason}" for r in context.remarks]


def the_loops(module: Module) -> list[Instruction]:
    return list(module.instructions(Opcode.WHILE))


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
@pytest.mark.parametrize(
    ("start", "step", "limit", "compared"),
    [(0, 1, 3, "LE"), (3, -1, 0, "GE"), (3, -1, -1, "GT"), (0, 1, 4, "NE"), (0, 1, 4, "LT")],
)
def test_each_way_to_count_to_four(
    direction: str, start: int, step: int, limit: int, compared: str
) -> None:
    text = loop(start=start, step=step, limit=limit, direction=compared)
    module, remarks = pipelined(
        text, pipelining_direction=direction, should_process=("all-reduce",)
    )
    assert [remark.split(":")[0] for remark in remarks] == ["applied %ar"]
    [pipelined_loop] = the_loops(module)
    assert len(pipelined_loop.shape.elements) > 3


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_a_loop_that_is_the_root_results_in_what_it_did(direction: str) -> None:
    """Not in what it carries besides: XLA's own pass changes the result here."""
    text = loop(entry="  ROOT w = {state} while(init), condition=condition, body=body")
    module, _ = pipelined(text, pipelining_direction=direction, should_process=("all-reduce",))
    assert len(module.entry.root.shape.elements) == 3


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
def test_what_reads_the_whole_state_stays(direction: str) -> None:
    """The state would have to hold itself."""
    body = """  element = f32[4,8] get-tuple-element(p), index=2
  row = f32[1,8] slice(element), slice={[0:1], [0:8]}
  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)"""
    options: dict[str, Any] = {"should_process": ("get-tuple-element",)}
    _, remarks = pipelined(loop(body), changes=False, pipelining_direction=direction, **options)
    [remark] = [remark for remark in remarks if "%element" in remark]
    assert "it reads the whole state of the loop" in remark


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_counters_at_the_end_of_their_type(direction: str) -> None:
    text = loop(counter="u8", start=252, limit=255)
    options: dict[str, Any] = {"pipelining_direction": direction, "should_process": ("all-reduce",)}
    assert pipelined(text, **options)[1] == [
        "applied %ar: pipelined forward, level 0: a trip later in %w"
        if direction == "forward"
        else "applied %ar: pipelined backward: a trip earlier in %w"
    ]
    endless = parse_module(loop(counter="u8", start=252, limit=255, step=2))
    context = PassContext()
    assert not create_pass("collective-pipeliner").run(endless, context)
    assert [remark.reason for remark in context.remarks] == [
        "not pipelined: the trip count of %w is not proved: its counter does not reach the limit "
        "without overflow"
    ]


def test_a_stated_trip_count_is_not_believed() -> None:
    entry = ONE_LOOP.replace(
        "body=body", 'body=body, backend_config={{"known_trip_count":{{"n":"4"}}}}'
    )
    entry = entry.replace("while(init)", "while(other)")
    entry = "  s = s32[] parameter(2)\n  other = {state} tuple(s, x0, y0)\n" + entry
    _, remarks = pipelined(loop(entry=entry), changes=False)
    assert remarks == [
        "missed %ar: not pipelined: the trip count of %w is not proved: the initial value of its "
        "counter, element 0, is not constant; known_trip_count is not believed"
    ]


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_a_condition_with_a_side_effect_runs_as_often_as_before(direction: str) -> None:
    told = "t = token[] after-all()\n  told = token[] outfeed(k, t), outfeed_shape=s32[]"
    text = loop().replace("n = s32[] constant", f"{told}\n  n = s32[] constant")
    _, remarks = pipelined(
        text, changes=False, pipelining_direction=direction, should_process=("all-reduce",)
    )
    assert remarks == [
        "missed %ar: not pipelined: its loop %w has a condition with a side effect, %told"
    ]


def test_a_side_effect_behind_what_others_read_is_not_run_twice() -> None:
    body = """  told = f32[1,8] custom-call(part), custom_call_target="t", {effect}
  both = (f32[1,8], f32[1,8]) tuple(told, part)
  first = f32[1,8] get-tuple-element(both), index=0
  other = f32[1,8] get-tuple-element(both), index=1
  ar = f32[1,8] all-reduce(first), replica_groups={}, to_apply=sum
  sum.1 = f32[1,8] add(ar, other)
  stored = f32[4,8] dynamic-update-slice(x, sum.1, i, zero)"""
    text = loop(body.replace("{effect}", "custom_call_has_side_effect=true"))
    backward: dict[str, Any] = {
        "pipelining_direction": "backward",
        "should_process": ["all-reduce"],
    }
    _, remarks = pipelined(text, changes=False, **backward)
    assert remarks == ["missed %ar: not pipelined: %both reads %told too, which has a side effect"]
    pipelined(loop(body.replace(", {effect}", "")), **backward)


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
def test_an_index_from_a_call_with_a_side_effect_is_not_computed_twice(direction: str) -> None:
    called = """\ntell {
  k = s32[] parameter(0)
  ROOT told = s32[] custom-call(k), custom_call_target="t", custom_call_has_side_effect=true
}"""
    text = loop(
        """  at = s32[] call(zero), to_apply=tell
  y.row = f32[8] reshape(part)
  wide = f32[2,8] broadcast(y.row), dimensions={1}
  ar = f32[2,8] all-reduce(wide), replica_groups={}, to_apply=sum
  row = f32[1,8] dynamic-slice(ar, at, zero), dynamic_slice_sizes={1,8}
  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)"""
    ).replace("\nbody {", f"{called}\n\nbody {{")
    _, remarks = pipelined(
        text, changes=False, pipelining_direction=direction, should_process=["all-reduce"]
    )
    assert remarks == [
        "missed %ar: not pipelined: %row, between it and its store, has an index from %at, which "
        "has a side effect"
    ]


@pytest.mark.parametrize("opcode", ["parameter", "tuple"])
@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_the_whole_state_is_not_moved(direction: str, opcode: str) -> None:
    pipelined(loop(), changes=False, pipelining_direction=direction, should_process=[opcode])


def test_what_the_loop_says_of_its_trips_goes_and_its_metadata_stays() -> None:
    config = 'metadata={{op_name="scan"}}, backend_config={{"known_trip_count":{{"n":"4"}}}}'
    module, _ = pipelined(loop(entry=ONE_LOOP.replace("body=body", f"body=body, {config}")))
    [pipelined_loop] = the_loops(module)
    assert dict(pipelined_loop.attributes) == {"metadata": '{op_name="scan"}'}


def test_two_loops_with_one_body_get_bodies_of_their_own() -> None:
    entry = """  w = {state} while(init), condition=condition, body=body
  x1 = f32[4,8] get-tuple-element(w), index=1
  again = {state} tuple(start, x1, x0)
  v = {state} while(again), condition=condition, body=body
  ROOT r = f32[4,8] get-tuple-element(v), index=1"""
    module, remarks = pipelined(loop(entry=entry))
    first, second = the_loops(module)
    assert not set(first.called) & set(second.called)
    assert len(remarks) == 2


def test_a_buffer_that_becomes_another_element_stays() -> None:
    _, remarks = pipelined(loop(ends="y, stored"), changes=False)
    assert remarks == [
        "missed %ar: not pipelined: %stored writes into element 1 of the state, but becomes "
        "element 2"
    ]


READ_AGAIN = """
  other = f32[4,8] get-tuple-element(p), index=1
  held = f32[4,8] opt-barrier(x)
  seen = f32[4,8] add({read}, y)"""


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
@pytest.mark.parametrize(
    ("read", "into", "reason"),
    [
        ("x", "x", "%held reads buffer %x of %stored, too"),
        ("held", "x", "%held reads buffer %x of %stored, too"),
        ("x", "held", "%seen reads buffer %x of %stored, too"),
        ("held", "held", "%seen reads buffer %held of %stored, too"),
        ("other", "held", "%other reads the buffer of %stored, too"),
    ],
)
def test_a_buffer_that_a_trip_reads_stays(
    direction: str, read: str, into: str, reason: str
) -> None:
    """The trip would not see what the trip before stored."""
    body = STORED.replace("(x, ar", f"({into}, ar") + READ_AGAIN.format(read=read)
    lines = body.split("\n")
    text = loop("\n".join([*lines[2:], *lines[:2]]), ends="stored, seen")
    _, remarks = pipelined(text, changes=False, pipelining_direction=direction)
    assert remarks == [f"missed %ar: not pipelined: {reason}"]


def test_a_new_buffer_whose_last_value_a_trip_reads_stays() -> None:
    body = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  none = f32[] constant(2)
  new = f32[4,8] broadcast(none), dimensions={}
  stored = f32[4,8] dynamic-update-slice(new, ar, i, zero), frontend_attributes={always_sink="1"}
  seen = f32[4,8] add(x, y)"""
    _, remarks = pipelined(loop(body, ends="stored, seen"), changes=False)
    assert remarks == ["missed %ar: not pipelined: %x reads in the loop what %stored stores"]


def test_what_is_stored_in_new_buffers_waits_for_the_last_trip() -> None:
    body = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  none = f32[] constant(2)
  new = f32[4,8] broadcast(none), dimensions={}
  stored = f32[4,8] dynamic-update-slice(new, ar, i, zero), frontend_attributes={always_sink="1"}"""
    module, _ = pipelined(loop(body), reuse_pipelined_op_buffer=True)
    [ar] = module.instructions(Opcode.ALL_REDUCE)
    assert ar.parent.is_entry
    options: dict[str, Any] = {"pipelining_direction": "forward-sink"}
    _, remarks = pipelined(loop(body), changes=False, **options)
    assert remarks == ["missed %ar: not pipelined: %new, the buffer, is new in every trip"]


def test_stores_of_later_rounds_that_overlap_stay() -> None:
    """Indices outside of the buffer are all moved to its last row."""
    body = f"""  neg = f32[1,8] negate(part)
{STORED.replace("(part)", "(neg)")}"""
    text = loop(body, start=3, limit=9)
    module = parse_module(text)
    reference = Reference(parse_module(text), RunSettings())
    first = create_pass("collective-pipeliner", {"last_run": False})
    assert first.run(module, PassContext())
    assert reference.compare(module) is None
    context = PassContext()
    options: dict[str, Any] = {
        "level_to_operate_on": 1,
        "reuse_pipelined_op_buffer": True,
        "last_run": False,
    }
    assert not create_pass("collective-pipeliner", options).run(module, context)
    assert "may overlap" in context.remarks[0].reason
    last = create_pass("collective-pipeliner", {"level_to_operate_on": 1})
    assert last.run(module, PassContext())  # removes the marks
    assert not list(module.instructions(Opcode.CUSTOM_CALL))
    assert reference.compare(module) is None


def test_a_second_round_moves_what_the_first_one_moved() -> None:
    body = """  ag = f32[2,8] all-gather(part), replica_groups={{0,1}}, dimensions={0}
  half = f32[1,8] slice(ag), slice={[1:2], [0:8]}
  ar = f32[1,8] all-reduce(half), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""
    text = loop(body, header=", replica_count=2")
    module = parse_module(text)
    reference = Reference(parse_module(text), RunSettings())
    for level, opcode in enumerate(("all-gather", "all-reduce")):
        context = PassContext()
        options: dict[str, Any] = {
            "level_to_operate_on": level,
            "should_process": (opcode,),
            "last_run": level == 1,
        }
        assert create_pass("collective-pipeliner", options).run(module, context)
        assert [remark.kind for remark in context.remarks] == ["applied"]
        assert reference.compare(module) is None


def test_nothing_runs_after_the_loop_for_a_result_that_nobody_reads() -> None:
    text = loop(
        STORED.replace("to_apply=sum", "to_apply=sum, channel_id=7"),
        entry=ONE_LOOP.replace("index=1", "index=2"),
    )
    module, _ = pipelined(text)
    [ar] = module.instructions(Opcode.ALL_REDUCE)
    assert not ar.parent.is_entry


@pytest.mark.parametrize("direction", ["forward", "backward", "forward-sink"])
def test_a_loop_that_is_the_root_gives_what_it_gave(direction: str) -> None:
    text = loop(entry="  ROOT w = {state} while(init), condition=condition, body=body")
    module, _ = pipelined(text, pipelining_direction=direction, should_process=["all-reduce"])
    assert module.entry.root.opcode is Opcode.TUPLE


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level_to_operate_on": -1}, "'level_to_operate_on' takes no negative number"),
        ({"max_pipelining_per_loop": -3}, "'max_pipelining_per_loop' takes no negative number"),
        (
            {"should_process": "move-to-host", "pipelining_direction": "backward"},
            "move-to-host is pipelined forward, not backward",
        ),
        (
            {"should_process": "move-to-device"},
            "move-to-device is pipelined backward, not forward: set pipelining_direction=backward",
        ),
    ],
)
def test_options_that_could_move_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HloError, match=said):
        create_pass("collective-pipeliner", options)


@pytest.mark.parametrize("reuses", [True, False])
def test_the_new_stores_come_after_and_before_what_the_old_ones_did(reuses: bool) -> None:
    body = """  before = f32[1,8] negate(part)
  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero), control-predecessors={before}
  after = f32[1,8] abs(part), control-predecessors={stored}"""
    entry = """  begun = f32[4,8] negate(x0)
  w = {state} while(init), condition=condition, body=body
  x1 = f32[4,8] get-tuple-element(w), index=1, control-predecessors={{begun}}
  ended = f32[4,8] abs(x0), control-predecessors={{x1}}
  ROOT r = (f32[4,8], f32[4,8]) tuple(x1, ended)"""
    module, _ = pipelined(loop(body, entry=entry), reuse_pipelined_op_buffer=reuses)
    [pipelined_loop] = the_loops(module)
    around = {"body": ("before", "after"), "main": ("begun", "ended")}
    for computation in (pipelined_loop.called[0], module.entry):
        before, after = around[computation.name]
        last = [i for i in computation.instructions if i.opcode is Opcode.DYNAMIC_UPDATE_SLICE][-1]
        assert [i.name for i in last.control_predecessors] == [before]
        assert [i.name for i in last.control_successors] == [after]


def test_channels() -> None:
    text = loop(STORED.replace("to_apply=sum", "to_apply=sum, channel_id=7"))
    for unique, expected in ((False, ["7", "7"]), (True, ["8", "9"])):
        module, _ = pipelined(text, unique_channel_id=unique)
        found = [i.attributes["channel_id"] for i in module.instructions(Opcode.ALL_REDUCE)]
        assert sorted(found) == expected


@pytest.mark.parametrize("direction", ["forward", "forward-sink"])
def test_dead_collectives_stay_behind_where_xla_leaves_them(direction: str) -> None:
    text = loop(STORED.replace("to_apply=sum", "to_apply=sum, channel_id=7"))
    for removes, dead in ((True, 0), (False, 1)):
        module, _ = pipelined(
            text,
            pipelining_direction=direction,
            remove_cross_partition_collective_ops=removes,
        )
        found = [i for i in module.instructions(Opcode.ALL_REDUCE) if not i.users]
        assert len(found) == dead
        assert all(i.name == "ar" and i.parent.name == "body" for i in found)


def test_a_pipelined_loop_comes_last_as_a_new_one_does() -> None:
    """Where XLA makes a new loop, so that passes behind it meet all in the same order."""
    entry = """  w = {state} while(init), condition=condition, body=body
  other = f32[4,8] negate(x0)
  x1 = f32[4,8] get-tuple-element(w), index=1
  ROOT r = f32[4,8] add(x1, other)"""
    module, _ = pipelined(loop(entry=entry))
    assert [*module.computations] == ["sum", "main", "body", "condition"]
    place = [i.name for i in module.entry.instructions].index
    assert place("w") > place("tuple") > place("other")


def test_names_are_kept_or_new() -> None:
    kept, _ = pipelined(loop())
    assert {i.name for i in kept.instructions()} >= {"w", "p", "x", "next"}
    new, _ = pipelined(loop(), keep_names=False)
    names = {i.name for i in new.instructions()}
    assert names >= {"while", "q", "init"}
    assert not names & {"w", "p", "x", "next"}
    assert_consistent(new)


def test_a_limit_of_moves_per_loop() -> None:
    body = """  ar = f32[4,8] all-reduce(y), replica_groups={}, to_apply=sum
  br = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  wide = f32[4,8] dynamic-update-slice(ar, br, i, zero)
  stored = f32[4,8] add(x, wide)"""
    options: dict[str, Any] = {
        "pipelining_direction": "backward",
        "should_process": ("all-reduce",),
    }
    _, remarks = pipelined(loop(body), max_pipelining_per_loop=0, **options)
    assert sorted(remark.split(":")[0] for remark in remarks) == ["applied %ar", "missed %br"]
    _, remarks = pipelined(loop(body), **options)
    assert len([remark for remark in remarks if remark.startswith("applied")]) == 2


def test_hooks_see_what_was_moved() -> None:
    seen: list[str] = []
    options: dict[str, Any] = {
        "pipelining_direction": "backward",
        "should_process": lambda i: i.opcode is Opcode.ALL_REDUCE,
        "postprocess_backward_peeled_op": lambda i: set_frontend_attributes(i, {"at": "first"}),
        "postprocess_backward_rotated_op": lambda i: set_frontend_attributes(i, {"at": "next"}),
        "postprocess_backward_peeled_trailing_op": lambda i, w: seen.append(w.name),
        "postprocess_pipelined_ops": lambda i: seen.append(i.opcode.value),
        "postprocess_transformed_while_loop": lambda w: seen.append(f"loop {w.name}"),
    }
    module, _ = pipelined(loop(), **options)
    found = {i.parent.name: i.attributes for i in module.instructions(Opcode.ALL_REDUCE)}
    assert found["main"]["frontend_attributes"] == '{at="first"}'
    assert found["body"]["frontend_attributes"] == '{at="next"}'
    assert (seen[0], seen[-1], seen.count("all-reduce")) == ("w", "loop w", 2)


def test_a_schedule_is_kept_in_order() -> None:
    module, _ = pipelined(loop(header=", is_scheduled=true"))
    for computation in module.computations.values():
        done: set[Instruction] = set()
        for instruction in computation.instructions:
            assert done.issuperset(instruction.operands)
            done.add(instruction)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("call(part), to_apply=all", "which %cr calls: inline that first"),
        (
            "fusion(part), kind=kLoop, calls=all",
            "which the fusion %cr runs as one: run this pass before fusion",
        ),
    ],
)
def test_what_is_called_in_a_loop_is_named(call: str, reason: str) -> None:
    text = loop(
        f"""  cr = f32[1,8] {call}
  stored = f32[4,8] dynamic-update-slice(x, cr, i, zero)"""
    ).replace(
        "\nbody {",
        "\nall {\n  v = f32[1,8] parameter(0)\n"
        "  ROOT ar = f32[1,8] all-reduce(v), replica_groups={}, to_apply=sum\n}\n\nbody {",
    )
    _, remarks = pipelined(text, changes=False)
    assert remarks == [f"missed %ar: not pipelined: it is in %all, {reason}"]


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        (STORED.replace("to_apply=sum", "to_apply=sum, control-predecessors={part}"), {},
         "it has to run after %part, by control"),
        (STORED + "\n  after = f32[1,8] negate(part), control-predecessors={ar}", {},
         "it has to run before %after, by control"),
        (STORED.replace("to_apply=sum", "to_apply=sum, control-predecessors={part}"),
         {"pipelining_direction": "backward", "should_process": ("all-reduce",)},
         "it has to run after %part, by control: should_allow_control_dependencies would drop "
         "that"),
        (STORED, {"only_marked": True},
         "only_marked is on, and it has no frontend attribute is_pipelineable"),
        (STORED, {"pipelining_direction": "backward"},
         "should_process is for all-gather, unless it is given; pipelining_direction is backward"),
        (STORED.replace("(x, ar, i, zero)", "(x, part, i, zero)"), {}, "nothing uses it"),
        (STORED.replace("(x, ar, i, zero)", "(x, ar, i, i)"), {},
         "%stored does not store along one dimension: all indices but one have to be 0"),
    ],
)  # fmt: skip
def test_why_a_collective_stays(body: str, options: dict[str, Any], said: str) -> None:
    _, remarks = pipelined(loop(body), changes=False, **options)
    assert remarks == [f"missed %ar: not pipelined: {said}"]


def test_another_should_process_is_the_users_choice() -> None:
    assert pipelined(loop(), changes=False, should_process=("all-gather",))[1] == []


@pytest.mark.parametrize(("limit", "made"), [(1, "one trip"), (0, "no trip")])
def test_a_loop_of_less_than_two_trips_stays(limit: int, made: str) -> None:
    _, remarks = pipelined(loop(limit=limit), changes=False)
    assert remarks == [f"missed %ar: not pipelined: its loop %w makes {made}, two are needed"]


def test_what_is_asynchronous_already_stays() -> None:
    body = STORED.replace("ar = f32[1,8] all-reduce(", "start = f32[1,8] all-reduce-start(")
    body = body.replace("to_apply=sum", "to_apply=sum\n  ar = f32[1,8] all-reduce-done(start)")
    _, remarks = pipelined(loop(body), changes=False)
    assert remarks == [
        "missed %start: not pipelined: it is asynchronous already: run this pass before "
        "async-collective-creator"
    ]


def test_what_is_in_a_branch_of_a_loop_is_named() -> None:
    text = loop(
        """  flag = pred[] constant(true)
  cr = f32[1,8] conditional(flag, part, part), true_computation=all, false_computation=none
  stored = f32[4,8] dynamic-update-slice(x, cr, i, zero)"""
    ).replace(
        "\nbody {",
        "\nall {\n  v = f32[1,8] parameter(0)\n"
        "  ROOT ar = f32[1,8] all-reduce(v), replica_groups={}, to_apply=sum\n}\n\n"
        "none {\n  ROOT v = f32[1,8] parameter(0)\n}\n\nbody {",
    )
    _, remarks = pipelined(text, changes=False)
    assert remarks == [
        "missed %ar: not pipelined: it is in %all, a branch of the conditional %cr, which not "
        "every trip takes"
    ]


def test_only_what_is_marked() -> None:
    text = loop(
        STORED.replace("to_apply=sum", 'to_apply=sum, frontend_attributes={is_pipelineable="{}"}')
    )
    pipelined(text.replace('"{}"', '"true"'), only_marked=True)
    pipelined(text.replace('"{}"', '"false"'), only_marked=True, changes=False)


def test_an_inner_counter_is_projected() -> None:
    """What needs the counter after an inner loop does not wait for that loop."""
    text = """HloModule m

inner_body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  three = s32[] constant(3)
  j = s32[] add(i, three)
  y = f32[8] add(x, x)
  ROOT r = (s32[], f32[8]) tuple(j, y)
}

inner_condition {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(LIMIT)
  ROOT l = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], s32[], f32[8], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  source = f32[64] get-tuple-element(p), index=3
  part = f32[8] dynamic-slice(source, k), dynamic_slice_sizes={8}
  copied = f32[8] collective-permute(part), source_target_pairs={{0,0}}
  state = (s32[], f32[8]) tuple(k, copied)
  w = (s32[], f32[8]) while(state), condition=inner_condition, body=inner_body
  after = s32[] get-tuple-element(w), index=0
  made = f32[8] get-tuple-element(w), index=1
  new = f32[8] add(x, made)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], s32[], f32[8], f32[64]) tuple(j, after, new, source)
}

condition {
  p = (s32[], s32[], f32[8], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  k0 = s32[] constant(START)
  x0 = f32[8] parameter(0)
  s0 = f32[64] parameter(1)
  t = (s32[], s32[], f32[8], f32[64]) tuple(zero, k0, x0, s0)
  ROOT v = (s32[], s32[], f32[8], f32[64]) while(t), condition=condition, body=body
}
"""
    for start, limit in ((0, 10), (-7, 10), (20, 10), (10, 10), (-4, -1)):
        module, _ = pipelined(
            text.replace("START", str(start)).replace("LIMIT", str(limit)),
            pipelining_direction="backward",
            should_process=("collective-permute",),
        )
        [inner] = [w for w in the_loops(module) if not w.parent.is_entry]
        [permute] = [i for i in inner.parent.instructions if i.opcode is Opcode.COLLECTIVE_PERMUTE]
        waiting, before = [permute], set[Instruction]()
        while waiting:
            before.update(waiting)
            waiting = [o for i in waiting for o in i.operands if o not in before]
        assert inner not in before


@pytest.mark.slow
def test_the_modules_of_the_table_stay_the_same(shared: Path) -> None:
    """On 1, 2, 4 and 8 devices, as far as groups and shapes allow."""
    table = shared / "conformance" / "collective_pipeliner.jsonl"
    runs = 0
    for record in map(json.loads, table.read_text(encoding="utf-8").splitlines()):
        if "api" in record["options"]:
            continue
        options = pass_options(record["pass"], record["options"], record["config"])
        for counts in ((1, 1), (2, 1), (2, 2), (4, 2), (1, 8)):
            settings = RunSettings(seeds=3, counts=counts, memory=1 << 22)
            module = parse_module(record["hlo"])
            create_pass(record["pass"], options).run(module, PassContext())
            try:
                found = Reference(parse_module(record["hlo"]), settings).compare(module)
            except HloError:  # groups, shapes or a host that these devices have not, or large
                continue
            assert found is None, (record["id"], counts, found.reason)
            runs += 1
    assert runs > 200
