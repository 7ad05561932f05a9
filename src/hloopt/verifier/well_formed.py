"""Modules that break rules but can be read: what can be said of them, and of which nothing can."""

from __future__ import annotations

from hloopt.diagnostics import HloError
from hloopt.ir.module import Module
from hloopt.verifier.options import ANY_TARGET
from hloopt.verifier.verify import verify_module


def why_invalid(module: Module) -> HloError | None:
    """The first rule that a module breaks, if any; it is raised where the module is malformed.

    An instruction of a malformed module lacks an attribute that its opcode needs, or has a value
    that cannot be read: no report looks at such an instruction. Costs as much as verifying.
    """
    errors = verify_module(module, ANY_TARGET)
    for error in errors:
        if (error.code or "").startswith(_OF_SYNTAX):
            raise error
    return errors[0] if errors else None


_OF_SYNTAX = "HLO1"
"""The prefix of the codes of syntax errors."""
