"""Paths between members of scheduling groups, and between groups."""

from __future__ import annotations

from random import Random

import pytest

from hloopt.ir import Computation, Instruction
from hloopt.passes.scheduling.scheduling_gaps import Paths
from hloopt.text import parse_module


def random_computation(seed: int, size: int = 12) -> Computation:
    """Instructions with operands and control dependencies among them."""
    rng = Random(seed)
    lines = ["v0 = f32[] parameter(0)"]
    for n in range(1, size):
        a, b = f"v{rng.randrange(n)}", f"v{rng.randrange(n)}"
        call = rng.choice((f"negate({a})", f"add({a}, {b})", "constant(1)"))
        control = f", control-predecessors={{{b}}}" if rng.random() < 0.2 else ""
        lines.append(f"v{n} = f32[] {call}{control}")
    lines.append(f"ROOT r = (f32[], f32[]) tuple(v{size - 1}, v{size - 2})")
    return parse_module("\n".join(["HloModule m", "ENTRY e {", *lines, "}"])).entry


def after(computation: Computation) -> dict[Instruction, set[Instruction]]:
    """All that comes after each instruction, by operands and control dependencies."""
    found: dict[Instruction, set[Instruction]] = {}
    for instruction in computation.instructions:
        found[instruction] = set()
        for reached in found.values():
            before = {*instruction.operands, *instruction.control_predecessors}
            if before & reached:
                reached.add(instruction)
        for before_it in (*instruction.operands, *instruction.control_predecessors):
            found[before_it].add(instruction)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_between_members_is_what_one_leads_to_and_what_leads_to_one(seed: int) -> None:
    computation = random_computation(seed)
    reached = after(computation)
    order = list(computation.instructions)
    members = Random(seed).sample(order, 3)
    expected = [
        i
        for i in order
        if i not in members
        and any(i in reached[member] for member in members)
        and not reached[i].isdisjoint(members)
    ]
    assert list(Paths(computation).between(members)) == expected


@pytest.mark.parametrize("seed", range(40))
def test_mutual_groups_each_have_members_before_members_of_the_other(seed: int) -> None:
    computation, rng = random_computation(seed), Random(seed)
    reached = after(computation)
    groups = {i: rng.randrange(3) for i in computation.instructions if rng.random() < 0.5}

    def precedes(a: int, b: int) -> bool:
        return any(
            later in reached[earlier]
            for earlier, group in groups.items()
            if group == a
            for later, other in groups.items()
            if other == b
        )

    expected = {(a, b) for a in range(3) for b in range(3) if a != b}
    expected = {(a, b) for a, b in expected if precedes(a, b) and precedes(b, a)}
    found = Paths(computation).mutual_groups(groups)
    assert (found in expected) if expected else found is None


BARRIER = """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  a = f32[] negate(p)
  b = f32[] negate(q)
  t = (f32[], f32[]) tuple(a, b)
  o = (f32[], f32[]) opt-barrier(t)
  x = f32[] get-tuple-element(t), index=0
  y = f32[] get-tuple-element(t), index=1
  z = f32[] get-tuple-element(o), index=0
  u = (f32[]) tuple(x)
  v = f32[] get-tuple-element(u), index=0
  w = f32[] opt-barrier(v)
  ROOT r = (f32[], f32[], f32[]) tuple(y, z, w)
}"""


@pytest.mark.parametrize(
    ("name", "plain", "skipping"),
    [
        ("a", "t", "x"),  # out of the tuple comes what was put in, and nothing of the barrier
        ("b", "t", "y"),
        ("t", "o x y", "x y"),
        ("x", "u", "u"),  # a tuple with one user that is no barrier counts as any other
        ("v", "w", ""),
        ("o", "z", "z"),
    ],
)
def test_successors_with_and_without_barriers(name: str, plain: str, skipping: str) -> None:
    computation = parse_module(BARRIER).entry
    by_name = {i.name: i for i in computation.instructions}
    for skips, expected in ((False, plain), (True, skipping)):
        found = Paths(computation, skip_opt_barriers=skips).successors(by_name[name])
        assert [i.name for i in found] == expected.split()


def test_a_tuple_for_a_barrier_alone_is_taken_apart() -> None:
    text = BARRIER.replace("get-tuple-element(t)", "get-tuple-element(o)")
    computation = parse_module(text).entry
    by_name = {i.name: i for i in computation.instructions}
    assert Paths(computation, skip_opt_barriers=True).successors(by_name["a"]) == []


def test_control_dependencies_are_successors_beside_users() -> None:
    text = BARRIER.replace("negate(q)", "negate(q), control-predecessors={a}")
    computation = parse_module(text).entry
    by_name = {i.name: i for i in computation.instructions}
    found = Paths(computation).successors(by_name["a"])
    assert [i.name for i in found] == ["t", "b"]
