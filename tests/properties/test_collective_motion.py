"""Passes that move collectives keep what programs on several devices compute."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.reducing_loops import reducing_loop_texts
from tests.properties.strategies.reducing_programs import reducing_program_texts

from hloopt.equivalence import Reference, RunSettings
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module


@pytest.mark.slow
@given(reducing_loop_texts(), st.booleans(), st.booleans())
@settings(max_examples=150)
def test_collectives_moved_out_of_loops_give_the_same(
    text: str, scatters: bool, prepared: bool
) -> None:
    module = parse_module(text)
    assert verify_module(module) == []
    reference = Reference(module, RunSettings())
    options = {"enable_reduce_scatter": scatters, "run_setup_passes": prepared}
    create_pass("while-loop-all-reduce-code-motion", options).run(module, PassContext())
    assert verify_module(module) == []
    assert_consistent(module)
    assert reference.compare(module) is None


_OTHER_WAYS: dict[str, dict[str, object]] = {
    "all-reduce-contiguous": {},
    "all-reduce-folder": {},
    "all-reduce-reassociate": {"reassociate_converted_ar": True},
    "all-reduce-simplifier": {},
    "all-reduce-splitter": {},
    "reduce-scatter-creator": {},
    "reduce-scatter-reassociate": {},
}


@given(text=reducing_program_texts())
@settings(max_examples=40)
def test_collectives_done_in_another_way_give_the_same(text: str) -> None:
    before = parse_module(text)
    assert verify_module(before) == []
    reference = Reference(before, RunSettings())
    for name, options in _OTHER_WAYS.items():
        module = parse_module(text)
        if create_pass(name, options).run(module, PassContext()):
            assert verify_module(module) == [], name
            assert_consistent(module)
            assert reference.compare(module) is None, name
