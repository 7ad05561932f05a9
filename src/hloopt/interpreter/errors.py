"""Errors of running a module."""

from __future__ import annotations

from hloopt.diagnostics import HloError
from hloopt.ir.instruction import Instruction


class RunError(HloError):
    """A module cannot be run, or not with these inputs."""

    code = "HLO500"


def cannot_run(
    instruction: Instruction, reason: str, code: str | None = None, help: str | None = None
) -> RunError:
    """The error that `instruction` cannot be run, with its place."""
    module = instruction.parent.module
    message = f"{module.place_of(instruction)}: {reason}"
    return RunError(message, span=module.span_of(instruction), code=code, help=help)
