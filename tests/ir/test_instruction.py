"""Instructions keep users, callers, control edges and text right when they change."""

from __future__ import annotations

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.ir import Instruction, Module, Opcode, parse_shape
from hloopt.text import parse_module, print_module

TEXT = """HloModule m

f { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }

ENTRY e {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  a = f32[] add(p, p), metadata={op_name="a"}
  b = f32[] multiply(a, q), control-predecessors={p}
  c = f32[] call(a, b), to_apply=f
  ROOT t = (f32[], f32[]) tuple(c, a)
}
"""


@pytest.fixture
def module() -> Module:
    return parse_module(TEXT)


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def test_users_are_listed_once_in_order(module: Module) -> None:
    assert [user.name for user in find(module, "p").users] == ["a"]
    assert [user.name for user in find(module, "a").users] == ["b", "c", "t"]
    assert_consistent(module)


def test_facts(module: Module) -> None:
    assert find(module, "q").parameter_number == 1
    assert module.entry.root.is_root
    assert find(module, "b").has_control_dependencies
    assert find(module, "p").has_control_dependencies
    assert list(find(module, "c").called_attributes()) == [
        ("to_apply", (module.computations["f"],))
    ]
    assert repr(find(module, "a")) == "<%a = add>"
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        _ = find(module, "a").colour  # type: ignore[attr-defined]  # the mistake


def test_replacing_an_operand_keeps_a_user_that_uses_it_twice(module: Module) -> None:
    a, p, q = (find(module, name) for name in "apq")
    a.replace_operand(0, q)
    assert a in p.users
    a.replace_operand(1, q)
    assert a not in p.users
    assert a.operands == [q, q]
    assert_consistent(module)


def test_replacing_all_uses_moves_the_root(module: Module) -> None:
    t, a, q = (find(module, name) for name in "taq")
    a.replace_all_uses_with(q)
    assert not a.users
    assert [o.name for o in t.operands] == ["c", "q"]
    t.replace_all_uses_with(q)
    assert module.entry.root is q
    assert_consistent(module)


def test_replacing_all_uses_by_a_user_leaves_that_user_alone(module: Module) -> None:
    a, p = find(module, "a"), find(module, "p")
    n = module.entry.add(Opcode.NEGATE, a.shape, [a])
    a.replace_all_uses_with(n)
    assert n.operands == [a]
    assert list(a.users) == [n]
    assert find(module, "b").operands[0] is n
    p.set_attribute("sharding", "{replicated}")
    assert_consistent(module)


def test_control_edges_have_two_ends(module: Module) -> None:
    a, b, c, p = (find(module, name) for name in "abcp")
    c.add_control_predecessor(b)
    c.add_control_predecessor(b)
    assert (list(c.control_predecessors), list(b.control_successors)) == ([b], [c])
    b.move_control_dependencies_to(a)
    assert list(a.control_predecessors) == [p]
    assert list(a.control_successors) == [c]
    assert not b.has_control_dependencies
    a.move_control_dependencies_to(c)  # the edge to c itself is dropped
    assert list(c.control_predecessors) == [p]
    c.drop_control_dependencies()
    assert_consistent(module)
    assert not p.has_control_dependencies


def test_control_edges_that_go_leave_nothing_in_the_text() -> None:
    """As XLA writes it, so that attributes are split only when someone asks for them."""
    module = parse_module(
        "HloModule m\n\nENTRY %e (p: f32[]) -> f32[] {\n"
        "  %p = f32[] parameter(0)\n"
        "  %a = f32[] negate(f32[] %p)\n"
        '  ROOT %b = f32[] sine(f32[] %p), control-predecessors={%a}, metadata={op_name="b"}\n'
        "}\n"
    )
    module.entry.root.drop_control_dependencies()
    module.entry.remove(find(module, "a"))
    assert_consistent(module)
    assert 'sine(%p), metadata={op_name="b"}\n' in print_module(module)


def test_called_computations_know_their_callers(module: Module) -> None:
    f, c = module.computations["f"], find(module, "c")
    assert f.callers == {c: 1}
    c.set_called((f, f))
    assert f.callers == {c: 2}
    c.set_called(())
    assert f.callers == {}
    assert_consistent(module)


def test_changes_show_in_the_text_of_what_changed_only(module: Module) -> None:
    a, b = find(module, "a"), find(module, "b")
    text = b.text
    a.set_attribute("metadata", None)
    a.set_attribute("sharding", "{replicated}")
    assert "%a = f32[] add(%p, %p), sharding={replicated}\n" in print_module(module)
    assert b.text == text
    find(module, "p").set_payload("7")
    assert "%p = f32[] parameter(7)" in print_module(module)


def test_a_new_name_shows_in_all_that_refer_to_it(module: Module) -> None:
    p = find(module, "p")
    p.take_name("renamed")
    printed = print_module(module)
    assert "add(%renamed, %renamed)" in printed
    assert "control-predecessors={%renamed}" in printed


def test_every_change_counts_as_a_version(module: Module) -> None:
    before = module.version, module.entry.version, module.computations["f"].version
    find(module, "a").set_attribute("sharding", "{replicated}")
    assert module.version > before[0]
    assert module.entry.version > before[1]
    assert module.computations["f"].version == before[2]


def test_references_are_no_attributes(module: Module) -> None:
    assert dict(find(module, "c").attributes) == {}
    assert dict(find(module, "b").attributes) == {}
    assert dict(find(module, "a").attributes) == {"metadata": '{op_name="a"}'}


def test_a_new_shape_shows_in_the_text_of_users() -> None:
    module = parse_module(
        "HloModule m\nENTRY e {\n  p = (f32[], f32[4]) parameter(0)\n"
        "  ROOT n = f32[] get-tuple-element((f32[], f32[4]) p), index=0\n}"
    )
    find(module, "p").set_shape(parse_shape("(f32[])"))
    again = parse_module(print_module(module))
    assert again.entry.root.operands[0].shape.text == "(f32[])"


def test_moving_the_control_dependencies_of_a_hub_is_linear() -> None:
    count = 50_000
    lines = "".join(
        f"  n.{i} = f32[] negate(p), control-predecessors={{hub}}\n" for i in range(count)
    )
    module = parse_module(
        f"HloModule m\nENTRY e {{\n  p = f32[] parameter(0)\n  hub = f32[] abs(p)\n"
        f"  other = f32[] abs(p)\n{lines}  ROOT r = f32[] copy(p)\n}}\n"
    )
    hub, other = (i for i in module.entry.instructions if i.opcode is Opcode.ABS)
    hub.move_control_dependencies_to(other)
    assert not hub.has_control_dependencies
    assert len(other.control_successors) == count
