"""The seconds of instructions, copies and buffers, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, cast

import pytest
from tests.memory_space.programs import named

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.memory_space.costs.costs import MemorySpaceCosts, OperandPart
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.memory_space.use_site import UseSite
from hloopt.text import parse_module

RATES = {
    "flops_per_second": 8,
    "transcendentals_per_second": 2,
    "default_mem_bandwidth_bytes_per_second": 32,
    "alternate_mem_read_bandwidth_bytes_per_second": 128,
    "alternate_mem_write_bandwidth_bytes_per_second": 64,
}
TEXT = """HloModule m, is_scheduled=true
fused { fp = f32[8] parameter(0)
  ft = (f32[4], (f32[8], f32[2])) parameter(1)
  unread = f32[4] get-tuple-element(ft), index=0
  pair = (f32[8], f32[2]) get-tuple-element(ft), index=1
  x = f32[8] get-tuple-element(pair), index=0
  y = f32[8] add(fp, x)
  z = f32[8] subtract(fp, x)
  half = f32[4] slice(z), slice={[0:4]}
  ROOT ft2 = (f32[8], f32[4]) tuple(y, half) }
cond { cp = (f32[8]) parameter(0)
  ROOT go = pred[] constant(true) }
body { bp = (f32[8]) parameter(0)
  b0 = f32[8] get-tuple-element(bp), index=0
  b1 = f32[8] negate(b0)
  ROOT bt = (f32[8]) tuple(b1) }
outer_cond { ocp = (f32[8]) parameter(0)
  ROOT ogo = pred[] constant(true) }
outer { op = (f32[8]) parameter(0)
  ROOT inner = (f32[8]) while(op), condition=cond, body=body }
by_first { ba = f32[] parameter(0)
  bb = f32[] parameter(1)
  bc = s32[] parameter(2)
  bd = s32[] parameter(3)
  ROOT less = pred[] compare(ba, bb), direction=LT }
by_none { na = f32[] parameter(0)
  nb = f32[] parameter(1)
  nc = f32[] parameter(2)
  nd = f32[] parameter(3)
  ROOT nless = pred[] compare(na, nb), direction=LT }
updating { up = f32[8] parameter(0)
  uq = f32[8] parameter(1)
  at = s32[] constant(0)
  two = f32[2] slice(uq), slice={[0:2]}
  updated = f32[8] dynamic-update-slice(up, two, at)
  ROOT upair = (f32[8], f32[8]) tuple(updated, uq) }
branch { brp = f32[8] parameter(0)
  ROOT brn = f32[8] tanh(brp) }
ENTRY e { p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  empty = f32[0] parameter(2)
  t = (f32[4], (f32[8], f32[2])) parameter(3)
  s = s32[8] parameter(4)
  add = f32[8] add(p, q)
  twice = f32[8] multiply(p, p)
  tanh = f32[8] tanh(add)
  nothing = f32[0] negate(empty)
  fusion = (f32[8], f32[4]) fusion(p, t), kind=kLoop, calls=fused
  sort = (f32[8], s32[8]) sort(p, s), dimensions={0}, to_apply=by_first
  state = (f32[8]) tuple(tanh)
  loop = (f32[8]) while(state), condition=outer_cond, body=outer
  i = pred[] constant(true)
  choice = f32[8] conditional(i, p, p), true_computation=branch, false_computation=branch
  start = (f32[8], f32[8]{0:S(1)}, u32[]) copy-start(p)
  done = f32[8]{0:S(1)} copy-done(start)
  nosort = (f32[0], f32[0]) sort(empty, empty), dimensions={0}, to_apply=by_none
  update = (f32[8], f32[8]) fusion(p, q), kind=kLoop, calls=updating
  foreign = f32[8] custom-call(p), custom_call_target="f"
  ROOT result = (f32[8], f32[8]) tuple(twice, choice) }
