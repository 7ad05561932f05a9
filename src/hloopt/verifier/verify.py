"""Verify a module, or what changed in it since it was verified last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from hloopt.diagnostics import HloError, HloVerifyError, counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.verifier.instruction_rules import InstructionRules
from hloopt.verifier.options import Setting, VerifierOptions
from hloopt.verifier.report import header_span, placed
from hloopt.verifier.rules import COMPUTATION_RULES, MODULE_RULES, OF_INTEREST, Rule, broken_rules
from hloopt.verifier.structure import check_computation, check_module


class VerifiedState:
    """The versions at which computations were found valid."""

    def __init__(self) -> None:
        self.versions: dict[Computation, int] = {}
        self.module_version = -1
        self.setting: Setting | None = None


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
    try:
        counts = _count(module, "replica_count"), _count(module, "num_partitions")
    except HloError as error:
        return [error]
    setting = Setting(options, *counts)
    if setting != state.setting:
        state.setting = setting
        state.versions.clear()
        state.module_version = -1
    if state.module_version == module.version:
        return []
    errors = check_module(module)
    rules = InstructionRules(setting)
    changed = [
        computation
        for computation in module.computations.values()
        if state.versions.get(computation) != computation.version
        or not _callees_kept(computation, state)
    ]
    for computation in changed:
        state.versions.pop(computation, None)
    of_interest = {
        computation: [i for i in computation.instructions if i.opcode in OF_INTEREST]
        for computation in module.computations.values()
    }
    unreadable: list[HloError] = []
    if not errors:
        all_of_interest = list(chain.from_iterable(of_interest.values()))
        parameters = _parameters(module.entry)
        found = broken_rules(MODULE_RULES, module, all_of_interest, setting, parameters)
        _gather(found, errors, unreadable)
    asked = [rule for rule in COMPUTATION_RULES if rule.is_asked(options)]
    is_always_asked = not all(rule.opcodes for rule in asked)
    for computation in changed:
        before = len(errors) + len(unreadable)
        concerned = of_interest[computation]
        about_it = asked if concerned or is_always_asked else ()
        _gather(_check(computation, rules, about_it, concerned), errors, unreadable)
        if len(errors) + len(unreadable) == before:
            state.versions[computation] = computation.version
    errors = errors or unreadable
    if not errors:
        state.module_version = module.version
    return errors


def _gather(found: Iterable[HloError], errors: list[HloError], unreadable: list[HloError]) -> None:
    """Add what is found to `errors`; to `unreadable` what ends the search.

    That is an attribute or a number which cannot be read: mostly, another rule says so, and where.
    """
    try:
        errors.extend(found)
    except HloError as error:
        unreadable.append(error)


def _parameters(entry: Computation) -> list[Instruction]:
    try:
        return entry.parameters
    except HloError:  # their numbers are wrong, which is reported
        return []


def _count(module: Module, name: str) -> int:
    """The number of replicas or partitions in the header; 1 if it has none.

    `replica_count=0` stands for an unknown number, as in XLA. Raises HloVerifyError for other
    numbers below 1.
    """
    text = module.attributes.get(name)
    if text is None:
        return 1
    from hloopt.ir.attributes.values import parse_int

    try:
        count = parse_int(text)
    except HloError as error:
        span = header_span(module, name)
        raise HloVerifyError(error.message, span=span, code="HLO108") from None
    if count == 0 and name == "replica_count":
        return 1
    if count < 1:
        raise HloVerifyError(
            f"{name}={count}: a module runs on one device at least",
            span=header_span(module, name),
            help=f"leave {name} out where it is not known",
            code="HLO108",
        )
    return count


def verify_changes(module: Module, state: VerifiedState, options: VerifierOptions) -> None:
    """Raise the first problem of what changed since `state`. See `verify_module`."""
    errors = verify_module(module, options, state)
    if errors:
        first = errors[0]
        others = len(errors) - 1
        more = f" (and {counted(others, 'more problem')})" if others else ""
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


def _check(
    computation: Computation,
    rules: InstructionRules,
    about_it: Sequence[Rule],
    of_interest: list[Instruction],
) -> Iterable[HloError]:
    problems = check_computation(computation)
    yield from problems
    if problems:
        return
    for instruction, error in rules.problems(computation):
        yield placed(error, instruction)
    yield from broken_rules(about_it, computation, of_interest, rules.setting)
