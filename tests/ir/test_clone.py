"""Copies are complete, and share only what they say they share."""

from __future__ import annotations

from hypothesis import given, settings
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.modules import module_texts

from hloopt.ir.clone import clone_computation, clone_module
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module

TEXT = """HloModule m

f { x = f32[] parameter(0) ROOT n = f32[] negate(x), metadata={op_name="n"} }

g {
  y = f32[] parameter(0)
  s = f32[] sine(y)
  ROOT c = f32[] call(y), to_apply=f, control-predecessors={s}
}, execution_thread="side"

ENTRY e { p = f32[] parameter(0) }
"""


def test_a_copied_instruction_shares_what_it_calls() -> None:
    module = parse_module(TEXT)
    f, g = module.computations["f"], module.computations["g"]
    copy = g.add_clone(g.root, g.root.operands)
    assert copy.name == "c.1"
    assert f.callers == {g.root: 1, copy: 1}
    assert list(copy.control_predecessors) == []
    assert_consistent(module)


def test_a_copied_computation_keeps_order_control_edges_and_thread() -> None:
    module = parse_module(TEXT)
    g = module.computations["g"]
    clone, copies = clone_computation(g)
    assert clone.name == "g.clone"
    assert clone.execution_thread == "side"
    assert [i.opcode for i in clone.instructions] == [i.opcode for i in g.instructions]
    s, c = (copies[i] for i in list(g.instructions)[1:])
    assert list(c.control_predecessors) == [s]
    assert clone.root is c
    assert clone_computation(g)[0].name == "g.clone.1"
    assert_consistent(module)


@given(module_texts())
@settings(max_examples=40)
def test_a_copied_module_is_the_same_text_and_lives_on_its_own(text: str) -> None:
    module = parse_module(text)
    before = print_module(module, PrintOptions.default())
    copy, computations = clone_module(module)
    assert print_module(copy, PrintOptions.default()) == before
    assert list(computations) == list(module.computations.values())
    assert_consistent(copy)
    assert verify_module(copy) == []
    for instruction in copy.instructions():
        instruction.set_attribute("metadata", '{op_name="changed"}')
    assert print_module(module, PrintOptions.default()) == before
    assert_consistent(module)
