"""Comparisons take no more memory than they may, for values and for comparing them."""

from __future__ import annotations

import tracemalloc

import pytest

from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.ir.module import Module
from hloopt.text import parse_module

SIZE = 50_000


def program(operation: str, outputs: int = 1) -> Module:
    results = ", ".join(["r"] * outputs)
    shapes = ", ".join([f"f32[{SIZE}]"] * outputs)
    return parse_module(
        f"""HloModule m
ENTRY e {{
  p = f32[{SIZE}] parameter(0)
  r = f32[{SIZE}] {operation}
  ROOT t = ({shapes}) tuple({results})
}}
"""
    )


PLAIN, OTHER = program("add(p, p)"), program("exponential(p)")


@pytest.mark.parametrize("other", [PLAIN, OTHER])
def test_comparing_counts_the_values_of_both_and_what_compares_them(other: Module) -> None:
    """Inputs and outputs of both are 16 bytes per element, comparing takes 112."""
    reference = Reference(PLAIN, RunSettings(seeds=1, memory=SIZE * 120))
    with pytest.raises(
        RunError, match=r"%t: comparing output\{0\} would take 6,400,000 bytes, of "
    ):
        reference.compare(other)


@pytest.mark.parametrize("other", [PLAIN, OTHER])
def test_the_bound_holds(other: Module) -> None:
    memory = SIZE * 260
    reference = Reference(PLAIN, RunSettings(seeds=2, memory=memory))
    tracemalloc.start()
    try:
        reference.compare(other)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < memory


def test_what_a_run_may_take_is_less_beside_that_of_the_other_program() -> None:
    reference = Reference(PLAIN, RunSettings(seeds=1, memory=SIZE * 24))
    mismatch = reference.compare(PLAIN)
    assert mismatch is not None
    assert not mismatch.is_decided
    assert mismatch.reason == (
        "it cannot be run: %p: the inputs would take 1,400,000 bytes while they are made, 400,000 "
        "of these for values of other runs, the limit is 1,200,000"
    )
