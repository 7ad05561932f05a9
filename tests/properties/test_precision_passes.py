"""Programs over types of little precision, behind the passes that convert between types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.precision_programs import precision_texts

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.precision.float_support import FloatSupport
from hloopt.passes.precision.normalizer import KEEP_COMPUTATIONS, UNTOUCHED
from hloopt.text import parse_module, print_module
from hloopt.verifier import VerifierOptions, verify_module

NORMALIZATIONS = sorted(name for name in PRESETS if name.startswith("float-normalization-"))
MIXED = VerifierOptions(allow_mixed_precision=True)


def passed(name: str, text: str, **options: object) -> Module:
    module = parse_module(text)
    made = create_pass(name, options)
    changed = made.run(module, PassContext())
    assert changed == (print_module(module) != text)
    assert_consistent(module)
    assert not made.run(module, PassContext())
    return module


@pytest.mark.parametrize("name", NORMALIZATIONS)
@given(data=st.data())
@settings(max_examples=25)
def test_what_the_backend_cannot_do_is_done_in_the_larger_type(
    name: str, data: st.DataObject
) -> None:
    rules: Any = PRESETS[name].options["float_support"]
    support = FloatSupport(**rules)
    text = data.draw(precision_texts([support.low, support.high, "s32"]))
    assert verify_module(parse_module(text)) == []
    module = passed(name, text)
    assert verify_module(module) == []
    for instruction in module.instructions():
        if not may_have(instruction, support):
            values = (instruction, *instruction.operands)
            types = {leaf.type_name for value in values for leaf in value.shape.leaves()}
            assert support.low not in types, instruction


def may_have(instruction: Instruction, support: FloatSupport) -> bool:
    """Whether values of type low may go into an instruction and come out of it."""
    callers = instruction.parent.callers
    return (
        instruction.opcode in UNTOUCHED
        or has_own_side_effect(instruction)
        or (bool(callers) and all(caller.opcode in KEEP_COMPUTATIONS for caller in callers))
        or support.supports_output(instruction)
    )


@given(precision_texts(["bf16", "f32", "f16"], mixed=True))
@settings(max_examples=100)
def test_mixed_precision_removal_leaves_none(text: str) -> None:
    assert verify_module(parse_module(text), MIXED) == []
    for options in ({}, {"allow_excess_precision": False}):
        module = passed("bf16-mixed-precision-removal", text, **options)
        left = {
            name
            for name, types in ((i.name, _floats(i)) for i in module.instructions() if _mixes(i))
            if {"bf16", "f32"} <= types
        }
        assert left == set()


def _mixes(instruction: Instruction) -> bool:
    return instruction.opcode not in UNTOUCHED and not has_own_side_effect(instruction)


def _floats(instruction: Instruction) -> set[str]:
    values = (instruction, *instruction.operands)
    return {leaf.type_name for value in values for leaf in value.shape.leaves()}


@given(precision_texts(["bf16", "f32", "s32"]))
@settings(max_examples=50, deadline=None)
def test_results_are_the_same_up_to_rounding(text: str) -> None:
    reference = Reference(parse_module(text), RunSettings())
    for name in ("float-normalization-bf16", "simplify-fp-conversions"):
        module = passed(name, text)
        assert reference.compare(module) is None, name
