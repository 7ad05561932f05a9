"""Instructions by name, and modules, computations and instructions as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.properties.strategies.async_modules import async_modules
from tests.properties.strategies.modules import module_texts

from hloopt.diagnostics import HloError
from hloopt.ir import Opcode
from hloopt.text import format_computation, parse_module, print_module

TEXT = """HloModule m

inner {
  q = f32[] parameter(0)
  ROOT c = f32[] copy(q)
}

ENTRY e {
  q = f32[] parameter(0)
  ROOT k = f32[] call(q),
    to_apply=inner
}
"""


def test_an_instruction_is_found_by_its_name_with_percent_or_without() -> None:
    module = parse_module(TEXT)
    assert module["c"] is module["%c"] is module.computations["inner"].root
    assert module.entry["k"] is module.entry["%k"] is module.entry.root
    made = module.entry.add(Opcode.COPY, module["c"].shape, [module["k"]])
    assert module["copy"] is made


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kk", "no instruction 'kk' in module m; did you mean 'k'?"),
        ("%nothing-like-it", "no instruction 'nothing-like-it' in module m"),
        (
            "inner",
            "'inner' is a computation, not an instruction; module.computations['inner'] has it",
        ),
        (
            "q",
            "several instructions are called 'q' in the text: %q in %inner, %q.1 in %e; "
            "look it up in its computation: module.computations[…][…]",
        ),
    ],
)
def test_a_name_that_is_not_one_says_what_there_is(name: str, said: str) -> None:
    module = parse_module(TEXT)
    with pytest.raises(KeyError) as caught:
        module[name]
    assert isinstance(caught.value, HloError)
    assert str(caught.value) == said


def test_a_name_that_several_have_is_found_in_each_computation() -> None:
    module = parse_module(TEXT)
    assert module["q.1"] is module.entry["q"]
    assert module.computations["inner"]["q"].parent.name == "inner"
    with pytest.raises(KeyError, match="no instruction 'c' in %e"):
        module.entry["c"]


def test_lookup_makes_nothing_a_sequence() -> None:
    module = parse_module(TEXT)
    for each in (module, module.entry):
        with pytest.raises(TypeError, match="not iterable"):
            iter(each)  # type: ignore[call-overload]  # what somebody may try
        with pytest.raises(TypeError, match="looked up by name, not by int"):
            each[0]  # type: ignore[index]  # what somebody may try
    assert module["k"] in module.entry


def test_an_instruction_of_several_lines_is_shown_in_one() -> None:
    module = parse_module(
        "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n"
        "  ROOT t = f32[2] transpose(p),\n    dimensions={0}\n}"
    )
    assert str(module["t"]) == "t = f32[2] transpose(p), dimensions={0}"
    module["t"].changed()
    assert str(module["t"]) == "%t = f32[2]{0} transpose(%p), dimensions={0}"


@given(module_texts() | async_modules())
def test_text_is_that_of_the_printed_module(text: str) -> None:
    module = parse_module(text)
    for number, instruction in enumerate(list(module.instructions())):
        if number % 3 == 0:
            instruction.changed()
    lines = {str(instruction): instruction for instruction in module.instructions()}
    printed = print_module(module)
    assert str(module) == printed
    assert {"\n" in line for line in lines} == {False}
    for computation in module.computations.values():
        assert str(computation) == format_computation(computation)
    shown = " ".join(printed.split())
    for line, instruction in lines.items():
        if not instruction.parent.is_sugar:
            assert " ".join(line.split()) in shown
