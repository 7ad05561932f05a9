"""The values of an iteration: their kinds, and the bytes that they save."""

from __future__ import annotations

import pytest
from tests.memory_space.loops.unrolled import costs, program, time_of, unrolled

from hloopt.ir import Module
from hloopt.memory_space.loop_optimizer.values import LoopValue, ValueKind, loop_values
from hloopt.memory_space.program import Program

STEPS = ["a{i} = add(w{i}, v)", "b{i} = multiply(a{i}, d{p})", "c{i} = add(b{i}, c{p})"]
STEPS += ["d{i} = subtract(c{i}, a{i})", "e{i} = negate(b{p})"]


def values(module: Module, first: str = "a_1", end: str = "a_2") -> dict[str, LoopValue]:
    """The values by the names of what defines them."""
    analyzed = Program.of(module)
    found = loop_values(
        analyzed, costs(module), time_of(module, first), time_of(module, end), lambda buffer: True
    )
    return {analyzed.flow.definer[value.buffer.values[0]].name: value for value in found}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a_1", ValueKind.TEMPORARY),  # read in the same iteration
        ("d_1", ValueKind.TEMPORARY),  # and, by an earlier index, in the next one
        ("c_1", ValueKind.LOOP_CARRIED),  # read when the next one is defined
        ("b_1", ValueKind.LOOP_CARRIED),  # and later
        ("e_1", ValueKind.OTHER),  # nothing reads it
        ("v", ValueKind.PINNED),
        ("w_1", ValueKind.PREFETCH),
    ],
)
def test_values_are_classified_by_how_iterations_share_them(name: str, kind: ValueKind) -> None:
    assert values(unrolled(STEPS))[name].kind is kind


def test_values_of_the_iteration_before_and_of_the_next_one_are_none_of_this_one() -> None:
    names = values(unrolled(STEPS)).keys()
    assert names == {"a_1", "b_1", "c_1", "d_1", "e_1", "v", "w_1"}


@pytest.mark.parametrize(
    ("operands", "kind"),
    [
        (("x, x", "u, x", "x, x"), ValueKind.PREFETCH),
        (("u, x", "u, x", "u, x"), ValueKind.PINNED),
        (("u, x", "u, x", "x, x"), ValueKind.OTHER),
        (("x, x", "u, x", "u, x"), ValueKind.OTHER),
        (("x, u", "u, x", "u, x"), ValueKind.OTHER),
        (("u, x", "u, x", "x, u"), ValueKind.OTHER),
    ],
)
def test_a_value_from_outside_is_read_in_all_iterations_alike_or_in_one(
    operands: tuple[str, ...], kind: ValueKind
) -> None:
    lines = []
    for number, both in enumerate(operands):
        lines += [f"{name}_{number} = negate(x)" for name in ("a", "b", "c")]
        lines.append(f"e_{number} = add({both})")
    assert values(program(lines))["u"].kind is kind


@pytest.mark.parametrize(
    ("name", "savings"),
    [
        ("a_1", 16 + 2 * 16),  # written, read twice
        ("d_1", 16 + 16),
        ("v", 16),
        ("w_1", 16 - 16),  # loaded
    ],
)
def test_savings_are_bytes_that_are_not_moved(name: str, savings: float) -> None:
    value = values(unrolled(STEPS))[name]
    assert value.savings == savings
    assert value.savings_per_byte == savings / 16


def test_a_temporary_that_is_needed_later_is_evicted() -> None:
    assert values(unrolled(STEPS, 4, ["a_1", "v"]))["a_1"].savings == 48 - 16
    assert values(unrolled(STEPS, 4, ["a_1", "v"]))["v"].savings == 16


def test_what_saves_most_per_byte_comes_first() -> None:
    found = [*values(unrolled(STEPS))]
    assert found[0] == "a_1"
    assert found.index("d_1") < found.index("v") < found.index("w_1")


def test_the_indices_are_those_within_the_iterations() -> None:
    value = values(unrolled(STEPS))["d_1"]
    assert [index for index, _ in value.positions] == [3]
    assert [index for index, _ in value.uses] == []
    assert [(index, use.user.name) for index, use in value.next_uses] == [(1, "b_2")]


def test_only_buffers_that_are_allowed_are_values() -> None:
    module = unrolled(STEPS)
    analyzed = Program.of(module)
    start, end = time_of(module, "a_1"), time_of(module, "a_2")
    assert loop_values(analyzed, costs(module), start, end, lambda buffer: False) == []
