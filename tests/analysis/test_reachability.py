"""What must run before what: answers, and that they follow changes."""

from __future__ import annotations

import random

import pytest

from hloopt.analysis import reachability
from hloopt.analysis.reachability import Reachability, shortest_path
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.ordering import depends_on
from hloopt.text import parse_module

DIAMOND = """ENTRY e {
  p = f32[] parameter(0)
  abs = f32[] abs(p)
  neg = f32[] negate(abs)
  late = f32[] sine(p), control-predecessors={abs}
  ROOT sum = f32[] add(neg, late)
}
"""


def entry_of(text: str) -> tuple[Computation, dict[str, Instruction]]:
    entry = parse_module(text).entry
    return entry, {instruction.name: instruction for instruction in entry.instructions}


def random_graph(chance: random.Random, count: int) -> list[Instruction]:
    """Instructions of a new computation, in an order that is valid."""
    lines = ["i0 = f32[] parameter(0)"]
    for number in range(1, count):
        before = chance.choices(range(number), k=2)
        line = f"i{number} = f32[] add(i{before[0]}, i{before[1]})"
        if number % 2:
            line += f", control-predecessors={{i{chance.randrange(number)}}}"
        lines.append(line)
    return list(entry_of("ENTRY e {\n" + "\n".join(lines) + "\n}\n")[0].instructions)


def assert_right(found: Reachability, instructions: list[Instruction]) -> None:
    for a in instructions:
        for b in instructions:
            assert found.reachable(a, b) == depends_on(b, a), (a, b)
            assert found.connected(a, b) == (depends_on(b, a) or depends_on(a, b))


def test_control_predecessors_of_the_target_count_where_it_has_no_operands() -> None:
    entry, named = entry_of("""ENTRY e {
  a = f32[] parameter(0)
  b = f32[] constant(1), control-predecessors={a}
  ROOT c = f32[] add(a, b)
}
""")
    found = Reachability(entry)
    assert found.reachable(named["a"], named["b"])
    assert not found.reachable(named["b"], named["a"])
    assert found.connected(named["b"], named["a"])


def test_an_instruction_is_found_as_itself() -> None:
    entry, named = entry_of(DIAMOND)
    found = Reachability(entry)
    assert all(found.reachable(instruction, instruction) for instruction in named.values())
    with pytest.raises(KeyError):
        found.reachable(named["p"], entry_of(DIAMOND)[1]["p"])


@pytest.mark.parametrize("block", [1, 3, 16, 4096])
@pytest.mark.parametrize("seed", range(5))
def test_answers_are_those_of_a_search(
    seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachability, "_BLOCK", block)
    instructions = random_graph(random.Random(seed), 25)
    assert_right(Reachability(instructions[0].parent), instructions)


