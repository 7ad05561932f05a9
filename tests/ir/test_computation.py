"""Computations and modules: adding, removing, reordering."""

from __future__ import annotations

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.ir import Instruction, Module, Opcode, parse_shape
from hloopt.text import parse_module

TEXT = """HloModule m, is_scheduled=true, replica_count=2

f { x = f32[] parameter(0) ROOT n = f32[] negate(x) }

g { y = f32[] parameter(0) ROOT c = f32[] call(y), to_apply=f }

ENTRY e {
  q = f32[] parameter(1)
  p = f32[] parameter(0)
  a = f32[] add(p, q)
  b = f32[] call(a), to_apply=g
  ROOT r = f32[] copy(a)
}
"""


@pytest.fixture
def module() -> Module:
    return parse_module(TEXT)


def names(module: Module) -> list[str]:
    return [i.name for i in module.entry.instructions]


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def test_facts(module: Module) -> None:
    assert [p.name for p in module.entry.parameters] == ["p", "q"]
    assert len(module.entry) == 5
    assert module.entry.is_entry
    assert not module.computations["f"].is_fusion
    assert (module.is_scheduled, module.replica_count, module.num_partitions) == (True, 2, 1)
    assert module.instruction_count() == 9
    assert [i.name for i in module.instructions(Opcode.CALL)] == ["c", "b"]


def test_a_span_finds_the_definition(module: Module) -> None:
    span = module.span_of(find(module, "a"))
    assert span is not None
    assert span.location == (10, 3)
    made = module.entry.add(Opcode.NEGATE, parse_shape("f32[]"), [find(module, "a")])
    assert module.span_of(made) is None


def test_added_instructions_get_free_names(module: Module) -> None:
    shape = parse_shape("f32[]")
    a = find(module, "a")
    made = [module.entry.add(Opcode.NEGATE, shape, [a], name=n) for n in ("n", None, None)]
    assert [i.name for i in made] == ["n.1", "negate", "negate.1"]
    assert names(module)[-3:] == ["n.1", "negate", "negate.1"]
    assert_consistent(module)


def test_only_unused_instructions_can_be_removed(module: Module) -> None:
    with pytest.raises(AssertionError, match="still has users"):
        module.entry.remove(find(module, "a"))
    with pytest.raises(AssertionError, match="is the root"):
        module.entry.remove(find(module, "r"))
    module.entry.remove(find(module, "b"))
    assert module.computations["g"].callers == {}
    assert_consistent(module)


def test_splicing_puts_instructions_before_others(module: Module) -> None:
    entry, a, r = module.entry, find(module, "a"), find(module, "r")
    shape = parse_shape("f32[]")
    first = entry.add(Opcode.SINE, shape, [a])
    second = entry.add(Opcode.COSINE, shape, [a])
    entry.splice({r: [first, second]})
    assert names(module) == ["q", "p", "a", "b", "sine", "cosine", "r"]
    entry.reorder([find(module, n) for n in ("p", "q", "a", "sine", "cosine", "b", "r")])
    assert names(module) == ["p", "q", "a", "sine", "cosine", "b", "r"]
    assert_consistent(module)


def test_computations_leave_with_their_calls(module: Module) -> None:
    f, g = module.computations["f"], module.computations["g"]
    module.entry.remove(find(module, "b"))
    module.remove_computations([f, g])
    assert list(module.computations) == ["e"]
    assert_consistent(module)


def test_called_computations_cannot_be_removed(module: Module) -> None:
    with pytest.raises(AssertionError, match="still called"):
        module.remove_computations([module.computations["g"]])
    with pytest.raises(AssertionError, match="is the entry"):
        module.remove_computations([module.entry])


def test_names_of_computations_are_not_given_out_again(module: Module) -> None:
    module.entry.remove(find(module, "b"))
    module.remove_computations([module.computations["f"], module.computations["g"]])
    assert module.add_computation("f").name == "f.1"


def test_a_module_can_become_another(module: Module) -> None:
    version = module.version
    module.become(parse_module("HloModule other\n\nENTRY z {\n  p = s32[] parameter(0)\n}\n"))
    assert (module.name, module.entry.name) == ("other", "z")
    assert module.entry.module is module
    assert module.version > version
    assert_consistent(module)


def test_header_attributes_are_written_anew_once_changed(module: Module) -> None:
    module.set_attribute("num_partitions", "4")
    module.set_attribute("replica_count", None)
    assert module.header_text is None
    assert (module.num_partitions, module.replica_count) == (4, 1)
