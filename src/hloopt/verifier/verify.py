"""Verify a module, or what changed in it since it was verified last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.verifier.instruction_rules import InstructionRules
from hloopt.verifier.structure import check_computation, check_module


class VerifierOptions(NamedTuple):
    """What is checked; names are XLA's.

    `allow_mixed_precision` accepts operands that differ in floating-point precision only.
    """

    allow_mixed_precision: bool = True


class VerifiedState:
    """The versions at which computations were found valid."""

    def __init__(self) -> None:
        self.versions: dict[Computation, int] = {}
        self.module_version = -1


def verify_module(
    module: Module, options: VerifierOptions | None = None, state: VerifiedState | None = None
) -> list[HloError]:
    """All problems of `module`, each with its place in the source where it has one.

    With a `state` of an earlier call, only computations changed since are looked at; the state is
    brought up to date. O(instructions); repeated forms of instructions are checked once.
    """
    options = options or VerifierOptions()
    if state is None:
        state = VerifiedState()
    if state.module_version == module.version:
        return []
    errors = check_module(module)
    rules = InstructionRules(allow_mixed_precision=options.allow_mixed_precision)
    changed = [
        computation
        for computation in module.computations.values()
        if state.versions.get(computation) != computation.version
        or not _callees_kept(computation, state)
    ]
    for computation in changed:
        state.versions.pop(computation, None)
    for computation in changed:
        try:
            found = list(_check(computation, rules))
        except HloError as error:  # a callee without a signature
            found = [error]
        errors += found
        if not found:
            state.versions[computation] = computation.version
    if not errors:
        state.module_version = module.version
    return errors


def verify_changes(module: Module, state: VerifiedState, options: VerifierOptions) -> None:
    """Raise the first problem of what changed since `state`. See `verify_module`."""
    errors = verify_module(module, options, state)
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more problems)" if len(errors) > 1 else ""
        raise HloVerifyError(
            first.message + more, span=first.span, help=first.help, code=first.code
        )


def _callees_kept(computation: Computation, state: VerifiedState) -> bool:
    """Whether what the computation calls is still what it was verified against.

    Parameters and root of a callee are part of the caller's contract.
    """
    return all(
        state.versions.get(callee) == callee.version
        for instruction in computation.instructions
        if instruction.called
        for callee in instruction.called
    )


def _check(computation: Computation, rules: InstructionRules) -> Iterable[HloError]:
    problems = check_computation(computation)
    yield from problems
    if problems:
        return
    for instruction, error in rules.problems(computation):
        yield _placed(error, instruction)


def _placed(error: HloError, instruction: Instruction) -> HloVerifyError:
    """`error` with the instruction's name and place."""
    module = instruction.parent.module
    span = error.span or module.span_of(instruction)
    message = f"{module.place_of(instruction)}: {error.message}"
    return HloVerifyError(message, span=span, help=error.help, code=error.code)
