"""Shardings that are set or dropped in programs before the partitioner."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.sharding.changes import Change, with_changes
from hloopt.text import parse_module

GSPMD = parse_module("""HloModule m, num_partitions=4
ENTRY e {
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  n = f32[8,16] negate(x)
  c = f32[8,16] custom-call(n), custom_call_target="Sharding", sharding={devices=[1,4]<=[4]}
  s = f32[8,16] sine(c)
  ROOT t = (f32[8,16], f32[8,16]) tuple(c, s)
}
""")
SHARDY = parse_module("""HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes=\
{mesh = #sdy.mesh<["dp"=2, "tp"=2]>}}
ENTRY e {
  x = f32[8,16] parameter(0), sharding={devices=[2,2]<=[4]},
    frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"dp\\"}, {\\"tp\\"}]>"}
  n = f32[8,16] negate(x)
  ROOT r = f32[8,16] custom-call(n), custom_call_target="xla.sdy.FuncResultSharding",
    frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>"}
}
""")
ALONE = parse_module("HloModule m\nENTRY e { ROOT p = f32[8] parameter(0) }\n")


def shardy(module: Module, name: str) -> str | None:
    return frontend_attribute(module[name], "xla.sdy.sharding")


def test_a_sharding_is_set_on_a_copy() -> None:
    found, changes = with_changes(GSPMD, ["%n={devices=[2,2]<=[4]}"], [])
    assert found["n"].attributes["sharding"] == "{devices=[2,2]<=[4]}"
    assert "sharding" not in GSPMD["n"].attributes
    assert changes == [Change("n", "", "{devices=[2,2]<=[4]}")]


def test_a_constraint_that_is_dropped_gives_way_to_its_operand() -> None:
    found, changes = with_changes(GSPMD, [], ["%c"])
    assert list(found["s"].operands) == [found["n"]]
    assert list(found["t"].operands) == [found["n"], found["s"]]
    assert [i.name for i in found.entry.instructions] == ["x", "n", "s", "t"]
    assert changes == [Change("c", "{devices=[1,4]<=[4]}", "")]


def test_what_is_no_constraint_loses_its_sharding() -> None:
    found, _ = with_changes(GSPMD, [], ["%x"])
    assert "sharding" not in found["x"].attributes
    found, changes = with_changes(SHARDY, [], ["%x"])
    assert (shardy(found, "x"), found["x"].attributes.get("sharding")) == (None, None)
    assert changes == [Change("x", "[{dp}, {tp}]", "")]


def test_a_constraint_of_the_result_is_dropped() -> None:
    found, _ = with_changes(SHARDY, [], ["target=xla.sdy.FuncResultSharding"])
    assert found.entry.root is found["n"]


@pytest.mark.parametrize("text", ["[{}, {dp, tp}]", "{devices=[1,4]<=[4]}"])
def test_shardy_is_given_axes(text: str) -> None:
    found, _ = with_changes(SHARDY, [f"%x={text}"], [])
    assert shardy(found, "x") == '#sdy.sharding<@mesh, [{}, {"dp", "tp"}]>'
    assert "sharding" not in found["x"].attributes
    found, _ = with_changes(SHARDY, [f"n={text}"], [])
    assert shardy(found, "n") == '#sdy.sharding_per_value<[<@mesh, [{}, {"dp", "tp"}]>]>'


@pytest.mark.parametrize(
    ("module", "settings", "dropped", "message"),
    [
        (ALONE, ["%p={replicated}"], [], "num_partitions=1: nothing is partitioned"),
        (GSPMD, ["%n"], [], "'%n' sets no sharding"),
        (GSPMD, ["%n=replicated"], [], "'%n=replicated' sets no sharding"),
        (GSPMD, ["%y={replicated}"], [], "no instruction 'y' in module m"),
        (GSPMD, ["%n=[{dp}, {}]"], [], "names axes, and m names no mesh"),
        (GSPMD, ["%n={devices=[4]<=[4]}"], [], "%n cannot have this sharding"),
        (GSPMD, ["%n={nonsense}"], [], "%n cannot have this sharding"),
        (GSPMD, ["%t={{replicated}}"], [], "%t"),
        (GSPMD, ["%n={replicated}", "%n={replicated}"], [], "%n is changed twice"),
        (GSPMD, ["%x={replicated}"], ["%x"], "%x is changed twice"),
        (GSPMD, [], ["%n"], "'%n' has no sharding in m: there is nothing to drop"),
        (GSPMD, [], ["%y"], "'%y' selects no instruction in m"),
        (GSPMD, [], ["opcode=nonsense"], "nonsense"),
        (SHARDY, ["%n=[{dp}]"], [], "does not cut %n, of rank 2, along axes"),
        (SHARDY, ["%n=[{dp}, {dp}]"], [], "does not cut %n"),
        (SHARDY, ["%n=[{dp}, {sp}]"], [], "of the mesh dp=2,tp=2"),
        (SHARDY, ["%n=[dp]"], [], "'[dp]' is no sharding"),
        (SHARDY, ["%n={devices=[1,4]0,3,1,2}"], [], "no axes of the mesh dp=2,tp=2 cut %n"),
        (SHARDY, ["%n={manual}"], [], "no axes of the mesh"),
    ],
)
def test_mistakes_have_one_message(
    module: Module, settings: list[str], dropped: list[str], message: str
) -> None:
    with pytest.raises(HloError) as raised:
        with_changes(module, settings, dropped)
    assert message in raised.value.message


def test_shardy_takes_shardings_of_arrays() -> None:
    text = str(SHARDY["n"])
    assert text.startswith("n = f32")
    program = parse_module("""HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes=\
{mesh = #sdy.mesh<["dp"=4]>, other = #sdy.mesh<["tp"=4]>}}
ENTRY e {
  x = f32[8] parameter(0)
  ROOT t = (f32[8]) tuple(x)
}
""")
    with pytest.raises(HloError, match="%t is no array"):
        with_changes(program, ["%t=[{dp}]"], [])
    with pytest.raises(HloError, match="m has 2 meshes for all devices"):
        with_changes(program, ["%x=[{dp}]"], [])
