"""Right changes of precision: roundings that come earlier, later, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hloopt.equivalence.coverage import CALLERS
from hloopt.equivalence.path_types import NARROW
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode

Change: TypeAlias = Callable[[Module], bool]
"""Changes a module; whether anything is other."""

_COMPUTED = (ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.DOT}) - {
    *(Opcode.COPY, Opcode.CONVERT, Opcode.COMPLEX, Opcode.COMPARE),
}


def lowered(module: Module) -> bool:
    """Compute in bf16 or f16 what is f32 and converted to that by all users.

    Operands may be beyond the range of 8 bits where the result is not.
    """
    changed = False
    for instruction in list(module.instructions()):
        name = _type_of_users(instruction)
        if name is None or not _is_computed(instruction, "f32"):
            continue
        operands = [_converted(operand, name) for operand in instruction.operands]
        narrow = instruction.parent.add_clone(instruction, operands)
        narrow.set_shape(instruction.shape.with_element_type(name))
        for user in list(instruction.users):
            user.replace_all_uses_with(narrow)
            if user.is_root:
                user.parent.set_root(narrow)
        changed = True
    return changed


def raised(module: Module) -> bool:
    """Compute in f32 what is narrow, and round the results; not in what is applied to elements."""
    changed = False
    whole = [c for c in module.computations.values() if _runs_as_a_whole(c)]
    for instruction in [i for computation in whole for i in computation.instructions]:
        element = instruction.shape.element_type
        if element is None or not element.is_floating or element.bits >= NARROW:
            continue
        if not _is_computed(instruction, element.name):
            continue
        operands = [_converted(operand, "f32") for operand in instruction.operands]
        wide = instruction.parent.add_clone(instruction, operands)
        wide.set_shape(instruction.shape.with_element_type("f32"))
        _replace(instruction, _converted(wide, element.name))
        changed = True
    return changed


def without_round_trips(module: Module) -> bool:
    """Leave out conversions to a narrow type and back."""
    changed = False
    for back in list(module.instructions(Opcode.CONVERT)):
        (there,) = back.operands
        if there.opcode is not Opcode.CONVERT:
            continue
        (origin,) = there.operands
        element, between = origin.shape.element_type, there.shape.element_type
        if element is None or between is None or origin.shape.type_name != back.shape.type_name:
            continue
        if element.is_floating and between.is_floating and between.bits < element.bits:
            _replace(back, origin)
            changed = True
    return changed


def kept_wide(module: Module) -> bool:
    """Compute in f32 what is narrow, and round only at the end."""
    return raised(module) and without_round_trips(module)


CHANGES: dict[str, Change] = {
    "lowered": lowered,
    "round trips left out": without_round_trips,
    "kept wide": kept_wide,
}


def _is_computed(instruction: Instruction, name: str) -> bool:
    """Whether an operation has operands and a result of one float type, and is not in a fusion."""
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    return instruction.opcode in _COMPUTED and all(shape.type_name == name for shape in shapes)


def _type_of_users(instruction: Instruction) -> str | None:
    """The one narrow type that all users convert to."""
    names = {
        user.shape.type_name if user.opcode is Opcode.CONVERT else "" for user in instruction.users
    }
    if len(names) != 1 or instruction.is_root:
        return None
    name = names.pop()
    return name if name in ("bf16", "f16") else None


def _runs_as_a_whole(computation: Computation) -> bool:
    return all(caller.opcode in CALLERS for caller in computation.callers)


def _converted(value: Instruction, name: str) -> Instruction:
    shape = value.shape.with_element_type(name)
    return value.parent.add(Opcode.CONVERT, shape, [value])


def _replace(old: Instruction, new: Instruction) -> None:
    old.replace_all_uses_with(new)
    if old.is_root:
        old.parent.set_root(new)
