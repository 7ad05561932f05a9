"""Scoped memory that gets all that is free beside it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.chains import BY_COUNT, chain

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment
from hloopt.text import parse_module
from memory_space_lib.examine import assign
from memory_space_lib.programs import random_case

NEGATIONS = ({"opcodes": ["negate"], "bytes": 8},)


def scoped(**options: Any) -> dict[str, tuple[int, int]]:
    given = {
        "max_size_in_bytes": 128,
        "alignment_in_bytes": 8,
        "prefetch_interval_picker": BY_COUNT,
        "enable_cross_program_prefetch": False,
        "expanded_scoped_alternate_memory_mode": "enabled",
        "verify": True,
        **options,
    }
    made = create_pass("memory-space-assignment", given)
    assert isinstance(made, MemorySpaceAssignment)
    made.run(parse_module(chain(5)), PassContext())
    assert made.report is not None
    return made.report.scoped


def test_it_grows_up_to_its_neighbour() -> None:
    options = {
        "reserved_scoped_memory": ({"names": ["n2"], "bytes": 16},),
        "max_size_in_bytes": 112,
        "uses_not_allowed": {"opcodes": ["add"]},
    }
    assert scoped(expanded_scoped_alternate_memory_mode="disabled", **options) == {"n2": (0, 16)}
    assert scoped(**options) == {"n2": (0, 32)}


def test_it_moves_to_a_larger_gap() -> None:
    rules = ({"names": ["n2"], "bytes": 16},)
    assert scoped(reserved_scoped_memory=rules, max_size_in_bytes=128) == {"n2": (0, 16)}
    assert scoped(reserved_scoped_memory=rules, max_size_in_bytes=256) == {"n2": (112, 144)}


def test_each_instruction_gets_what_is_free_at_its_own_time() -> None:
    assert scoped(reserved_scoped_memory=NEGATIONS) == {
        "n0": (40, 88),
        "n1": (72, 56),
        "n2": (104, 24),
        "n3": (104, 24),
        "n4": (104, 24),
    }


def test_without_values_beside_it_all_is_its_own() -> None:
    nothing = {"uses_not_allowed": {"opcodes": ["add", "negate"]}}
    assert set(scoped(reserved_scoped_memory=NEGATIONS, **nothing).values()) == {(0, 128)}


def test_memory_that_is_too_small_does_not_make_it_smaller() -> None:
    (chunk,) = {*scoped(reserved_scoped_memory=NEGATIONS, max_size_in_bytes=4).values()}
    assert chunk == (0, 8)


@pytest.mark.parametrize("number", range(30))
def test_random_programs_keep_the_laws(number: int) -> None:
    text, options = random_case(7, number)
    asked = 16 if options["max_size_in_bytes"] > 64 else 8
    rules = ({"opcodes": ["add", "negate", "multiply", "fusion", "copy"], "bytes": asked},)
    options["reserved_scoped_memory"] = rules
    options["expanded_scoped_alternate_memory_mode"] = "enabled"
    result = assign(text, options)
    assert list(map(str, result.faults)) == []
    assert all(size >= asked for _, size in result.report.scoped.values())
