"""Rules about instructions and the computations they call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.typed import is_composite
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import EMBEDDED_CALLERS, Opcode
from hloopt.ir.shape_inference.operation import show
from hloopt.ir.shapes.shape import Shape, agree, compatible, same_kind, same_type
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken

ON_ONE_THREAD = frozenset((Opcode.WHILE, Opcode.CONDITIONAL, Opcode.FUSION))
CALLERS = EMBEDDED_CALLERS | ON_ONE_THREAD | {Opcode.CALL}


def check_threads(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """Loops, branches and fusions run on the thread of their computation; a fused computation
    may also say nothing, which means the main one.

    With `verify_call_nested_computation_thread_name` all calls do but asynchronous ones.
    """
    thread = computation.execution_thread
    is_strict = setting.options.verify_call_nested_computation_thread_name
    for caller in found:
        for callee in caller.called:
            if callee.execution_thread == thread:
                continue
            if caller.opcode is Opcode.FUSION and callee.execution_thread == "main":
                continue  # XLA:CPU makes such fusions on other threads
            if caller.opcode in ON_ONE_THREAD:
                yield broken(
                    caller,
                    "Callable instruction expects parent computation thread name same as called "
                    f"computation's thread name ({thread} vs {callee.execution_thread})",
                )
            elif is_strict and caller.opcode in CALLERS:
                yield broken(
                    caller,
                    f"{caller.name} to_apply computation execution thread does not match "
                    f"({callee.execution_thread} vs {thread})",
                )


def check_composite(instruction: Instruction, setting: Setting) -> None:
    """A composite call has a name, and a version that is a natural number where it has one."""
    if not is_composite(instruction):
        return
    text = instruction.attributes.get("frontend_attributes")
    if text is None:
        raise HloVerifyError("A composite call op must have frontend attributes")
    composite = "A composite call op must have frontend attributes with a"
    values = parse_frontend_attributes(text)
    if not values.get("composite.name"):
        raise HloVerifyError(f"{composite} composite.name")
    version = values.get("composite.version", "0")
    if not version.isdecimal():
        raise HloVerifyError(
            f"{composite} composite.version whose value is a non-negative integer, not '{version}'"
        )


def check_conditional(instruction: Instruction, setting: Setting) -> None:
    """Each branch takes the operand given for it."""
    branches = instruction.called
    if len(instruction.operands) != len(branches) + 1:
        raise HloVerifyError(
            f"{len(branches)} branches need {len(branches) + 1} operands, found "
            f"{len(instruction.operands)}"
        )
    for number, (branch, operand) in enumerate(
        zip(branches, instruction.operands[1:], strict=True), 1
    ):
        parameters = branch.parameters
        if len(parameters) != 1:
            raise HloVerifyError(
                f"Expected computation {branch.name} called from {instruction.name} to have 1 "
                f"parameters, has {len(parameters)}"
            )
        if not agree(
            operand.shape,
            parameters[0].shape,
            any_precision=setting.options.allow_mixed_precision,
        ):
            raise HloVerifyError(
                f"operand {number} shape does not match parameter of branch %{branch.name}: "
                f"{show(operand.shape)} vs "
                f"{show(parameters[0].shape)}"
            )


def check_fusion(instruction: Instruction, setting: Setting) -> None:
    """A fusion has the shape of its computation's root, and operands for its parameters."""
    if len(instruction.called) != 1:
        raise HloVerifyError("a fusion calls one computation")
    callee = instruction.called[0]
    root = callee.root.shape
    if not compatible(root, instruction.shape):
        raise HloVerifyError(
            f"Fused computation shape ({root.text}) is not equal to the fusion shape "
            f"({instruction.shape.text})"
        )
    parameters = callee.parameters
    if len(parameters) > len(instruction.operands):
        raise HloVerifyError(
            f"Fused parameter count ({len(parameters)}) is greater than the number of operands "
            f"({len(instruction.operands)}) passed to the fusion instruction"
        )
    check_binding(
        parameters,
        [operand.shape for operand in instruction.operands],
        compatible,
        lambda number, parameter, operand: (
            f"Shape mismatch between parameter number {number} and its operand "
            f"({parameter.shape.text} != {operand.text})"
        ),
    )


def check_binding(
    parameters: Iterable[Instruction],
    operands: Iterable[Shape],
    fits: Callable[[Shape, Shape], bool],
    message: Callable[[int, Instruction, Shape], str],
) -> None:
    """Raise HloVerifyError with `message` for the first parameter that does not fit its operand."""
    for number, (parameter, operand) in enumerate(zip(parameters, operands, strict=False)):
        if not fits(parameter.shape, operand):
            raise HloVerifyError(message(number, parameter, operand))


def check_fused(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """A fused computation belongs to one fusion."""
    for fusion in found:
        for fused in fusion.called:
            owner = next(c for c in fused.callers if c.opcode is Opcode.FUSION)
            if owner is not fusion:
                yield broken(
                    fusion,
                    "Instruction of fused computation does not match: "
                    f"%{fused.name} belongs to fusion %{owner.name}",
                )


def check_fused_uses(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """All of a fused computation serves its root, unless `allow_dead_code`. O(its edges)."""
    for fusion in found:
        for fused in fusion.called:
            used = {operand for i in fused.instructions for operand in i.operands}
            used.add(fused.root)
            if len(used) == len(fused):
                continue
            for instruction in fused.instructions:
                if instruction not in used:
                    yield broken(
                        instruction,
                        f"Non-root instruction in fusion %{fusion.name} must have users",
                    )


def check_applied(instruction: Instruction, setting: Setting) -> None:
    """A map's computation takes one scalar of each operand, of its element type."""
    if len(instruction.called) != 1:
        return
    parameters = instruction.called[0].parameters
    if len(parameters) != len(instruction.operands):
        raise HloVerifyError(
            f"Expected computation {instruction.called[0].name} called from {instruction.name} to "
            f"have {len(instruction.operands)} parameters, has {len(parameters)}"
        )
    check_binding(
        parameters,
        [operand.shape for operand in instruction.operands],
        same_kind if setting.options.allow_mixed_precision else same_type,
        lambda number, parameter, operand: (
            f"Shape mismatch between to_apply computation parameter and operand {number}: "
            f"{show(parameter.shape)} for elements of {show(operand)}"
        ),
    )
