"""Whether assigned memory spaces follow the plan for an unrolled loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.patterns import show
from conformance_lib.scene import Scene
from hloopt.analysis.dataflow import Use
from hloopt.ir import Instruction, Opcode
from hloopt.memory_space.loop_optimizer.plan import Choice, PlannedUse
from hloopt.passes.memory_space.report import MemorySpaceReport

_NOT_COUNTED = (
    Opcode.COPY_START,
    Opcode.COPY_DONE,
    Opcode.PARAMETER,
    Opcode.GET_TUPLE_ELEMENT,
)


def check_loop_plan(
    scene: Scene, report: MemorySpaceReport, expected: Mapping[str, Any]
) -> Iterator[str]:
    """Mismatches of the operands of op0, op1, … and next_op0, next_op1, … with the plan.

    Raises RecordError where nothing is planned.
    """
    if not report.loop_plan.uses:
        raise RecordError("no loop was planned")
    first, end = expected["loop"]
    steps = [i for i in scene.module.entry.instructions if i.opcode not in _NOT_COUNTED]
    step_before: dict[Instruction, Instruction | None] = {}
    last = None
    for instruction in scene.module.entry.instructions:
        if instruction.opcode in _NOT_COUNTED:
            step_before[instruction] = last
        else:
            last = instruction
    space = scene.options.get("alternate_memory_space", 1)
    for name in (f"{prefix}op{k}" for prefix in ("", "next_") for k in range(end - first)):
        user = scene.find(name)
        if user not in steps:
            raise RecordError(f"%{name} is no step of the entry")
        for number, operand in enumerate(user.operands):
            planned = report.loop_plan.uses.get(Use(user, number, 0))
            what = f"operand {number} of %{name}"
            if planned is not None:
                yield from _check(what, operand, planned, space, step_before)
            elif not expected.get("unsupported"):
                yield f"{what} is not planned"


def _check(
    what: str,
    operand: Instruction,
    planned: PlannedUse,
    space: int,
    step_before: Mapping[Instruction, Instruction | None],
) -> Iterator[str]:
    is_copy = operand.opcode is Opcode.COPY_DONE
    if is_copy != (planned.choice is Choice.PREFETCH):
        yield f"{what}: planned {planned.choice.name}, found {show(operand)}"
        return
    wanted = 0 if planned.choice is Choice.DEFAULT else space
    if operand.shape.layout.memory_space != wanted:
        yield f"{what}: expected memory space {wanted}, found {show(operand)}"
    if is_copy and step_before[operand.operands[0]] is not planned.start_after:
        found = step_before[operand.operands[0]]
        yield f"{what}: the copy starts after {found and show(found)}, not as planned"
