"""Borders of computations: what an instruction hands to the computations it runs, and gets back."""

from __future__ import annotations

from hloopt.analysis.dataflow import Position, slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attributes.values import parse_int
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves
from hloopt.verifier.instruction_rules import KEEPS_PRECISION

OWNERS = frozenset(
    (
        *(Opcode.FUSION, Opcode.WHILE, Opcode.SCAN, Opcode.CONDITIONAL, Opcode.CALL),
        Opcode.ASYNC_START,
    )
)
"""The instructions that run computations on their operands as a whole: decided together."""
OF_ONE_TYPE = KEEPS_PRECISION - OWNERS
"""The operations that pass elements on and can change no types: they need converts for that."""
WITH_OWN_VALUES = (Opcode.FUSION, Opcode.SCAN)
"""Those of them at whose borders values end: types have to agree there all the same."""


def is_shared(instruction: Instruction) -> bool:
    """Whether something else runs one of the computations of an instruction, too."""
    return any(sum(called.callers.values()) > 1 for called in instruction.called)


def is_alone(computation: Computation) -> bool:
    """Whether the root of a computation has to stay alone: an asynchronous operation is wrapped."""
    return computation.is_asynchronous


def receivers(leaves: Leaves, owner: Instruction, operand: int) -> list[Instruction]:
    """The parameters that get an operand of an owner."""
    if owner.opcode is Opcode.WHILE:
        return [leaves.parameters(called)[0] for called in owner.called]
    if owner.opcode is Opcode.CONDITIONAL:
        return leaves.parameters(owner.called[operand - 1]) if operand else []
    return [leaves.parameters(owner.called[0])[operand]]


def bodies(owner: Instruction) -> tuple[Computation, ...]:
    """The computations whose roots are results of an owner: all but a while's condition."""
    return owner.called[:1] if owner.opcode is Opcode.WHILE else owner.called


def first_slot_of_result(owner: Instruction) -> int:
    """The slot where the result of an owner's computation stands in its own result."""
    if owner.opcode is Opcode.ASYNC_START:
        return slots_of(owner.shape).element_starts[1]
    return 0


def carried(leaves: Leaves, scan: Instruction, place: Position) -> list[Position]:
    """The leaves that have one type with a leaf at the border of a scan, if that is of a carry.

    These are the parameter, the leaf of the body's root and that of the result.
    """
    body = scan.called[0]
    inputs = len(scan.operands) - parse_int(scan.attributes["num_carries"])
    is_tuple = body.root.shape.is_tuple
    results = len(body.root.shape.elements) if is_tuple else 1
    outputs = results - (len(scan.operands) - inputs)
    if place.instruction.opcode is Opcode.PARAMETER and place.instruction.parent is body:
        number = place.instruction.parameter_number - inputs
    else:
        number = place.slot - is_tuple - outputs
    if number < 0:
        return []
    slot = is_tuple + outputs + number
    parameter = leaves.parameters(body)[inputs + number]
    return [Position(parameter, 0), Position(body.root, slot), Position(scan, slot)]
