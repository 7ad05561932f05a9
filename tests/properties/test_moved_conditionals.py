"""conditional-code-motion keeps what programs compute, whatever it moves and wherever it stops."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.moving_conditionals import moving_conditionals

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

PASS = "conditional-code-motion"
SETTINGS = RunSettings(seeds=4)


def run(module: Module, limit: int | None = None, **options: object) -> bool:
    before, version = print_module(module), module.version
    context = PassContext(PASS)
    if limit is not None:
        context.applications = Applications(limit=limit)
    changed = create_pass(PASS, options).run(module, context)
    assert changed == (module.version != version) == (print_module(module) != before)
    assert verify_module(module) == []
    assert_consistent(module)
    return changed


def assert_same(reference: Reference, module: Module) -> None:
    found = reference.compare(parse_module(print_module(module)))
    assert found is None, found.reason


@settings(max_examples=60)
@given(
    text=moving_conditionals(),
    options=st.fixed_dictionaries(
        {
            "is_layout_sensitive": st.booleans(),
            "pursue_full_conditional_code_motion": st.booleans(),
            "memory_increase_allowance": st.sampled_from((0, 5000)),
            "search_config": st.sampled_from(
                (0, 0, 0, "0,0,0,1", "0,1,2,3;1,2,1,1", "0,3,1,1;0,0,2,2", -(2 << 16 | 1))
            ),
        }
    ),
)
def test_the_program_stays_the_same(text: str, options: dict[str, object]) -> None:
    module = parse_module(text)
    assert verify_module(module) == []
    reference = Reference(parse_module(text), SETTINGS)
    for _ in range(3):  # what moved may let more move
        if not run(module, None, **options):
            break
        assert_same(reference, module)


@settings(max_examples=25)
@given(text=moving_conditionals(), limit=st.integers(0, 3))
def test_it_stops_between_conditionals(text: str, limit: int) -> None:
    module = parse_module(text)
    assert run(module, limit) <= (limit > 0)
    assert_same(Reference(parse_module(text), SETTINGS), module)
