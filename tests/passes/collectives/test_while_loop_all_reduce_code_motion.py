"""What leaves loops, and what has to stay because it would compute something else."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

NAME = "while-loop-all-reduce-code-motion"
GROUPS = "replica_groups={{0,1}}, channel_id=%d, use_global_device_ids=true"


def loop(body: str, *, shape: str = "f32[4]", trips: int = 3, loops: int = 1) -> str:
    """A loop over `i`, an input `x` of f32[4] and an element `s`, which becomes `n`."""
    state = f"(s32[], f32[4], {shape})"
    runs = "\n".join(
        f"w{k} = {state} while(start), condition=condition, body=body" for k in range(loops)
    )
    results = ", ".join(f"w{k}" for k in range(loops))
    return f"""HloModule m, num_partitions=2
    sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
    narrow {{ a = s8[] parameter(0) b = s8[] parameter(1) ROOT c = s8[] add(a, b) }}
    body {{
      p = {state} parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[4] get-tuple-element(p), index=1
      s = {shape} get-tuple-element(p), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      {body.replace("GROUPS", GROUPS % 1)}
      ROOT t = {state} tuple(next, x, n)
    }}
    condition {{
      q = {state} parameter(0)
      j = s32[] get-tuple-element(q), index=0
      limit = s32[] constant({trips})
      ROOT less = pred[] compare(j, limit), direction=LT
    }}
    ENTRY e {{
      x0 = f32[4] parameter(0)
      s0 = {shape} parameter(1)
      zero = s32[] constant(0)
      start = {state} tuple(zero, x0, s0)
      {runs}
      ROOT r = ({", ".join([state] * loops)}) tuple({results})
    }}
    """


def test_each_loop_with_the_body_reduces_its_own_sum() -> None:
    text = loop("r = f32[4] all-reduce(x), GROUPS, to_apply=sum\nn = f32[4] add(s, r)", loops=2)
    reference = Reference(parse_module(text), RunSettings())
    module = run_checked(NAME, text)
    reduced = list(module.entry.instructions)
    channels = [i.attributes["channel_id"] for i in reduced if i.opcode is Opcode.ALL_REDUCE]
    assert channels == ["2", "3"]
    assert reference.compare(module) is None


def test_the_sharding_of_a_result_is_not_that_of_all_results() -> None:
    body = """r = f32[4] all-reduce(x), GROUPS, to_apply=sum, sharding={devices=[2]<=[2]}
    row = f32[1,4] reshape(r)
    zero = s32[] constant(0)
    n = f32[3,4] dynamic-update-slice(s, row, i, zero)"""
    module = run_checked(NAME, loop(body, shape="f32[3,4]"))
    (reduced,) = module.instructions(Opcode.ALL_REDUCE)
    assert "sharding" not in reduced.attributes


def test_what_a_loop_that_makes_no_trip_stores_stays() -> None:
    body = """r = f32[4] all-reduce(x), GROUPS, to_apply=sum
    row = f32[1,4] reshape(r)
    zero = s32[] constant(0)
    n = f32[3,4] dynamic-update-slice(s, row, i, zero)"""
    context = PassContext()
    module = parse_module(loop(body, shape="f32[3,4]", trips=0))
    assert not create_pass(NAME).run(module, context)
    assert [remark.reason for remark in context.remarks] == ["%w0 makes no trip"]


def test_the_zeros_of_a_large_sum_take_little_text() -> None:
    text = loop(
        "z = f32[] constant(2) w = f32[4096,4096] broadcast(z), dimensions={} "
        "r = f32[4096,4096] all-reduce(w), GROUPS, to_apply=sum\nn = f32[4096,4096] add(s, r)",
        shape="f32[4096,4096]",
    )
    module = run_checked(NAME, text)
    assert [c.payload for c in module.instructions(Opcode.CONSTANT) if c.shape.rank] == ["0"]


@pytest.mark.parametrize(
    ("body", "shape", "reason"),
    [
        (
            "id = u32[] partition-id() k = s32[] convert(id) f = pred[] compare(k, one), "
            "direction=LT m = pred[4] broadcast(f), dimensions={} z = f32[] constant(0) "
            "o = f32[4] broadcast(z), dimensions={} r = f32[4] all-reduce(x), GROUPS, "
            "to_apply=sum v = f32[4] select(m, r, o) n = f32[4] add(s, v)",
            "f32[4]",
            "%m may choose differently on each device",
        ),
        (
            "y = s8[4] convert(x) r = s8[4] all-reduce(y), GROUPS, to_apply=narrow "
            "w = s32[4] convert(r) n = s32[4] add(s, w)",
            "s32[4]",
            "%w uses it (convert)",
        ),
        (
            "y = f32[2,2] reshape(x) r = f32[2,2] all-reduce(y), GROUPS, to_apply=sum "
            "v = f32[2,2] transpose(s), dimensions={1,0} n = f32[2,2] add(v, r)",
            "f32[2,2]",
            "what %n adds it to changes its place from trip to trip",
        ),
        (
            "y = f32[1] slice(x), slice={[0:1]} z = f32[1,1] reshape(y) r = f32[1,1] "
            "all-reduce(z), GROUPS, to_apply=sum n = f32[3,3] dynamic-update-slice(s, r, i, i)",
            "f32[3,3]",
            "%n stores along a diagonal",
        ),
        (
            "y = f32[1] slice(x), slice={[0:1]} r = f32[1] all-reduce(y), GROUPS, to_apply=sum "
            "n = f32[2] dynamic-update-slice(s, r, i)",
            "f32[2]",
            "index 0 of %n gets out of bounds",
        ),
        (
            "y = f32[1] slice(x), slice={[0:1]} r = f32[1] all-reduce(y), GROUPS, to_apply=sum "
            "k = f32[] constant(5) b = f32[4] broadcast(k), dimensions={} zero = s32[] constant(0) "
            "v = f32[4] dynamic-update-slice(b, r, i) n = f32[4] dynamic-update-slice(s, v, zero)",
            "f32[4]",
            "%v stores in what each trip makes anew",
        ),
        (
            "k = s32[4,1] constant({{0},{1},{2},{2}}) v = f32[4] scatter(s, k, x), "
            "update_window_dims={}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum "
            "n = f32[4] all-reduce(v), GROUPS, to_apply=sum",
            "f32[4]",
            "all devices scatter into %s, which they all have",
        ),
        (
            "r = f32[4] all-reduce(x), GROUPS, to_apply=sum h = f32[2] slice(r), slice={[0:2]} "
            "d = f32[2] dynamic-slice(s, i), dynamic_slice_sizes={2} v = f32[2] add(d, h) "
            "n = f32[4] dynamic-update-slice(s, v, one)",
            "f32[4]",
            "%n does not update what %d took",
        ),
        (
            "y = f32[2,2] reshape(x) r = f32[2,2] all-reduce(y), GROUPS, to_apply=sum "
            "v = f32[4] reshape(s) w = f32[4] reshape(r) m = f32[4] add(v, w) "
            "other = f32[4] negate(v) n = f32[2,2] reshape(m)",
            "f32[2,2]",
            "%other reads element 2 of the state, too",
        ),
        (
            "r = f32[4] all-reduce(x), GROUPS, to_apply=sum other = f32[4] negate(s) "
            "n = f32[4] add(s, r)",
            "f32[4]",
            "%other reads element 2 of the state, too",
        ),
        (
            "r = f32[4] all-reduce(x), GROUPS, to_apply=sum v = f32[3,4] slice(s), "
            "slice={[0:3], [0:4]} d = f32[1,4] dynamic-slice(v, i, one), dynamic_slice_sizes={1,4} "
            "w = f32[4] reshape(d) m = f32[4] add(w, r) u = f32[1,4] reshape(m) "
            "k = f32[3,4] broadcast(x), dimensions={1} "
            "n = f32[3,4] dynamic-update-slice(k, u, i, one)",
            "f32[3,4]",
            "%m adds it to %v, which is not a state",
        ),
    ],
)
def test_what_would_compute_something_else_stays(body: str, shape: str, reason: str) -> None:
    module = parse_module(loop(body, shape=shape))
    context = PassContext()
    assert not create_pass(NAME).run(module, context)
    assert [remark.reason for remark in context.remarks] == [reason]


def test_a_row_of_the_state_that_is_reshaped_is_summed() -> None:
    text = loop(
        "r = f32[4] all-reduce(x), GROUPS, to_apply=sum k = s32[] constant(1) "
        "zero = s32[] constant(0) "
        "d = f32[1,4] dynamic-slice(s, k, zero), dynamic_slice_sizes={1,4} "
        "w = f32[4] reshape(d) m = f32[4] add(w, r) u = f32[1,4] reshape(m) "
        "n = f32[3,4] dynamic-update-slice(s, u, k, zero)",
        shape="f32[3,4]",
    )
    module = run_checked(NAME, text)
    assert [i.parent.name for i in module.instructions(Opcode.ALL_REDUCE)] == ["e"]
    assert Reference(parse_module(text), RunSettings()).compare(module) is None


def test_a_loop_that_something_else_calls_stays() -> None:
    text = loop("r = f32[4] all-reduce(x), GROUPS, to_apply=sum\nn = f32[4] add(s, r)")
    text = text.replace(
        "ROOT r = (", "c = (s32[], f32[4], f32[4]) call(start), to_apply=body\nROOT r = ("
    )
    context = PassContext()
    assert not create_pass(NAME).run(parse_module(text), context)
    assert [r.reason for r in context.remarks] == ["%body is called by something else than loops"]


def test_nothing_changes_where_a_loop_that_scatters_starts_from_no_tuple() -> None:
    """What it starts from cannot be read without an instruction that would be left behind."""
    text = loop(
        "id = u32[] partition-id() k = u32[] constant(0) f = pred[] compare(id, k), direction=EQ "
        "m = pred[4] broadcast(f), dimensions={} z = f32[] constant(0) "
        "o = f32[4] broadcast(z), dimensions={} own = f32[4] select(m, s, o) "
        "places = s32[4,1] constant({{0},{1},{2},{2}}) v = f32[4] scatter(own, places, x), "
        "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1, to_apply=sum n = f32[4] all-reduce(v), GROUPS, to_apply=sum"
    )
    start = "start = (s32[], f32[4], f32[4]) "
    module = parse_module(text.replace(f"{start}tuple(zero, x0, s0)", f"{start}parameter(2)"))
    before, context = print_module(module), PassContext()
    assert not create_pass(NAME).run(module, context)
    assert print_module(module) == before
    assert [r.reason for r in context.remarks] == ["what %w0 starts from, %start, is not a tuple"]


SELECTED = (
    "z = f32[] constant(0) o = f32[4] broadcast(z), dimensions={} r = f32[4] all-reduce(x), "
    "GROUPS, to_apply=sum v = f32[4] select(m, r, o) n = f32[4] add(s, v)"
)
SLICED = (
    "zero = s32[] constant(0) r = f32[4] all-reduce(x), GROUPS, to_apply=sum "
    "row = f32[1,4] reshape(r) "
    "old = f32[1,4] dynamic-slice(s, k, zero), dynamic_slice_sizes={1,4} "
    "v = f32[1,4] add(row, old) n = f32[4,4] dynamic-update-slice(s, v, k, zero)"
)
PAIRS_OF_FOUR = "replica_groups={{0,1},{2,3}}, channel_id=1, use_global_device_ids=true"
OF_REPLICAS = "replica_groups={{0,1}}"


@pytest.mark.parametrize(
    ("body", "groups", "moves"),
    [
        ("id = u32[] partition-id() k = s32[] convert(id) " + SLICED, None, False),
        ("id = u32[] replica-id() k = s32[] convert(id) " + SLICED, None, False),
        ("id = u32[] replica-id() k = s32[] convert(id) " + SLICED, OF_REPLICAS, False),
        ("id = u32[] partition-id() k = s32[] convert(id) " + SLICED, OF_REPLICAS, True),
        ("id = u32[] partition-id() c = s32[] convert(id) k = s32[] add(c, i) " + SLICED,
         None, False),
        ("id = u32[] partition-id() c = s32[] convert(id) k = s32[] shift-right-logical(c, one) "
         + SLICED, PAIRS_OF_FOUR, True),
        ("id = u32[] partition-id() c = s32[] convert(id) k = s32[] and(c, one) " + SLICED,
         PAIRS_OF_FOUR, False),
        ("k = s32[] add(i, one) " + SLICED, None, True),
        ("id = u32[] partition-id() c = s32[] convert(id) f = pred[] compare(c, i), direction=LT "
         "m = pred[4] broadcast(f), dimensions={} " + SELECTED, None, False),
        ("f = pred[] compare(one, i), direction=LT m = pred[4] broadcast(f), dimensions={} "
         + SELECTED, None, True),
        ("m = pred[4] compare(x, x), direction=NE " + SELECTED, None, False),
        ("y = f32[4] collective-permute(x), source_target_pairs={{0,1}}, channel_id=7 "
         "m = pred[4] compare(y, y), direction=EQ " + SELECTED, None, False),
        ("m = pred[4] custom-call(), custom_call_target=\"mask\" " + SELECTED, None, True),
        ("h = f32[4] custom-call(x), custom_call_target=\"mask\" "
         "m = pred[4] compare(h, h), direction=EQ " + SELECTED, None, False),
    ],
)  # fmt: skip
def test_a_header_that_names_no_devices_does_not_make_them_alike(
    body: str, groups: str | None, moves: bool
) -> None:
    """XLA moves all of these: it takes the program to be for one device."""
    text = loop(body, shape="f32[4,4]" if SLICED in body else "f32[4]")
    text = text.replace(GROUPS % 1, groups or GROUPS % 1).replace(", num_partitions=2", "")
    reference = Reference(parse_module(text), RunSettings())
    module = run_checked(NAME, text, changes=moves)
    within = {i.parent.name for i in module.instructions(Opcode.ALL_REDUCE)}
    assert within == ({"e"} if moves else {"body"})
    assert reference.compare(module) is None
