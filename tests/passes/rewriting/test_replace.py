"""Instructions that take the place of others, and what they take over."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent

from hloopt.ir import Instruction, Module
from hloopt.passes.rewriting.replace import (
    attributes_for_another_value,
    control_dependencies_can_move,
    forget_value,
    hand_value_on,
    inherit,
    replace_instruction,
    shardings_differ,
)
from hloopt.text import parse_module


def module_of(*lines: str) -> Module:
    return parse_module("\n".join(["HloModule m", "ENTRY e {", *lines, "}"]))


def named(module: Module) -> dict[str, Instruction]:
    return {i.name: i for i in module.instructions()}


ALL = 'metadata={op_name="o"}, frontend_attributes={f="1"}, sharding={replicated}, origin={{"v"}}'


def test_users_root_and_control_dependencies_follow_the_new_instruction() -> None:
    module = module_of(
        "p = f32[] parameter(0)",
        "before = f32[] sine(p)",
        "new = f32[] cosine(p)",
        "old = f32[] negate(p), control-predecessors={before, new}",
        "after = f32[] sine(p), control-predecessors={old}",
        "ROOT twice = f32[] add(old, old)",
    )
    found = named(module)
    replace_instruction(found["old"], found["new"])
    assert_consistent(module)
    assert shown(module.entry) == [
        "p = f32[] parameter(0)",
        "before = f32[] sine(p)",
        "new = f32[] cosine(p), control-predecessors={before}",
        "after = f32[] sine(p), control-predecessors={new}",
        "ROOT twice = f32[] add(new, new)",
    ]


def test_a_root_that_is_replaced_hands_its_place_on() -> None:
    module = module_of("p = f32[] parameter(0)", f"ROOT old = f32[] negate(p), {ALL}")
    found = named(module)
    replace_instruction(found["old"], found["p"])
    assert shown(module.entry) == [
        'ROOT p = f32[] parameter(0), sharding={replicated}, frontend_attributes={f="1"}, '
        'metadata={op_name="o"}'
    ]


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("", "", ""),
        ("", ALL, ALL),
        # Not the original value, which is of the old instruction's place.
        (ALL, "", ALL.partition(", origin")[0]),
        ('metadata={op_name="a"}', 'metadata={op_name="b"}', 'metadata={op_name="b"}'),
        ('metadata={op_name="a"}', 'metadata={source_file="b"}', 'metadata={op_name="a"}'),
        ('metadata={source_file="a"}', "", ""),
        ('metadata={source_file="a"}', 'metadata={source_file="b"}', 'metadata={source_file="b"}'),
        ('frontend_attributes={a="1"}', 'frontend_attributes={b="2"}',
         'frontend_attributes={b="2"}'),
        ("sharding={replicated}", "sharding={maximal device=1}", "sharding={maximal device=1}"),
        ("sharding={replicated}", 'frontend_attributes={b="2"}',
         'sharding={replicated}, frontend_attributes={b="2"}'),
    ],
)  # fmt: skip
def test_only_what_the_new_instruction_lacks_is_inherited(old: str, new: str, after: str) -> None:
    module = module_of(
        "p = f32[] parameter(0)",
        "old = f32[] negate(p)" + (f", {old}" if old else ""),
        "ROOT new = f32[] sine(p)" + (f", {new}" if new else ""),
    )
    expected = module_of("ROOT k = f32[] constant(1)" + (f", {after}" if after else ""))
    found = named(module)
    before = dict(found["old"].attributes)
    inherit(found["old"], found["new"])
    assert dict(found["new"].attributes) == dict(expected.entry.root.attributes)
    assert dict(found["old"].attributes) == before


def test_what_is_said_of_a_value_is_left_out_for_another_one() -> None:
    root = module_of(f"ROOT k = f32[] constant(1), {ALL}").entry.root
    rest = {"metadata": '{op_name="o"}', "frontend_attributes": '{f="1"}'}
    assert attributes_for_another_value(root) == rest
    assert "sharding" in root.attributes
    forget_value(root)
    assert dict(root.attributes) == rest


def test_an_instruction_without_a_described_value_has_nothing_to_forget() -> None:
    module = module_of('ROOT k = f32[] constant(1), metadata={op_name="o"}')
    forget_value(module.entry.root)
    assert module.is_pristine


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("", "", False),
        (", sharding={replicated}", "", False),
        ("", ", sharding={replicated}", False),
        (", sharding={replicated}", ", sharding={replicated}", False),
        (", sharding={replicated}", ", sharding={manual}", True),
    ],
)
def test_shardings_differ_where_both_are_there(one: str, other: str, differ: bool) -> None:
    found = named(module_of(f"a = f32[] constant(1){one}", f"ROOT b = f32[] constant(2){other}"))
    assert shardings_differ(found["a"], found["b"]) is differ


def test_a_value_that_moves_takes_along_what_is_said_of_it() -> None:
    module = module_of(
        "p = f32[] parameter(0), sharding={manual}",
        f"old = f32[] negate(p), {ALL}",
        'new = f32[] sine(old), sharding={manual}, metadata={op_name="n"}',
        "ROOT user = f32[] cosine(old)",
    )
    found = named(module)
    own = module.entry.add(found["new"].opcode, found["new"].shape, [found["p"]])
    hand_value_on(found["old"], own)
    assert dict(own.attributes) == {"sharding": "{replicated}", "origin": '{{"v"}}'}
    assert found["old"].users == {}
    assert list(own.users) == [found["new"], found["user"]]
    assert dict(found["old"].attributes) == {
        "metadata": '{op_name="o"}', "frontend_attributes": '{f="1"}'
    }  # fmt: skip
    hand_value_on(found["p"], found["user"])
    assert found["user"].attributes["sharding"] == "{manual}"
    assert "origin" not in found["user"].attributes


def waiting(chain: int) -> dict[str, Instruction]:
    """`old` waits for the last of as many instructions; `new` is beside them."""
    lines = ["step0 = f32[] parameter(0)"]
    lines += [f"step{i} = f32[] negate(step{i - 1})" for i in range(1, chain)]
    return named(
        module_of(
            *lines,
            "new = f32[] constant(1)",
            f"ROOT old = f32[] sine(new), control-predecessors={{step{chain - 1}}}",
        )
    )


def test_control_predecessors_move_unless_they_need_the_new_instruction() -> None:
    found = named(
        module_of(
            "p = f32[] parameter(0)",
            "new = f32[] sine(p)",
            "waits = f32[] cosine(p), control-predecessors={new}",
            "needs = f32[] negate(new)",
            "free = f32[] negate(p)",
            "a = f32[] abs(p), control-predecessors={free, new}",
            "b = f32[] abs(p), control-predecessors={free, needs}",
            "c = f32[] abs(p), control-predecessors={waits}",
            "ROOT r = f32[] abs(p)",
        )
    )
    new = found["new"]
    can_move = {name for name in "abcr" if control_dependencies_can_move(found[name], new)}
    assert can_move == {"a", "r"}


@pytest.mark.parametrize(("chain", "moves"), [(1, True), (1000, True), (1001, False)])
def test_control_predecessors_with_more_than_a_thousand_before_them_stay(
    chain: int, moves: bool
) -> None:
    found = waiting(chain)
    assert control_dependencies_can_move(found["old"], found["new"]) is moves
