"""Running a pass on a text, with all that must hold of any pass checked."""

from __future__ import annotations

from tests.properties.consistency import assert_consistent

from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def run_checked(name: str, text: str, *, changes: bool = True, **options: object) -> Module:
    """What the pass `name` makes of a valid module; `changes` is what it has to say of that."""
    module = parse_module(text)
    assert verify_module(module) == []
    assert create_pass(name, options).run(module, PassContext()) == changes
    assert verify_module(module) == []
    assert_consistent(module)
    return module
