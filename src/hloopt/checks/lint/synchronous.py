"""A copy of the module in which passes about synchronous collectives find those that are split."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.async_operations import SYNC_COLLECTIVES
from hloopt.checks.lint.costs import collectives, runners
from hloopt.checks.view import View
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode

_STARTED_AS = "async_collective_name"


@dataclass(frozen=True, slots=True)
class SynchronousCopy:
    """A copy of a module, for a rule to change."""

    module: Module
    originals: dict[Instruction, Instruction]
    """By collective of the copy the one of the module; of a pair its start."""


def synchronous_copy(view: View) -> SynchronousCopy:
    """A copy of the module in which each start and done are one collective, where the done was.

    Only a schedule says which pairs those are: without one they stay split. O(instructions).
    """
    from hloopt.ir.clone import clone_module
    from hloopt.pass_framework.base import PassContext
    from hloopt.passes.async_ops.convert_async_collectives_to_sync import (
        ConvertAsyncCollectivesToSync,
    )

    copy, _ = clone_module(view.subject.module)
    options = ConvertAsyncCollectivesToSync.Options(nop_opcodes=tuple(Opcode))
    ConvertAsyncCollectivesToSync(options).run(copy, PassContext(wants_remarks=False))
    by_name = {
        (runner.parent.name, runner.name): runner
        for each in collectives(view)
        for runner in runners(each)
    }
    originals: dict[Instruction, Instruction] = {}
    for instruction in copy.instructions():
        if instruction.opcode in SYNC_COLLECTIVES:
            name = frontend_attribute(instruction, _STARTED_AS) or instruction.name
            original = by_name.get((instruction.parent.name, name))
            if original is not None:
                originals[instruction] = original
    return SynchronousCopy(copy, originals)
