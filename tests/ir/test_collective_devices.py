"""The devices that meet in collectives, and how many."""

from __future__ import annotations

import pytest
from tests.interpreter.several_devices import entry

from hloopt.ir import Instruction, Module
from hloopt.ir.devices.collective_devices import device_groups, group_sizes
from hloopt.ir.devices.collective_mode import named_groups
from hloopt.ir.devices.grid import Grid
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

_SUM = "f32[8] all-reduce(p), to_apply=sum"
_GLOBAL = f"{_SUM}, channel_id=1, use_global_device_ids=true"


def collective(line: str) -> tuple[Module, Instruction]:
    module = parse_module(entry("p = f32[8] parameter(0)", f"ROOT r = {line}"))
    return module, module.entry.root


@pytest.mark.parametrize(
    ("line", "sizes"),
    [
        (_SUM, {2}),
        (f"{_SUM}, replica_groups={{{{0}},{{1}}}}", {1}),
        (f"{_SUM}, replica_groups={{{{0}},{{1}}}}, channel_id=1", {3}),
        (f"{_SUM}, channel_id=1", {6}),
        (f"{_GLOBAL}, replica_groups=[2,3]<=[6]", {3}),
        (f"{_GLOBAL}, replica_groups={{{{0,1,2,3}},{{4,5}}}}", {2, 4}),
        ("f32[8] collective-permute(p), source_target_pairs={{0,1}}, channel_id=1", {2}),
        ("f32[8] collective-permute(p), source_target_pairs={{0,1},{1,2}}, channel_id=1", {3}),
        ("f32[8] collective-permute(p), source_target_pairs={}", set()),
    ],
)
def test_sizes_are_those_of_the_groups(line: str, sizes: set[int]) -> None:
    _, instruction = collective(line)
    grid = Grid(2, 3)
    assert group_sizes(instruction, grid) == sizes
    assert set(map(len, device_groups(instruction, grid))) == sizes


_MANY = f"{_GLOBAL}, replica_groups=[1,1000000000]<=[1000000000]"


def test_a_formula_may_stand_for_any_number_of_devices() -> None:
    _, instruction = collective(_MANY)
    assert group_sizes(instruction, Grid(1, 10**9)) == {10**9}
    assert named_groups(instruction) == ()


@pytest.mark.parametrize(
    "name",
    [
        *("all-reduce-simplifier", "all-reduce-folder", "all-reduce-splitter"),
        *("reduce-scatter-creator", "collective-permute-decomposer"),
        "while-loop-all-reduce-code-motion",
    ],
)
def test_passes_leave_programs_for_very_many_devices_alone(name: str) -> None:
    groups = "channel_id=1, use_global_device_ids=true, replica_groups=[1,1000000000]<=[1000000000]"
    module = parse_module(f"""HloModule m
        add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
        body {{
          p = (s32[], f32[4], pred[4]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          sum = f32[4] get-tuple-element(p), index=1
          keep = pred[4] get-tuple-element(p), index=2
          inner = f32[4] all-reduce(sum), {groups}, to_apply=add
          outer = f32[4] all-reduce(inner), {groups}, to_apply=add
          all = f32[4] all-reduce(outer), {groups}, to_apply=add
          zero = f32[] constant(0)
          zeros = f32[4] broadcast(zero), dimensions={{}}
          kept = f32[4] select(keep, all, zeros)
          permuted = f32[4] collective-permute(kept), channel_id=2, source_target_pairs={{{{0,1}}}}
          added = f32[4] add(sum, permuted)
          ROOT t = (s32[], f32[4], pred[4]) tuple(i, added, keep)
        }}
        condition {{
          p = (s32[], f32[4], pred[4]) parameter(0)
          ROOT c = pred[] constant(false)
        }}
        ENTRY e {{
          s = (s32[], f32[4], pred[4]) parameter(0)
          ROOT w = (s32[], f32[4], pred[4]) while(s), condition=condition, body=body
        }}""")
    assert not create_pass(name, {}).run(module, PassContext())