@pytest.mark.parametrize("seed", range(60))
def test_answers_follow_changes_of_edges(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(reachability, "_BLOCK", chance.choice((1, 4, 4096)))
    instructions = random_graph(chance, 14)
    found = Reachability(instructions[0].parent)
    for _ in range(25):
        if chance.random() < 0.5:  # some blocks are there before the change, others are not
            found.reachable(chance.choice(instructions), chance.choice(instructions))
        changed = [change_an_edge(chance, instructions) for _ in range(chance.choice((1, 1, 4)))]
        found.update(changed)
    assert_right(found, instructions)


def change_an_edge(chance: random.Random, instructions: list[Instruction]) -> Instruction:
    """Change one operand or control edge at random, without a cycle; the instruction it ends at."""
    while True:
        a, b = chance.sample(instructions, 2)
        if a in b.control_predecessors and chance.random() < 0.5:
            b.remove_control_predecessor(a)
            return b
        if depends_on(a, b):
            continue
        if b.operands and chance.random() < 0.5:
            b.replace_operand(chance.randrange(len(b.operands)), a)
        else:
            b.add_control_predecessor(a)
        return b


def test_an_edge_can_be_turned_round_at_once() -> None:
    entry, named = entry_of(DIAMOND)
    found = Reachability(entry)
    assert found.reachable(named["abs"], named["late"])
    named["late"].remove_control_predecessor(named["abs"])
    named["abs"].add_control_predecessor(named["late"])
    found.update([named["abs"], named["late"]])
    assert_right(found, list(named.values()))


def test_answers_stay_until_they_are_told_of_a_change() -> None:
    entry, named = entry_of(DIAMOND)
    found = Reachability(entry)
    named["late"].add_control_predecessor(named["neg"])
    assert not found.reachable(named["neg"], named["late"])
    found.update([named["late"]])
    assert found.reachable(named["neg"], named["late"])


def test_a_replacement_takes_the_place_of_what_it_replaces() -> None:
    entry, named = entry_of(DIAMOND)
    found = Reachability(entry)
    found.reachable(named["p"], named["neg"])
    fused = entry.add(Opcode.COSINE, named["neg"].shape, [named["p"]], name="fused")
    named["neg"].replace_all_uses_with(fused)
    found.replace(named["neg"], fused)
    assert fused in found
    assert named["neg"] not in found
    for before in ("p", "abs"):  # the old edges, until the new ones are told
        assert found.reachable(named[before], fused)
    assert found.reachable(fused, named["sum"])
    found.update([fused])
    assert not found.reachable(named["abs"], fused)
    assert found.reachable(named["p"], fused)


def test_replacing_an_instruction_by_itself_changes_nothing() -> None:
    entry, named = entry_of(DIAMOND)
    found = Reachability(entry)
    found.replace(named["neg"], named["neg"])
    assert_right(found, list(named.values()))


def test_a_cycle_is_an_error() -> None:
    entry, named = entry_of(DIAMOND)
    found = Reachability(entry)
    named["abs"].add_control_predecessor(named["sum"])
    with pytest.raises(HloVerifyError, match="depends on itself"):
        found.update([named["abs"]])
    with pytest.raises(HloVerifyError, match="depends on itself"):
        Reachability(entry)


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        ("p", "sum", ["p", "late", "sum"]),
        ("abs", "late", ["abs", "late"]),
        ("neg", "neg", ["neg"]),
        ("sum", "p", None),
        ("neg", "late", None),
    ],
)
def test_a_shortest_path_says_why(a: str, b: str, path: list[str] | None) -> None:
    _, named = entry_of(DIAMOND)
    expected = None if path is None else [named[name] for name in path]
    assert shortest_path(named[a], named[b]) == expected


def chain(count: int) -> Computation:
    steps = "\n".join(f"  n{i} = f32[] negate({f'n{i - 1}' if i else 'p'})" for i in range(count))
    return parse_module(f"ENTRY e {{\n  p = f32[] parameter(0)\n{steps}\n}}\n").entry


def test_a_long_chain_is_no_trouble() -> None:
    entry = chain(100_000)
    order = list(entry.instructions)
    found = Reachability(entry)
    questions = range(0, len(order) - 1, 1000)
    assert all(found.reachable(order[i], order[-1]) for i in questions)
    assert not any(found.reachable(order[-1], order[i]) for i in questions)
    path = shortest_path(order[0], order[-1])
    assert path == order
    order[50_000].set_operands([order[0]])  # every answer across the gap changes
    found.update([order[50_000]])
    assert not found.reachable(order[1], order[50_000])
    assert found.reachable(order[0], order[-1])
    assert found.reachable(order[1], order[49_999])


def test_sets_are_shared_where_paths_do_not_meet() -> None:
    entry = chain(3 * reachability._BLOCK)
    found = Reachability(entry)
    order = list(entry.instructions)
    found.reachable(order[0], order[-1])
    (sets,) = found._blocks.values()
    assert len({id(bits) for bits in sets}) == reachability._BLOCK
