"""Finding loops that stand unrolled in a schedule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory_space.loops.unrolled import program, time_of, unrolled

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Module, Opcode
from hloopt.memory_space.loop_optimizer.finding import LONGEST, UnrolledLoop, find_loops
from hloopt.text import parse_module

STEPS = ["a{i} = add(w{i}, v)", "b{i} = multiply(a{i}, w{i})", "c{i} = negate(b{i})"]
STEPS += ["d{i} = subtract(c{i}, a{i})"]


def found(module: Module, min_iterations: float = 3) -> list[UnrolledLoop]:
    return find_loops(module, FlatSchedule.of(module), min_iterations)


def with_line(number: int, line: str, iterations: int = 4) -> Module:
    """The steps with one line instead of another."""
    lines = [s.format(i=f"_{n}") for n in range(iterations) for s in STEPS]
    lines[number] = line
    return program(lines)


def test_a_loop_has_its_first_time_its_length_and_its_iterations() -> None:
    module = unrolled(STEPS, 5)
    (loop,) = found(module)
    assert loop == UnrolledLoop(time_of(module, "a_0"), 4, 5)
    assert loop.end == time_of(module, "root")


@pytest.mark.parametrize(
    ("iterations", "wanted", "is_found"), [(2, 1, False), (3, 3, True), (3, 4, False), (4, 4, True)]
)
def test_there_are_enough_iterations(iterations: int, wanted: float, is_found: bool) -> None:
    assert bool(found(unrolled(STEPS, iterations), wanted)) == is_found


def test_an_iteration_is_neither_too_short_nor_too_long() -> None:
    assert found(unrolled(STEPS[:3])) == []
    filler = [f"f{n}{{i}} = {'tanh' if n % 2 else 'abs'}(v)" for n in range(LONGEST - 4)]
    (loop,) = found(unrolled([*STEPS, *filler]))
    assert loop.size == LONGEST
    assert found(unrolled([*STEPS, *filler, "g{i} = tanh(v)"])) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("b_1 = divide(a_1, w_1)", id="another opcode"),
        pytest.param("b_1 = multiply(a_0, w_1)", id="another distance"),
        pytest.param("b_1 = multiply(w_1, w_1)", id="from outside"),
        pytest.param('b_1 = multiply(a_1, w_1), frontend_attributes={k="v"}', id="attribute"),
    ],
)
def test_a_step_that_differs_ends_a_loop(line: str) -> None:
    module = with_line(5, line, 5)
    (loop,) = found(module)
    assert loop.start == time_of(module, "c_1")
    assert loop.iterations == 3


@pytest.mark.parametrize("line", ["b_1 = multiply(a_1, v)", "b_1 = multiply(a_1, z)"])
def test_values_from_outside_are_all_alike(line: str) -> None:
    module = with_line(5, line)
    assert found(module)[0].iterations == 4


def test_values_far_before_are_from_outside() -> None:
    before = [f"z_{n} = exponential(v)" for n in (0, 2, 1)]
    lines = [*before, *(f"f_{n} = sign(v)" for n in range(4))]
    lines += [s.replace("w{i}", "z{i}").format(i=f"_{n}") for n in range(3) for s in STEPS]
    (loop,) = found(program(lines))
    assert loop.iterations == 3


def test_a_value_that_enters_from_outside_starts_the_loop_behind_its_first_use() -> None:
    steps = ["a{i} = add(d{p}, v)", *STEPS[1:]]
    module = unrolled(steps, 4)
    assert found(module) == [UnrolledLoop(time_of(module, "b_0"), 4, 3)]


def test_only_a_few_steps_before_the_first_repeated_one_belong_to_the_loop() -> None:
    adds = [f"x{n}{{i}} = add(v, v)" for n in range(12)]
    module = unrolled([*adds, "a{i} = negate(v)", "b{i} = tanh(v)"], 4)
    assert found(module)[0].start == time_of(module, "x2_0")


def test_loops_do_not_overlap() -> None:
    lines = [s.format(i=f"_{n}") for n in range(3) for s in STEPS]
    lines += ["y = tanh(v)"]
    lines += [s.format(i=f"_{n}") for n in range(3, 6) for s in STEPS]
    first, second = found(program(lines))
    assert (first.iterations, second.iterations) == (3, 3)
    assert second.start == first.end + 1


@pytest.mark.parametrize(("opcode", "is_found"), [("tanh", True), ("abs", False)])
def test_called_computations_are_compared(opcode: str, is_found: bool) -> None:
    bodies, lines = [], ["v = f32[4] parameter(0)"]
    for number, inner in enumerate(["tanh", opcode, "tanh"]):
        bodies.append(f"f{number} {{ p = f32[4] parameter(0)\nROOT r = f32[4] {inner}(p) }}")
        lines += [f"a{number} = f32[4] fusion(v), kind=kLoop, calls=f{number}"]
        lines += [f"{name}{number} = f32[4] {name}(a{number})" for name in ("negate", "cosine")]
        lines += [f"sine{number} = f32[4] sine(a{number})"]
    lines.append("ROOT root = tuple()")
    text = ["HloModule m, is_scheduled=true", *bodies, "ENTRY e {", *lines, "}"]
    assert bool(found(parse_module("\n".join(text)))) == is_found


def test_steps_of_different_computations_are_no_loop() -> None:
    names = ("abs", "tanh", "sine", "cosine")
    chain = "p = f32[4] parameter(0)\n" + "\n".join(f"{n} = f32[4] {n}(p)" for n in names)
    bodies = [f"c{n} {{ {chain}\nROOT r = f32[4] negate(p) }}" for n in range(4)]
    calls = [f"x{n} = f32[4] call(v), to_apply=c{n}" for n in range(4)]
    text = ["HloModule m, is_scheduled=true", *bodies, "ENTRY e { v = f32[4] parameter(0)", *calls]
    assert found(parse_module("\n".join([*text, "ROOT root = tuple() }"]))) == []


OPCODES = ("add", "multiply", "subtract")


@given(st.lists(st.tuples(st.sampled_from(OPCODES), st.integers(1, 6)), max_size=40))
def test_each_loop_found_repeats_its_steps(chosen: list[tuple[str, int]]) -> None:
    lines = [
        f"x{n} = {opcode}({f'x{n - back}' if back <= n else 'v'}, v)"
        for n, (opcode, back) in enumerate(chosen)
    ]
    module = program([*lines, "z = negate(v)"])
    schedule = FlatSchedule.of(module)
    end = 0
    for loop in found(module):
        assert loop.start >= end
        assert min(loop.iterations, loop.size - 1) >= 3
        end = loop.end
        for time in range(loop.start, loop.end - loop.size):
            one, other = schedule.steps[time], schedule.steps[time + loop.size]
            assert one.opcode is other.opcode
            for first, second in zip(one.operands, other.operands, strict=True):
                distances = {time - schedule.times[first]}
                distances.add(time + loop.size - schedule.times[second])
                is_outside = all(
                    distance > loop.size or operand.opcode is Opcode.PARAMETER
                    for operand, distance in (
                        (first, time - schedule.times[first]),
                        (second, time + loop.size - schedule.times[second]),
                    )
                )
                assert len(distances) == 1 or is_outside
    assert end <= len(schedule.steps)


@given(st.permutations(("abs", "tanh", "sine", "cosine", "negate")), st.integers(3, 6))
def test_any_loop_of_steps_that_differ_is_found(opcodes: list[str], iterations: int) -> None:
    steps = [f"x{n}{{i}} = {opcode}(w{{i}})" for n, opcode in enumerate(opcodes)]
    (loop,) = found(unrolled(steps, iterations))
    assert (loop.size, loop.iterations) == (5, iterations)
