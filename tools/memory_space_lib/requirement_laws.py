"""Laws of what a layout asks for: parameters and results of the program, constants."""

from __future__ import annotations

from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.shape import Shape
from memory_space_lib.faults import Fault, Kind
from memory_space_lib.subject import Faults, Subject


def requirements_are_kept(subject: Subject) -> Faults:
    """Entry parameters, results of the entry and constants are in the spaces they were in.

    Parameters that were in alternate memory may be loaded there by the program instead.
    """
    before, after = subject.before.entry, subject.line.module.entry
    may_move = subject.options.entry_parameters_allowed_in_alternate_memory
    pairs = zip(before.parameters, after.parameters, strict=True)
    for old, new in pairs if not may_move else ():
        for was, now in _spaces(old.shape, new):
            if now not in (was, subject.options.default_memory_space):
                yield _moved(new, was, now)
    for was, now in _spaces(before.root.shape, after.root):
        if was != now:
            yield _moved(after.root, was, now)
    for step in subject.line.steps:
        is_old = step.name in subject.old and subject.old[step.name].opcode is step.opcode
        if step.opcode is Opcode.CONSTANT and is_old:
            for was, now in _spaces(subject.old[step.name].shape, step):
                if was != now:
                    yield _moved(step, was, now)


def _spaces(before: Shape, after: Instruction) -> list[tuple[int, int]]:
    """The memory spaces of the leaves of a result, before and after."""
    leaves = zip(before.leaves(), after.shape.leaves(), strict=True)
    return [(old.layout.memory_space, new.layout.memory_space) for old, new in leaves]


def _moved(instruction: Instruction, was: int, now: int) -> Fault:
    text = f"%{instruction.name} has to be in memory space {was}, and is in {now}"
    return Fault(Kind.REQUIRED, text)
