"""Sums that leave a loop, and what keeps those in it that differ in one thing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked
from tests.passes.collectives.test_while_loop_all_reduce_code_motion import GROUPS, NAME, loop

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.text import parse_module

R = "r = f32[4] all-reduce(x), GROUPS, to_apply=sum\n"
ZEROS = "z = f32[] constant(0) o = f32[4] broadcast(z), dimensions={}\n"
EARLY = "e = pred[] compare(i, one), direction=LT f = pred[4] broadcast(e), dimensions={}\n"
OWN = (
    "id = u32[] partition-id() k = s32[] convert(id) e = pred[] compare(k, one), direction=LT "
    "f = pred[4] broadcast(e), dimensions={}\n"
)


def left(body: str, shape: str = "f32[4]", **options: Any) -> Module:
    """The module after its collectives have left the loop."""
    module = run_checked(NAME, loop(body, shape=shape), **options)
    moved = [i for i in module.instructions() if i.opcode in REDUCING]
    assert {i.parent.name for i in moved} == {"e"}
    return module


def stays(
    body: str, shape: str = "f32[4]", *replaced: tuple[str, str], **options: Any
) -> list[str]:
    """The reasons why nothing leaves the loop."""
    text = loop(body, shape=shape)
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new, 1)
    return reasons_to_stay(NAME, text, **options)


REDUCING = (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER)


@pytest.mark.parametrize(
    ("way", "shape"),
    [
        ("n = f32[4] add(r, s)", "f32[4]"),
        ("v = bf16[4] convert(r) w = f32[4] convert(v) n = f32[4] add(s, w)", "f32[4]"),
        ("v = f32[2,2] reshape(r) n = f32[2,2] add(s, v)", "f32[2,2]"),
        ("v = f32[2,2] bitcast(r) n = f32[2,2] add(s, v)", "f32[2,2]"),
        ("v = f32[1,4] reshape(r) w = f32[4,1] transpose(v), dimensions={1,0} "
         "n = f32[4,1] add(s, w)", "f32[4,1]"),
        ("v = f32[3,4] broadcast(r), dimensions={1} n = f32[3,4] add(s, v)", "f32[3,4]"),
        ("v = f32[2] slice(r), slice={[1:3]} n = f32[2] add(s, v)", "f32[2]"),
        (EARLY + ZEROS + "v = f32[4] select(f, r, o) n = f32[4] add(s, v)", "f32[4]"),
        (EARLY + ZEROS + "v = f32[4] select(f, o, r) n = f32[4] add(s, v)", "f32[4]"),
        ("v = f32[2,2] reshape(s) w = f32[2,2] reshape(r) a = f32[2,2] add(v, w) "
         "n = f32[4] reshape(a)", "f32[4]"),
        ("v = f32[2,2] bitcast(s) w = f32[2,2] reshape(r) a = f32[2,2] add(v, w) "
         "n = f32[4] bitcast(a)", "f32[4]"),
        ("v = f32[4] convert(s) a = f32[4] add(v, r) n = bf16[4] convert(a)", "bf16[4]"),
        ("h = f32[1] slice(x), slice={[0:1]} g = f32[] reshape(h) "
         "q = f32[] all-reduce(g), GROUPS, to_apply=sum m = f64[] convert(q) "
         "b = f64[4] broadcast(m), dimensions={} c = f32[4] convert(b) "
         "v = f32[4] multiply(c, r) n = f32[4] add(s, v) ", "f32[4]"),
    ],
)  # fmt: skip
def test_sums_that_leave(way: str, shape: str) -> None:
    text = loop(R + way, shape=shape)
    reference = Reference(parse_module(text), RunSettings())
    module = run_checked(NAME, text)
    assert not any(i.name == "r" for i in module.computations["body"].instructions)
    (total,) = [i for i in module.entry.instructions if i.opcode is Opcode.ALL_REDUCE]
    (before, after) = ([total.operands[0]], list(total.users))
    if shape.startswith("bf16"):  # the state, which is summed in the type of the collective
        assert [i.opcode for i in (*before, *after)] == [Opcode.CONVERT] * 2
        before, after = list(before[0].operands), list(after[0].users)
    assert [i.opcode for i in (*before, *after)] == [Opcode.GET_TUPLE_ELEMENT, Opcode.ADD]
    assert after[0].operands[0].name == "s0"
    assert reference.compare(module) is None


@pytest.mark.parametrize(
    ("way", "shape", "reason"),
    [
        ("v = s32[4] bitcast-convert(r) n = s32[4] add(s, v)", "s32[4]",
         "%v uses it (bitcast-convert)"),
        ("v = s32[4] bitcast(r) n = s32[4] add(s, v)", "s32[4]", "%v uses it (bitcast)"),
        ("v = s32[4] convert(r) n = s32[4] add(s, v)", "s32[4]", "%v uses it (convert)"),
        (EARLY + "v = f32[4] select(f, r, r) n = f32[4] add(s, v)", "f32[4]",
         "%v chooses between it and something else than zero"),
        (EARLY + "z = f32[] constant(1) o = f32[4] broadcast(z), dimensions={} "
         "v = f32[4] select(f, r, o) n = f32[4] add(s, v)", "f32[4]",
         "%v chooses between it and something else than zero"),
        (EARLY + "o = f32[4] constant({0, 0, 0, 0}) v = f32[4] select(f, r, o) "
         "n = f32[4] add(s, v)", "f32[4]", "%v chooses between it and something else than zero"),
        (OWN + ZEROS + "v = f32[4] select(f, o, r) n = f32[4] add(s, v)", "f32[4]",
         "%f may choose differently on each device"),
        ("z = f32[] constant(2) b = f32[4] broadcast(z), dimensions={} "
         "v = f32[4] multiply(r, b) n = f32[4] add(s, v)", "f32[4]",
         "%v multiplies it by what is not a scalar all-reduce"),
        ("v = f32[4] multiply(r, r) n = f32[4] add(s, v)", "f32[4]",
         "%v multiplies it by what is not a scalar all-reduce"),
        ("m = f32[4] add(s, r) n = f32[4] add(m, r)", "f32[4]",
         "%n adds it to %m, which is not a state"),
        ("m = f32[4] add(s, r) l = f32[4] negate(m) n = f32[4] copy(m)", "f32[4]",
         "%m has several users"),
        ("n = f32[4] add(s, r) b = f32[4] negate(n)", "f32[4]", "%n has several users"),
        ("v = s32[4] convert(s) w = f32[4] convert(v) n = f32[4] add(w, r)", "f32[4]",
         "%w converts the state to f32"),
        ("u = f32[2,2] reshape(s) v = f32[2,2] reshape(r) a = f32[2,2] add(u, v) "
         "n = f32[4] reshape(a) look = f32[2,2] negate(u)", "f32[4]",
         "%look reads element 2 of the state, too"),
        ("again = f32[4] get-tuple-element(p), index=2 n = f32[4] add(s, r) "
         "look = f32[4] negate(again)", "f32[4]", "%look reads element 2 of the state, too"),
        ("n = f32[4] add(s, r) m = f32[4] subtract(s, r)", "f32[4]", "%m uses it (subtract)"),
    ],
)  # fmt: skip
def test_sums_that_stay(way: str, shape: str, reason: str) -> None:
    assert stays(R + way, shape) == [reason]


SLICED = (
    "zero = s32[] constant(0) row = f32[1,4] reshape(r) "
    "old = f32[1,4] dynamic-slice(s, i, zero), dynamic_slice_sizes={1,4} "
    "v = f32[1,4] add(row, old) n = f32[3,4] dynamic-update-slice(s, v, i, zero)"
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ((), None),
        ((("dynamic-slice(s, i, zero)", "dynamic-slice(s, zero, zero)"),),
         "%n does not update what %old took"),
        ((("dynamic-update-slice(s, v, i,", "dynamic-update-slice(again, v, i,"),
          ("zero =", "again = f32[3,4] get-tuple-element(p), index=2 zero =")), None),
        ((("dynamic-update-slice(s, v, i,", "dynamic-update-slice(b, v, i,"),
          ("zero =", "b = f32[3,4] broadcast(x), dimensions={1} zero =")),
         "%n does not update what %old took"),
        ((("n = f32[3,4] dynamic-update-slice(s, v, i, zero)",
           "w = f32[4] reshape(v) n = f32[3,4] broadcast(w), dimensions={1}"),),
         "%n uses the sum %v"),
        ((("n = f32[3,4]", "m = f32[3,4]"), ("v, i, zero)", "v, i, zero) "
          "n = f32[3,4] dynamic-update-slice(s, m, zero, zero)")),
         "the sum is not put back where it was taken from the state"),
    ],
)  # fmt: skip
def test_sums_in_a_slice_of_the_state(
    changes: tuple[tuple[str, str], ...], reason: str | None
) -> None:
    body = R + SLICED
    for old, new in changes:
        assert old in body
        body = body.replace(old, new)
    if reason is None:
        left(body, "f32[3,4]")
    else:
        assert stays(body, "f32[3,4]") == [reason]


@pytest.mark.parametrize(("outer", "inner"), [("s8", "s32"), ("s32", "s8"), ("u8", "s16")])
def test_integers_that_a_trip_widens_are_summed(outer: str, inner: str) -> None:
    """Narrowed ones lose what is above."""
    text = loop(
        f"y = {inner}[4] convert(x) r = {inner}[4] all-reduce(y), GROUPS, to_apply=whole "
        f"v = {inner}[4] convert(s) m = {inner}[4] add(v, r) n = {outer}[4] convert(m)",
        shape=f"{outer}[4]",
    ).replace("sum {", f"whole {{ a = {inner}[] parameter(0) b = {inner}[] parameter(1) "
              f"ROOT c = {inner}[] add(a, b) }}\n    sum {{", 1)  # fmt: skip
    if (outer, inner) == ("s32", "s8"):
        assert reasons_to_stay(NAME, text) == ["%v converts the state to s8"]
    else:
        reference = Reference(parse_module(text), RunSettings())
        assert reference.compare(run_checked(NAME, text)) is None


def test_an_element_is_summed_that_two_collectives_reach() -> None:
    """A result that two elements sum up is reduced twice."""
    text = loop(R + "n = f32[4] add(s, r)").replace(
        "(s32[], f32[4], f32[4])", "(s32[], f32[4], f32[4], f32[4])"
    )
    text = text.replace("tuple(next, x, n)", "tuple(next, x, n, m)")
    text = text.replace(
        "n = f32[4] add(s, r)",
        "n = f32[4] add(s, r) v = f32[4] get-tuple-element(p), index=3 m = f32[4] add(v, r)",
    )
    text = text.replace("tuple(zero, x0, s0)", "tuple(zero, x0, s0, x0)")
    module = run_checked(NAME, text)
    reduced = [i for i in module.entry.instructions if i.opcode is Opcode.ALL_REDUCE]
    assert [i.attributes["channel_id"] for i in reduced] == ["2", "3"]
    assert sorted(i.operands[0].tuple_index for i in reduced) == [2, 3]


SCATTER = "r = f32[2] reduce-scatter(x), GROUPS, dimensions={0}, to_apply=sum\n"


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("n = f32[2] add(s, r)", None),
        ("z = f32[] constant(0) o = f32[2] broadcast(z), dimensions={} "
         "e = pred[] compare(i, one), direction=LT f = pred[2] broadcast(e), dimensions={} "
         "v = f32[2] select(f, r, o) n = f32[2] add(v, s)", None),
        ("v = f32[2] slice(r), slice={[0:2]} n = f32[2] add(s, v)", "%v uses it (slice)"),
        ("v = f32[2] broadcast(r), dimensions={0} n = f32[2] add(s, v)", "%v uses it (broadcast)"),
        ("v = f32[2] convert(r) n = f32[2] add(s, v)", "%v uses it (convert)"),
        ("v = f32[2] reshape(r) n = f32[2] add(s, v)", "%v uses it (reshape)"),
        ("v = f32[2] multiply(r, s) n = f32[2] add(s, v)", "%v uses it (multiply)"),
        ("v = f32[2] add(s, r) n = f32[2] reshape(v)",
         "what %v adds a reduce-scatter to is not the state as it is"),
        ("v = f32[2] reshape(s) n = f32[2] add(v, r)",
         "what %n adds a reduce-scatter to is not the state as it is"),
    ],
)  # fmt: skip
def test_reduce_scatters_that_a_loop_sums(way: str, reason: str | None) -> None:
    if reason is None:
        module = left(SCATTER + way, "f32[2]", enable_reduce_scatter=True)
        (loop_,) = module.instructions(Opcode.WHILE)
        assert [element.dimensions for element in loop_.shape.elements] == [(), (4,), (4,)]
    else:
        assert stays(SCATTER + way, "f32[2]", enable_reduce_scatter=True) == [reason]
    assert reasons_to_stay(NAME, loop(SCATTER + way, shape="f32[2]")) == []


def test_what_a_loop_starts_from_is_read_where_something_else_reads_it_too() -> None:
    text = loop(R + "n = f32[4] add(s, r)")
    text = text.replace("ROOT r = ((", "look = (s32[], f32[4], f32[4]) copy(start)\nROOT r = ((")
    module = run_checked(NAME, text)
    (while_,) = module.instructions(Opcode.WHILE)
    start = next(i for i in module.entry.instructions if i.name == "start")
    assert while_.operands[0] is not start
    assert [i.name for i in start.operands] == ["zero", "x0", "s0"]
    assert while_.operands[0].operands[:2] == start.operands[:2]


def test_a_sum_that_starts_from_an_element_of_no_tuple() -> None:
    text = loop(R + "n = f32[4] add(s, r)")
    start = "start = (s32[], f32[4], f32[4]) tuple(zero, x0, s0)"
    held = "given = (s32[], f32[4], f32[4]) tuple(zero, x0, s0)\n"
    held += "start = (s32[], f32[4], f32[4]) opt-barrier(given)"
    module = run_checked(NAME, text.replace(start, held))
    (while_,) = module.instructions(Opcode.WHILE)
    first: Instruction = while_.operands[0]
    assert [i.opcode.value for i in first.operands] == [
        "get-tuple-element",
        "get-tuple-element",
        "constant",
    ]


def test_no_other_read_of_the_state_is_overlooked() -> None:
    """Not even one that comes before the one that is summed up."""
    read = "s = f32[4] get-tuple-element(p), index=2"
    body = R + "n = f32[4] add(s, r) look = f32[4] negate(again)"
    found = stays(body, "f32[4]", (read, f"again = {read[4:]}\n{read}"))
    assert found == ["%look reads element 2 of the state, too"]


def test_the_sum_over_replicas_gets_no_channel() -> None:
    """With one it would be over partitions, too."""
    text = loop(R + "n = f32[4] add(s, r)").replace(f", {GROUPS % 1}", ", replica_groups={{0,1}}")
    text = text.replace("num_partitions=2", "replica_count=2")
    (reduced,) = run_checked(NAME, text).instructions(Opcode.ALL_REDUCE)
    assert reduced.parent.is_entry
    assert "channel_id" not in reduced.attributes


def test_setup_passes_run_where_they_are_asked_for() -> None:
    body = f"""v = bf16[4] constant({{1, 2, 3, 4}})
    r = bf16[4] all-reduce(v), {GROUPS % 1}, to_apply=half
    w = f32[4] convert(r)
    n = f32[4] add(w, s)
    m = f32[4] negate(s)"""
    half = "half { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(a, b) }\n"
    text = loop(body).replace("    sum {", half + "    sum {", 1)
    assert reasons_to_stay(NAME, text) == ["%m reads element 2 of the state, too"]
    module = run_checked(NAME, text, run_setup_passes=True)
    (reduced,) = module.instructions(Opcode.ALL_REDUCE)
    assert reduced.shape.type_name == "f32"
