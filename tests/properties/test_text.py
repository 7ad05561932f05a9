"""Laws of reading and writing: round trips, kept text, two lanes that agree."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.modules import XLA_STYLE, module_texts

from hloopt.ir import Module
from hloopt.text import PrintOptions, parse_module, parser, print_module
from hloopt.text.fast_lane import read_computation
from hloopt.verifier import verify_module

DEFAULT = PrintOptions.default()

_monkeypatching = settings(
    max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(module_texts())
@settings(max_examples=60)
def test_generated_modules_verify(text: str) -> None:
    module = parse_module(text)
    assert verify_module(module) == []
    assert_consistent(module)


@given(module_texts())
@settings(max_examples=60)
def test_a_module_nobody_changed_prints_its_text(text: str) -> None:
    assert print_module(parse_module(text)) == text


@given(module_texts())
@settings(max_examples=60)
def test_the_normalized_print_keeps_everything(text: str) -> None:
    once = print_module(parse_module(text), DEFAULT)
    twice = print_module(parse_module(once), DEFAULT)
    # XLA's order of computations follows that of their callers, which the first print changes.
    assert sorted(twice.split("\n\n")) == sorted(once.split("\n\n"))
    assert print_module(parse_module(twice), DEFAULT) == twice


@given(module_texts(), st.data())
@settings(max_examples=60)
def test_only_the_changed_instruction_loses_its_text(text: str, data: st.DataObject) -> None:
    module = parse_module(text)
    instructions = list(module.instructions())
    before = {instruction: instruction.text for instruction in instructions}
    changed = data.draw(st.sampled_from(instructions))
    changed.set_attribute("metadata", '{op_name="changed"}')
    printed = print_module(module)
    for instruction in instructions:
        if instruction is not changed:
            assert instruction.text == before[instruction] or before[instruction] is None
            assert instruction.text is None or instruction.text in printed
    again = parse_module(printed)
    assert print_module(again, DEFAULT) == print_module(module, DEFAULT)


@given(module_texts())
@_monkeypatching
def test_both_lanes_read_the_same_module(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    for source in (text, print_module(parse_module(text), DEFAULT)):
        both = parse_module(source)
        with monkeypatch.context() as patch:
            patch.setattr(parser, "read_computation", lambda module, text, start: None)
            general = parse_module(source)
        assert describe(both) == describe(general)
        assert_consistent(both)
        assert_consistent(general)


@given(module_texts(styles=st.just(XLA_STYLE)))
@_monkeypatching
def test_the_fast_lane_reads_what_xla_prints(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    refused: list[int] = []
    fast = read_computation

    def watched(module: Module, text: str, start: int) -> object:
        result = fast(module, text, start)
        if result is None:
            refused.append(start)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(parser, "read_computation", watched)
        parse_module(text)
    assert refused == []


def describe(module: Module) -> list[object]:
    """All there is to a module, by names."""
    result: list[object] = [module.name, module.entry.name, module.attributes]
    for computation in module.computations.values():
        result.append(
            (
                *(computation.name, computation.root.name, computation.execution_thread),
                *(computation.is_pristine, computation.signature, computation.source_range),
            )
        )
        result += [
            (
                *(i.name, i.opcode, i.shape, i.payload, dict(i.attributes), i.text),
                [operand.name for operand in i.operands],
                [callee.name for callee in i.called],
                [predecessor.name for predecessor in i.control_predecessors],
                [successor.name for successor in i.control_successors],
                [user.name for user in i.users],
            )
            for i in computation.instructions
        ]
    return result
