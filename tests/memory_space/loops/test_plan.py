"""Plans for loops, and how allocations follow them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory_space.loops.unrolled import RATES, costs, step, time_of, unrolled

from hloopt.analysis.dataflow import Use
from hloopt.ir import Module
from hloopt.memory_space.loop_optimizer.finding import UnrolledLoop
from hloopt.memory_space.loop_optimizer.optimizer import LoopOptimization, optimize_loop
from hloopt.memory_space.loop_optimizer.plan import Choice, LoopPlan, PlannedUse
from hloopt.memory_space.loop_optimizer.values import ValueKind
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.options.parts import Coloring, LoopOptimizerOptions, PickerOptions
from hloopt.memory_space.program import Program
from hloopt.pass_framework.base import PassContext
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment

ENABLED = LoopOptimizerOptions(enabled=True, desired_copy_ratio=0.7)
STEPS = ["a{i} = add(v, v)", "b{i} = multiply(a{i}, a{i})", "c{i} = subtract(b{i}, a{i})"]
STEPS += ["d{i} = divide(c{i}, w{i})"]
"""Steps with a pinned value, temporaries and a prefetch; nothing reads the last one."""


def optimized(module: Module, first: str, size: int, room: int) -> LoopOptimization:
    loop = UnrolledLoop(time_of(module, first), size, 3)
    program = Program.of(module)
    return optimize_loop(program, costs(module), loop, ENABLED, max_size=room)


def plan(module: Module, room: int = 256, **options: Any) -> LoopPlan:
    return LoopPlan.of(
        Program.of(module),
        costs(module),
        replace(ENABLED, **options),
        max_size=room,
        alignment=1,
        is_allowed=lambda buffer: True,
    )


@pytest.mark.parametrize(
    ("room", "kinds", "used", "seconds"),
    [
        pytest.param(256, "abcvw", 80, 0.375 * 3 + 0.25 + 0.5, id="everything"),
        pytest.param(16, "", 16, None, id="little"),
        pytest.param(0, "", 0, 4 * 1.5, id="nothing"),
    ],
)
def test_values_are_placed_as_far_as_there_is_room(
    room: int, kinds: str, used: int, seconds: float | None
) -> None:
    module = unrolled(STEPS)
    found = optimized(module, "a_0", 4, room)
    names = {
        use.user.operands[use.operand].name[0]
        for placement in found.placements
        if placement.allocation is not None
        for _, use in placement.uses
    }
    if kinds:
        assert names == set(kinds)
    assert found.heap.last_offset == used
    if seconds is not None:
        assert found.seconds == pytest.approx(seconds)


def test_all_iterations_repeat_the_choices() -> None:
    module = unrolled(STEPS, 4)
    uses = plan(module).uses
    for number in range(4):
        assert uses[Use(step(module, f"a_{number}"), 1, 0)] == PlannedUse(Choice.STAY)
        assert uses[Use(step(module, f"b_{number}"), 0, 0)] == PlannedUse(Choice.STAY)
        after = step(module, f"a_{number}")
        assert uses[Use(step(module, f"d_{number}"), 1, 0)] == PlannedUse(Choice.PREFETCH, after)
    assert len(uses) == 4 * 8


def test_without_room_uses_are_planned_in_default_memory() -> None:
    module = unrolled(STEPS)
    assert {each.choice for each in plan(module, 0).uses.values()} == {Choice.DEFAULT}


def test_only_the_first_use_of_a_prefetched_value_waits_for_the_copy() -> None:
    module = unrolled([*STEPS, "e{i} = add(w{i}, d{i})"])
    uses = plan(module).uses
    assert uses[Use(step(module, "d_1"), 1, 0)].choice is Choice.PREFETCH
    assert uses[Use(step(module, "e_1"), 0, 0)] == PlannedUse(Choice.STAY)


def test_a_prefetch_of_the_first_iteration_starts_in_its_computation() -> None:
    module = unrolled(["a{i} = add(w{i}, w{i})", *STEPS[1:3], "d{i} = negate(c{i})"])
    uses = plan(module).uses
    after = uses[Use(step(module, "a_1"), 0, 0)].start_after
    assert after is not None
    assert after.name.endswith("_0")
    assert uses[Use(step(module, "a_0"), 0, 0)].start_after is not None


def test_loops_have_enough_iterations() -> None:
    assert plan(unrolled(STEPS, 4), min_num_iterations=4.0).uses
    assert not plan(unrolled(STEPS, 4), min_num_iterations=5.0).uses


@pytest.mark.parametrize(
    ("opcode", "is_placed"),
    [("negate(v)", True), ('custom-call(v), custom_call_target="x"', False)],
)
def test_a_pinned_value_is_placed_if_it_saves_bytes(opcode: str, is_placed: bool) -> None:
    """Nobody knows how much a custom call reads."""
    others = [f"{name}{{i}} = {name}(x)" for name in ("abs", "tanh", "sine")]
    found = optimized(unrolled([f"a{{i}} = {opcode}", *others]), "a_0", 4, 256)
    (placement,) = (p for p in found.placements if p.uses[0][1].user.name == "a_1")
    assert placement.value.kind is ValueKind.PINNED
    assert (placement.allocation is not None) == is_placed


# -- the whole pass -------------------------------------------------------------------------------

OPTIONS = MemorySpaceOptions(
    max_size_in_bytes=256,
    cost_model=RATES,
    prefetch_interval_picker=PickerOptions(min_overlap=0, max_overlap=20),
    memory_bound_loop_optimizer_options=ENABLED,
    enable_cross_program_prefetch=False,
)


def assigned(module: Module, **options: Any) -> LoopPlan:
    one = MemorySpaceAssignment(replace(OPTIONS, **options))
    one.run(module, PassContext())
    assert one.report is not None
    return one.report.loop_plan


def space(module: Module, name: str, operand: int) -> int:
    return step(module, name).operands[operand].shape.layout.memory_space


def test_copies_start_where_they_are_planned() -> None:
    module = unrolled(STEPS, 3, ["d_0", "d_1", "d_2"])
    assigned(module)
    names = [each.name for each in module.entry.instructions]
    done = step(module, "d_1").operands[1]
    assert space(module, "d_1", 1) == 1
    assert names[names.index(done.operands[0].name) - 1] == "a_1"


@pytest.mark.parametrize("options", [{"cost_model": None}, {"loop": False}])
def test_there_is_no_plan_unless_it_is_asked_for(options: dict[str, Any]) -> None:
    if options.pop("loop", None) is False:
        options["memory_bound_loop_optimizer_options"] = LoopOptimizerOptions()
    assert not assigned(unrolled(STEPS, 3, ["d_2"]), **options).uses


def test_a_planned_stay_may_be_longer_than_the_picker_allows() -> None:
    steps = ["a{i} = add(v, v)", "b{i} = sine(v)", "c{i} = tanh(v)", "d{i} = divide(a{i}, c{i})"]
    kept, left = (unrolled(steps, 3, ["d_0", "d_1", "d_2"]) for _ in range(2))
    picker = PickerOptions(min_overlap=0, max_overlap=1)
    assigned(kept, prefetch_interval_picker=picker)
    assert step(kept, "d_1").operands[0].name == "a_1"
    assert space(kept, "d_1", 0) == 1
    not_enabled = LoopOptimizerOptions()
    assigned(left, prefetch_interval_picker=picker, memory_bound_loop_optimizer_options=not_enabled)
    assert step(left, "a_1").shape.layout.memory_space == 0


def test_a_use_planned_in_default_memory_is_not_prefetched() -> None:
    """Without idle bandwidth no prefetch pays, though there is room."""
    others = [f"{name}{{i}} = {name}(v)" for name in ("abs", "tanh", "sine")]
    results = [f"{name}_{n}" for name in ("a", "abs", "tanh", "sine") for n in range(3)]
    module = unrolled(["a{i} = add(w{i}, x{i})", *others], 3, results)
    rates = replace(RATES, alternate_mem_read_bandwidth_bytes_per_second=1e9)
    enabled = replace(ENABLED, desired_copy_ratio=1.0)
    fast = replace(rates, flops_per_second=1e9)
    uses = assigned(module, cost_model=fast, memory_bound_loop_optimizer_options=enabled).uses
    choices = [uses[Use(step(module, "a_1"), operand, 0)].choice for operand in (0, 1)]
    assert Choice.DEFAULT in choices
    for operand, choice in enumerate(choices):
        assert (space(module, "a_1", operand) == 1) == (choice is Choice.PREFETCH)


def test_a_color_counts_more_than_the_plan() -> None:
    module = unrolled(STEPS, 3, ["d_0", "d_1", "d_2"])
    assigned(module, buffer_colorings=(Coloring(use="d_1", operand=1, memory_space=0),))
    assert space(module, "d_1", 1) == 0
    assert space(module, "d_2", 1) == 1


# -- laws -----------------------------------------------------------------------------------------

READS = st.sampled_from(["v", "w{i}", "x{i}", "s0{i}", "s2{i}", "s1{p}", "s3{p}", "s5{p}"])


@given(st.lists(st.tuples(READS, READS), min_size=6, max_size=6), st.integers(0, 8))
def test_chunks_never_overlap(operands: list[tuple[str, str]], room: int) -> None:
    steps = []
    for number, reads in enumerate(operands):
        known = [r if r[0] != "s" or "p" in r or int(r[1]) < number else "v" for r in reads]
        steps.append(f"s{number}{{i}} = add({', '.join(known)})")
    found = optimized(unrolled(steps), "s0_0", 6, 16 * room)
    taken: set[tuple[int, int]] = set()
    for placement in found.placements:
        chunk = placement.allocation
        if chunk is None:
            continue
        for iteration in range(4):
            low = chunk.offsets[iteration % 2]
            assert low + chunk.size <= 16 * room
            for time in range(iteration * 6 + chunk.begin, iteration * 6 + chunk.end + 1):
                own = {(time, byte) for byte in range(low, low + chunk.size)}
                assert taken.isdisjoint(own)
                taken |= own
            indices = [index for index, _ in placement.value.uses + placement.value.positions]
            assert all(chunk.begin <= index <= chunk.end for index in indices)
    assert found.seconds <= 6 * 1.5 + 2 * 0.5 + 1e-9
