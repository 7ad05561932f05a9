"""The laws of reading, writing, copying and passes, over modules of all opcodes and types."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.laws import FULL, GROUPS, Case, assert_all_laws, blocks, names_of
from tests.properties.strategies.every_opcode import modules_of_all_opcodes
from tests.properties.strategies.recipes import LITERALS, RECIPES

from hloopt.ir import Module, Opcode
from hloopt.ir.attributes.explicit import explicit_attributes
from hloopt.ir.attributes.opcode_attributes import canonical_value
from hloopt.ir.clone import clone_module
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

NOT_GENERATED: dict[Opcode, str] = {}
"""Opcodes no recipe has, with the reason."""
MODULES = modules_of_all_opcodes()


def test_every_opcode_has_a_recipe_that_verifies() -> None:
    found: set[Opcode] = set()
    for recipe in RECIPES:

        @settings(max_examples=2, database=None)
        @given(modules_of_all_opcodes(recipes=(recipe,)))
        def collect(text: str) -> None:
            module = parse_module(text)
            assert verify_module(module) == [], text
            found.update(instruction.opcode for instruction in module.instructions())

        collect()
    missing = set(Opcode) - found
    assert missing == NOT_GENERATED.keys()


def test_every_element_type_has_literals() -> None:
    assert LITERALS.keys() == ELEMENT_TYPES.keys() - {"token", "opaque"}


@given(MODULES)
@settings(max_examples=150)
def test_what_is_printed_is_the_same_module(text: str) -> None:
    module = parse_module(text)
    assert verify_module(module) == []
    assert_consistent(module)
    assert print_module(module) == text
    once = print_module(module, FULL)
    assert print_module(module, FULL) == once
    again = parse_module(once)
    assert verify_module(again) == []
    assert blocks(print_module(again, FULL)) == blocks(once)
    # `X-start` in place of an async-start leaves out the names of what it wraps.
    explicit = print_module(module, FULL._replace(syntax_sugar_async_ops=False))
    assert graph(parse_module(explicit)) == graph(module)


def graph(module: Module) -> dict[str, tuple[object, ...]]:
    """What each instruction is and is connected to, attributes as XLA prints them."""
    return {
        i.name: (
            *(i.opcode, i.shape, i.parent.name, i.is_root, i.parent.execution_thread),
            [operand.name for operand in i.operands],
            [callee.name for callee in i.called],
            [predecessor.name for predecessor in i.control_predecessors],
            {
                key: canonical_value(i.opcode, key, value)
                for key, value in explicit_attributes(i).items()
            }
            if i.opcode is not Opcode.COMPARE
            else i.attributes["direction"],
            canonical_literal(i.payload, i.shape) if i.opcode is Opcode.CONSTANT else i.payload,
        )
        for i in module.instructions()
    }


@given(MODULES)
@settings(max_examples=80)
def test_a_clone_is_equal_and_independent(text: str) -> None:
    module = parse_module(text)
    before = print_module(module, FULL)
    copy, computations = clone_module(module)
    assert print_module(copy, FULL) == before
    assert verify_module(copy) == []
    assert_consistent(copy)
    assert len(computations) == len(module.computations)
    for instruction in list(copy.instructions()):
        instruction.set_attribute("metadata", '{op_name="of the copy"}')
    assert print_module(module, FULL) == before


@pytest.mark.parametrize("cases", GROUPS, ids=names_of)
@given(text=MODULES)
@settings(max_examples=25)
def test_passes_obey_the_laws(cases: list[Case], text: str) -> None:
    assert_all_laws(cases, text)


@given(MODULES, st.data())
@settings(max_examples=40)
def test_another_way_of_writing_is_the_same_module(text: str, data: st.DataObject) -> None:
    """Without sigils, in other lines, with comments: read by the other lane, the same module."""
    other = data.draw(
        st.sampled_from(
            (
                text.replace("\n  ", "\n\t/* c */ "),
                re.sub(r"%(?=[a-z])", "", text),
                text.replace(") ", ")\n  ").replace(", ", ",\n    "),
            )
        )
    )
    printed = [print_module(parse_module(t), FULL) for t in (text, other)]
    assert printed[0] == printed[1]


@pytest.mark.oracle
def test_xla_reads_what_we_print_as_the_same_module() -> None:
    hlo = pytest.importorskip("jaxlib._hlo", reason="needs the extra xla")
    canonical = hlo.HloPrintOptions.canonical()

    @settings(max_examples=300, database=None)
    @given(MODULES)
    def compare(text: str) -> None:
        expected = hlo.hlo_module_from_text(text).to_string(canonical)
        printed = print_module(parse_module(text), FULL)
        again = hlo.hlo_module_from_text(printed).to_string(canonical)
        assert blocks(again) == blocks(expected)  # XLA orders computations by their callers

    compare()
