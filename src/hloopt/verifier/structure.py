"""Rules about the graph: operands, roots, parameters, callers, orders."""

from __future__ import annotations

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.computation import Computation, numbered_in_order
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first, stable_order
from hloopt.verifier.report import broken

_PARAMETER = Opcode.PARAMETER  # a member of an enum is slow to look up in a loop


def check_module(module: Module) -> list[HloError]:
    """Problems between computations. O(computations + calls)."""
    if module.entry is None or module.entry.name not in module.computations:
        return [HloVerifyError(f"module {module.name} has no entry computation", code="HLO200")]
    errors: list[HloError] = []
    if module.entry.callers:
        caller = next(iter(module.entry.callers))
        errors.append(
            HloVerifyError(
                f"%{caller.name} calls the entry computation %{module.entry.name}",
                code="HLO205",
                span=module.span_of(caller),
            )
        )
    try:
        depth_first(module.computations.values(), _callers)
    except HloVerifyError:
        errors.append(HloVerifyError("computations call each other in a cycle", code="HLO205"))
    return errors


def _callers(computation: Computation) -> list[Computation]:
    return [caller.parent for caller in computation.callers]


def check_computation(computation: Computation) -> list[HloError]:
    """Problems inside one computation, attributes and shapes aside. O(edges).

    A computation as it was read has been checked by the reader, parameters excepted.
    """
    errors = _check_parameters(computation)
    if not computation.is_pristine:
        errors += _check_members(computation)
        errors = errors or _check_order(computation)
    return errors


def _check_members(computation: Computation) -> list[HloError]:
    module = computation.module
    members = computation.instructions
    errors: list[HloError] = []
    if computation.root not in computation:
        errors.append(
            HloVerifyError(
                f"the root of computation %{computation.name} is not part of it", code="HLO202"
            )
        )
    member_set = set(members)
    computations = module.computations
    for instruction in members:
        if not member_set.issuperset(instruction.operands):
            stranger = next(o for o in instruction.operands if o not in member_set)
            errors.append(
                broken(
                    instruction, f"operand %{stranger.name} is in a different computation", "HLO202"
                )
            )
        if instruction.called:
            errors += [
                broken(instruction, f"calls %{callee.name}, which is not in the module", "HLO203")
                for callee in instruction.called
                if computations.get(callee.name) is not callee
            ]
    return errors


def _check_parameters(computation: Computation) -> list[HloError]:
    parameters = [i for i in computation.instructions if i.opcode is _PARAMETER]
    if numbered_in_order(parameters):
        return []
    seen: dict[int, Instruction] = {}
    errors: list[HloError] = []
    for parameter in parameters:
        number = parameter.payload.strip()
        if not number.isdecimal() or len(number) > 9:
            errors.append(broken(parameter, f"'{number}' is not a parameter number", "HLO201"))
            continue
        other = seen.setdefault(int(number), parameter)
        if other is not parameter:
            message = f"parameter {int(number)} is already %{other.name}"
            errors.append(broken(parameter, message, "HLO201"))
    if errors:
        return errors
    for parameter in parameters:
        if parameter.parameter_number >= len(parameters):
            errors.append(
                broken(
                    parameter,
                    f"parameter number {parameter.payload}: the computation has "
                    f"{len(parameters)} parameters, numbered from 0 without gaps",
                    "HLO201",
                )
            )
    return errors


def _check_order(computation: Computation) -> list[HloError]:
    """No cycles; in a scheduled module, operands before users."""
    if not computation.module.is_scheduled or computation.is_fusion:
        try:
            stable_order(computation)
        except HloVerifyError as error:
            return [error.coded("HLO205")]
        return []
    seen: set[Instruction] = set()
    for instruction in computation.instructions:
        for before in (*instruction.operands, *instruction.control_predecessors):
            if before not in seen:
                message = f"is scheduled before %{before.name}, which it needs"
                return [broken(instruction, message, "HLO206")]
        seen.add(instruction)
    return []
