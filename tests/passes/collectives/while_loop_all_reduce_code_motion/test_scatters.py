"""Scatters into a sum that one device of each group keeps, with the all-reduce behind them."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked
from tests.passes.collectives.test_while_loop_all_reduce_code_motion import NAME, loop

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.text import parse_module

SCATTER = (
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=sum"
)
KEEPER = (
    "id = u32[] partition-id() c = u32[] constant(0) f = pred[] compare(id, c), direction=EQ "
    "m = pred[4] broadcast(f), dimensions={} z = f32[] constant(0) "
    "o = f32[4] broadcast(z), dimensions={} at = s32[4,1] constant({{0},{1},{2},{2}})\n"
)
BODY = (
    KEEPER + "own = f32[4] select(m, s, o)\n"
    f"v = f32[4] scatter(own, at, x), {SCATTER}\n"
    "n = f32[4] all-reduce(v), GROUPS, to_apply=sum"
)
SAME = "s0 = f32[4] parameter(1), sharding={replicated}"


def text_of(*changes: tuple[str, str]) -> str:
    """The loop with changes; it starts from what all devices have."""
    text = loop(BODY).replace("s0 = f32[4] parameter(1)", SAME)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [("select(m, s, o)", "select(m, o, s)")],  # the other device keeps it
        [("direction=EQ", "direction=NE")],
        [("z = f32[] constant(0)", "z = f32[] constant(-0)")],
        [(f"v = f32[4] scatter(own, at, x), {SCATTER}\n",
          f"u = f32[4] scatter(own, at, x), {SCATTER}\nv = f64[4] convert(u)\n"),
         ("n = f32[4] all-reduce(v)", "n = f32[4] convert(l) "),
         ("convert(l) , replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, "
          "to_apply=sum", "convert(l)"),
         ("n = f32[4] convert(l)",
          "l = f64[4] all-reduce(v), replica_groups={{0,1}}, channel_id=1, "
          "use_global_device_ids=true, to_apply=wide n = f32[4] convert(l)"),
         ("    sum {", "    wide { a = f64[] parameter(0) b = f64[] parameter(1) "
          "ROOT c = f64[] add(a, b) }\n    sum {")],
    ],
)  # fmt: skip
def test_what_one_device_keeps_is_summed_by_all(changes: list[tuple[str, str]]) -> None:
    """Then each scatters into a sum of its own, which starts as zeros."""
    text = text_of(*changes)
    reference = Reference(parse_module(text), RunSettings())
    module = run_checked(NAME, text)
    (reduced,) = module.instructions(Opcode.ALL_REDUCE)
    assert reduced.parent.is_entry
    (scatter,) = module.instructions(Opcode.SCATTER)
    assert scatter.operands[0].name == "s"
    (total,) = [i for i in module.entry.instructions if i.opcode is Opcode.ADD]
    assert total.operands[0].name == "s0"
    assert reference.compare(module) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([(SAME, "s0 = f32[4] parameter(1)")], "%s0, which %w0 starts from, may differ"),
        ([("c = u32[] constant(0)", "c = u32[] constant(2)")],
         "0 devices of a group scatter into %s"),
        ([("c = u32[] constant(0)", "c = u32[] constant(2)"), ("direction=EQ", "direction=NE")],
         "2 devices of a group scatter into %s"),
        ([("select(m, s, o)", "select(m, s, s)")], "%t uses it (tuple)"),
        ([("z = f32[] constant(0)", "z = f32[] constant(1)")], "%t uses it (tuple)"),
        ([("scatter(own,", "scatter(s,"), ("own = f32[4] select(m, s, o)", "")],
         "all devices scatter into %s, which they all have"),
        ([("own = f32[4] select(m, s, o)", "own = f32[4] select(m, s, o) k = f32[4] negate(own)")],
         "not only %v reads element 2 of the state"),
        ([("own = f32[4] select(m, s, o)", "own = f32[4] select(m, s, o) k = f32[4] negate(s)")],
         "not only %v reads element 2 of the state"),
        ([("      ROOT t =", "      k = f32[4] negate(v)\n      ROOT t =")],
         "not only %v reads element 2 of the state"),
        ([("      ROOT t =", "      k = f32[4] negate(n)\n      ROOT t =")],
         "%n has several users"),
        ([("tuple(next, x, n)", "tuple(next, n, n)")], "%n is 2 elements of the next state"),
        ([("ROOT less", "seen = f32[4] get-tuple-element(q), index=2\nROOT less")],
         "the condition of %w0 reads element 2"),
    ],
)  # fmt: skip
def test_scatters_that_stay(changes: list[tuple[str, str]], reason: str) -> None:
    assert reasons_to_stay(NAME, text_of(*changes)) == [reason]
