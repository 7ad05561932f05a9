"""Running a pass on a text, with all that must hold of any pass checked, and its result."""

from __future__ import annotations

from tests.properties.consistency import assert_consistent

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Computation, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import PrintOptions, format_computation, parse_module, print_module
from hloopt.verifier import verify_module


def run_checked(name: str, text: str, *, changes: bool = True, **options: object) -> Module:
    """What the pass `name` makes of a valid module; `changes` is what it has to say of that."""
    module = parse_module(text)
    assert verify_module(module) == []
    assert create_pass(name, options).run(module, PassContext()) == changes
    assert verify_module(module) == []
    assert_consistent(module)
    return module


def run_equal(name: str, text: str, **options: object) -> Module:
    """The module after a pass that changes it: it computes the same, as far as the pass claims,
    on three inputs and on special values."""
    module = run_checked(name, text, changes=True, **options)
    claim = create_pass(name, options).preserves
    assert Reference(parse_module(text), RunSettings()).compare(module, claim) is None
    return module


def reasons_to_stay(name: str, text: str, **options: object) -> list[str]:
    """The remarks of a pass that leaves a valid module as it is: why it missed what is there."""
    module, context = parse_module(text), PassContext(name)
    assert verify_module(module) == []
    before = print_module(module)
    assert not create_pass(name, options).run(module, context)
    assert print_module(module) == before
    assert {remark.kind for remark in context.remarks} <= {"missed"}
    return [remark.reason for remark in context.remarks]


def shown(computation: Computation) -> list[str]:
    """The instructions of a computation, written anew in a short form."""
    short = PrintOptions(keep_order=True, print_percent=False, include_layout_in_shapes=False)
    return [line.strip() for line in format_computation(computation, short).splitlines()[1:-1]]
