"""Names that stand for a pass with options."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.diagnostics import PipelineError
from hloopt.pass_framework.pipeline import PassStep
from hloopt.pass_framework.pipeline_text import format_passes, parse_passes
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import (
    ALIASES,
    PASSES,
    create_pass,
    find_pass,
    other_names,
    register_pass,
)


def _no_pipeline(name: str) -> Any:
    raise AssertionError(name)


def test_names_are_unique_and_name_passes() -> None:
    assert not PRESETS.keys() & (PASSES.keys() | ALIASES.keys())
    assert {preset.pass_name for preset in PRESETS.values()} <= PASSES.keys()
    for name in PRESETS:
        assert create_pass(name).name == name


def test_given_options_go_before_those_of_the_name() -> None:
    made: Any = create_pass("float_normalization_s4", {"allow_excess_precision": False})
    assert (made.options.float_support.low, made.options.float_support.high) == ("s4", "s8")
    assert made.options.allow_excess_precision is False
    other: Any = create_pass("float-normalization-s4", {"float_support": {"low": "u4"}})
    assert (other.options.float_support.low, other.options.float_support.high) == ("u4", "f32")


def test_a_step_is_printed_by_the_name_it_was_given() -> None:
    text = "float-normalization-u4{allow_excess_precision=false}"
    steps = parse_passes(text, _no_pipeline).steps
    assert format_passes(steps) == text
    (step,) = steps
    assert isinstance(step, PassStep)
    assert type(step.made) is find_pass("float-normalization")
    assert create_pass("float-normalization").name == "float-normalization"


def test_other_names_of_a_pass_are_those_too() -> None:
    assert "bf16-mixed-precision-removal" in other_names("float-normalization")
    assert other_names("algsimp") == ["algebraic-simplifier"]


def test_they_are_taken() -> None:
    with pytest.raises(PipelineError, match="'float-normalization-s4' is a pass of hloopt"):
        register_pass("float-normalization-s4")(find_pass("dce"))


def test_a_near_name_is_one_of_them() -> None:
    with pytest.raises(PipelineError) as caught:
        create_pass("float-normalization-bf61")
    assert caught.value.help == "did you mean 'float-normalization-bf16'?"