"""
MODULE = parse_module(TEXT)


def costs_of(options: Mapping[str, object] = {}, **more: object) -> MemorySpaceCosts:
    return MemorySpaceCosts(
        MODULE, CostOptions(**cast("dict[str, Any]", {**RATES, **options, **more}))
    )


# -- instructions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "operands", "results", "seconds"),
    [
        ("add", [], [], 3),
        ("add", [(0, ())], [], 2.25),
        ("add", [(1, ())], [], 2.25),
        ("add", [(0, ()), (1, ())], [], 1.5),
        ("add", [(0, ()), (0, ())], [], 2.25),
        ("add", [], [()], 2.5),
        ("add", [(0, ()), (1, ())], [()], 1),
        ("twice", [(0, ())], [], 2.25),
        ("nothing", [], [], 0),
        ("nothing", [(0, ())], [()], 0),
        # reads 32 of p, 32 of x, and a pointer for what nobody takes; writes 32 and 16
        ("fusion", [], [], 3.5 + 16 / 32),
        ("fusion", [(0, ())], [], 4 - 0.75),
        ("fusion", [(1, (1, 0))], [], 4 - 0.75),
        ("fusion", [(1, (1,))], [], 4 - 0.75 - 16 * (1 / 32 - 1 / 128)),
        ("fusion", [(1, (1,)), (1, (1, 0))], [], 4 - 0.75 - 16 * (1 / 32 - 1 / 128)),
        ("fusion", [(1, (0,))], [], 4),
        ("fusion", [], [(0,)], 4 - 0.5),
        ("fusion", [], [(1,)], 4 - 0.25),
        ("fusion", [], [()], 4 - 0.75),
        ("fusion", [], [(), (1,)], 4 - 0.75),
        ("sort", [], [], 4),
        ("sort", [(0, ())], [(0,)], 4 - 0.75 - 0.5),
        ("state", [(0, ())], [], 0.25),  # a pointer is written, nothing is read
        ("state", [(0, ())], [(0,)], 0.25),
        ("loop", [(0, (0,))], [(0,)], None),
        ("inner", [(0, (0,))], [(0,)], None),
        ("nosort", [(0, ())], [(0,)], 0),
        ("choice", [(1, ())], [()], None),
        ("foreign", [], [], 0),
        ("foreign", [(0, ())], [()], 0),
    ],
)
def test_memory_seconds(
    name: str,
    operands: list[OperandPart],
    results: list[tuple[int, ...]],
    seconds: float | None,
) -> None:
    costs = costs_of()
    instruction = named(MODULE, name)
    whole = costs.memory_seconds(instruction)
    found = costs.memory_seconds(instruction, operands, results)
    assert found == pytest.approx(whole if seconds is None else seconds)


def test_the_bytes_of_parts() -> None:
    costs = costs_of()
    assert costs.part_bytes(named(MODULE, "update"), [], [(0,)]) == (0, 8)  # what is updated
    assert costs.part_bytes(named(MODULE, "update"), [], [(1,)]) == (0, 32)
    assert costs.part_bytes(named(MODULE, "foreign"), [(0, ())], [()]) == (0, 0)  # not known


@pytest.mark.parametrize(
    ("name", "options", "seconds"),
    [
        ("add", {}, 1),
        ("add", {"flops_per_second": 2}, 4),
        ("add", {"flops_per_second": 0}, 0),
        ("tanh", {}, 4),
        ("tanh", {"transcendentals_per_second": 0}, 0),
        ("tanh", {"flops_min_latency_seconds": 3}, 4),
        ("add", {"flops_min_latency_seconds": 3}, 3),
        ("nothing", {"flops_min_latency_seconds": 3}, 3),
        ("nothing", {}, 0),
        ("foreign", {}, 0),
    ],
)
def test_compute_seconds(name: str, options: Mapping[str, object], seconds: float) -> None:
    assert costs_of(options).compute_seconds(named(MODULE, name)) == seconds


@pytest.mark.parametrize(
    ("window", "operands", "results", "overhead", "elapsed"),
    [
        (0, [], [], 0, 3),
        (48, [], [], 0.5, 3.5),
        (48, [(0, ())], [], 0.5, 2.75),
        (48, [(0, ()), (1, ())], [], 1 / 3, 1.5 + 1 / 3),
        (48, [(0, ()), (1, ())], [()], 0, 1),
        (1000, [], [], 1, 4),
    ],
)
def test_the_overhead_is_the_arithmetic_on_the_first_piece_of_default_memory(
    window: float,
    operands: list[OperandPart],
    results: list[tuple[int, ...]],
    overhead: float,
    elapsed: float,
) -> None:
    costs = costs_of(pipeline_overhead_window_size_in_bytes=window)
    add = named(MODULE, "add")
    assert costs.overhead_seconds(add, operands, results) == pytest.approx(overhead)
    assert costs.elapsed_seconds(add, operands, results) == pytest.approx(elapsed)


def test_an_instruction_takes_the_longer_of_arithmetic_and_traffic() -> None:
    costs = costs_of()
    assert costs.elapsed_seconds(named(MODULE, "tanh")) == 4
    assert costs.elapsed_seconds(named(MODULE, "add")) == 3

    costs = costs_of(pipeline_overhead_window_size_in_bytes=16)
    assert costs.elapsed_seconds(named(MODULE, "tanh")) == 4  # 2 to move, 1 before that begins
    assert costs.overhead_seconds(named(MODULE, "nothing")) == 0
    assert costs.overhead_seconds(named(MODULE, "foreign")) == 0


@pytest.mark.parametrize("name", ["start", "done"])
def test_starts_and_dones_are_free(name: str) -> None:
    assert costs_of(flops_min_latency_seconds=1).elapsed_seconds(named(MODULE, name)) == 0


def test_default_memory_without_a_rate_of_its_own_has_that_of_all_bytes() -> None:
    options = CostOptions(bytes_per_second=16)
    assert MemorySpaceCosts(MODULE, options).memory_seconds(named(MODULE, "add")) == 6
    assert MemorySpaceCosts(MODULE, options).memory_seconds(named(MODULE, "add"), [(0, ())]) == 4


@pytest.mark.parametrize(
    ("fixed", "operands", "results", "seconds"),
    [
        ({"per_instruction": 7}, [], [], 7),
        ({"per_instruction": 7}, [(0, ())], [], 7),
        ({"per_instruction": 7, "for_opcode": {"add": 9}}, [], [], 9),
        ({"per_instruction": 7, "for_opcode": {"negate": 9}}, [], [], 7),
        ({"per_instruction_in_alternate_memory": 2}, [], [], 3),
        ({"per_instruction_in_alternate_memory": 2}, [(0, ())], [], 2),
        ({"per_instruction_in_alternate_memory": 2, "for_opcode": {"add": 9}}, [(0, ())], [], 2),
        ({"per_instruction_in_alternate_memory": 2}, [], [()], 2),
        ({"with_operand_in_alternate_memory": 5}, [(0, ())], [()], 5),
        ({"with_operand_in_alternate_memory": 5}, [], [()], 2.5),
        ({"with_only_outputs_in_alternate_memory": 6}, [], [()], 6),
        ({"with_only_outputs_in_alternate_memory": 6}, [], [], 3),
        ({"with_only_outputs_in_alternate_memory": 6}, [(0, ())], [()], 1.75),
    ],
)
def test_fixed_seconds(
    fixed: Mapping[str, object],
    operands: list[OperandPart],
    results: list[tuple[int, ...]],
    seconds: float,
) -> None:
    costs = costs_of({f"fixed_seconds_{name}": value for name, value in fixed.items()})
    assert costs.elapsed_seconds(named(MODULE, "add"), operands, results) == seconds


# -- copies ----------------------------------------------------------------------------------------


def test_copies_have_their_part_of_the_bandwidth() -> None:
    assert costs_of().copy_seconds(64) == 2
    assert costs_of().copy_seconds(0) == 0
    assert costs_of(async_copy_bandwidth_scaling_factor=0.5).copy_seconds(64) == 4
    assert costs_of(fixed_seconds_per_copy=9).copy_seconds(64) == 9
    assert MemorySpaceCosts(MODULE, CostOptions()).copy_seconds(64) == 0


def test_what_is_called_gives_resources_to_copies_not_its_caller() -> None:
    schedule = FlatSchedule.of(MODULE)
    resources = costs_of().copy_resources(schedule)
    found = {step.name: resources[time] for time, step in enumerate(schedule.steps)}
    assert [found[name] for name in ("loop", "choice", "inner", "add", "b1")] == [0, 0, 0, 3, 2]


# -- loops and benefits ----------------------------------------------------------------------------


def test_levels_are_those_of_loops_not_of_other_calls() -> None:
    costs = costs_of()
    levels = {c.name: costs.while_level(c) for c in reversed(MODULE.computations.values())}
    assert {name: level for name, level in levels.items() if level} == {
        "outer": 1,
        "outer_cond": 1,
        "body": 2,
        "cond": 2,
    }
    assert [costs.while_multiplier(level) for level in range(3)] == [1, 5, 25]
    assert costs_of(while_execution_count=3).while_multiplier(2) == 9
    assert costs.while_multiplier(10_000) < 1e300


def test_the_benefit_counts_all_trips() -> None:
    costs = costs_of()
    negate = named(MODULE, "b1")
    assert costs.use_benefit(UseSite(negate, 0)) == 0.75 * 25
    assert costs.definition_benefit(negate, ()) == 0.5 * 25


def test_what_computes_for_longer_than_it_waits_loses() -> None:
    costs = costs_of()
    tanh = named(MODULE, "tanh")
    assert costs.use_benefit(UseSite(tanh, 0)) == costs.definition_benefit(tanh, ()) == 2 - 4
    equal = costs_of(transcendentals_per_second=4)
    assert equal.use_benefit(UseSite(tanh, 0)) == 0.75


def test_a_use_in_a_tuple_has_the_shape_and_the_benefit_of_its_part() -> None:
    use = UseSite(named(MODULE, "fusion"), 1, (1, 0))
    assert use.shape.text == "f32[8]{0}"
    assert costs_of().use_benefit(use) == 0.75


@pytest.mark.parametrize(
    ("uses", "benefit"),
    [
        ([], 0.5),
        ([("twice", 0)], 0.5 + 0.75),
        ([("twice", 0), ("twice", 1)], 0.5 + 1.5),
        ([("tanh", 0)], 0.5),
        ([("tanh", 0), ("twice", 0), ("tanh", 0)], 0.5 + 0.75),
        ([("loop", 0), ("choice", 1)], 0.5),
    ],
)
def test_the_boundedness_of_a_buffer(uses: list[tuple[str, int]], benefit: float) -> None:
    sites = [UseSite(named(MODULE, name), operand) for name, operand in uses]
    definition = named(MODULE, "add"), ()
    assert costs_of().boundedness(32, definition, sites) == pytest.approx(benefit / sqrt(32))
    plain = costs_of(is_benefit_scaled_by_size=False)
    assert plain.boundedness(32, definition, sites) == pytest.approx(benefit)


def test_losses_do_not_add_up() -> None:
    tanh = named(MODULE, "tanh")
    costs = costs_of(flops_per_second=0.5)
    assert costs.use_benefit(UseSite(named(MODULE, "twice"), 0)) == 3 - 16
    uses = [UseSite(named(MODULE, "twice"), 0), UseSite(tanh, 0)]
    assert costs.boundedness(1, (tanh, ()), uses) == 2 - 4
    assert costs.boundedness(1, (named(MODULE, "twice"), ()), uses) == 2 - 4
    loop = [UseSite(named(MODULE, "loop"), 0), UseSite(named(MODULE, "choice"), 1)]
    assert costs_of().boundedness(1, (tanh, ()), loop) == 2 - 4


def test_a_gain_outweighs_a_loss() -> None:
    uses = [UseSite(named(MODULE, "twice"), 0)]
    assert costs_of().boundedness(1, (named(MODULE, "tanh"), ()), uses) == 0.75


def test_an_empty_buffer_gains_nothing() -> None:
    nothing = named(MODULE, "nothing")
    assert costs_of().boundedness(0, (nothing, ()), [UseSite(nothing, 0)]) == 0


def test_the_gain_of_one_run() -> None:
    costs = costs_of()
    assert costs.gain(UseSite(named(MODULE, "add"), 0)) == 0.75
    assert costs.gain(UseSite(named(MODULE, "b1"), 0)) == 0.75
    assert costs.gain(UseSite(named(MODULE, "tanh"), 0)) == 0
