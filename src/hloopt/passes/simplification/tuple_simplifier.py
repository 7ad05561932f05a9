"""Remove tuples that are taken apart right away, and elements put together again."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from hloopt.analysis.async_operations import SEND_RECV
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first, stable_order
from hloopt.ir.shapes.shape import compatible
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    is_on_thread,
    option,
    register,
)
from hloopt.passes.rewriting.replace import (
    control_dependencies_can_move,
    replace_instruction,
    shardings_differ,
    why_not_in_its_place,
)
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination


@register(
    "tuple-simplifier",
    preserves="bits",
    xla=XlaPass("TupleSimplifier", "xla/hlo/transforms/simplifiers/tuple_simplifier.h"),
)
class TupleSimplifier(ModulePass):
    """Forward tuple elements to their users.

    A tuple of all elements of another value, in order, becomes that value. A get-tuple-element
    that leads to the operand of a tuple instruction becomes that operand. Operands of what was
    replaced go with it where nothing else uses them. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        exclude_entry_computation: bool = option(False, "leave the entry computation alone")
        execution_threads: tuple[str, ...] = option((), "only computations on these; none: all")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        orphans: list[Instruction] = []
        for computation in list(module.computations.values()):
            if computation.is_entry and self.options.exclude_entry_computation:
                continue
            if is_on_thread(computation, self.options.execution_threads):
                orphans += simplify_tuples(computation, context)
        if orphans:
            effects = SideEffects(module)
            options = DeadCodeElimination.Options()
            DeadCode(effects, options, context.as_part()).remove_dead(orphans)
        return bool(orphans)


def simplify_tuples(computation: Computation, context: PassContext) -> Iterable[Instruction]:
    """Simplify tuples of a computation; returns the operands of replaced ones, maybe unused now.

    Linear in the computation's size.
    """
    orphans: dict[Instruction, None] = {}
    candidates = [i for i in computation.instructions if i.opcode in _TUPLES]
    if not any(map(_replacement, candidates)):
        return orphans
    for instruction in sorted(depth_first(candidates, _read_tuples), key=_is_in_flight):
        replacement = _replacement(instruction)
        if replacement is None or not (instruction.users or instruction.is_root):
            continue
        if reason := _why_not(instruction, replacement, orphans):
            context.missed(instruction, reason)
            continue
        if not context.apply(instruction, f"replaced by %{replacement.name}"):
            break
        orphans.update(dict.fromkeys(instruction.operands))
        replace_instruction(instruction, replacement)
    if orphans and computation.module.is_scheduled:
        computation.reorder(stable_order(computation))
    return orphans


_TUPLES = (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT)


def _read_tuples(instruction: Instruction) -> list[Instruction]:
    """The operands whose replacement may let an instruction be replaced, too."""
    return [operand for operand in instruction.operands if operand.opcode in _TUPLES]


def _is_in_flight(instruction: Instruction) -> bool:
    """Whether the value is a send or recv: its read is replaced once no other one needs the
    tuple."""
    value = _replacement(instruction)
    return value is not None and value.opcode in SEND_RECV


def _replacement(instruction: Instruction) -> Instruction | None:
    """The value that a tuple or get-tuple-element equals; None if there is no such value."""
    is_tuple = instruction.opcode is Opcode.TUPLE
    return whole_value(instruction) if is_tuple else element_itself(instruction)


def whole_value(instruction: Instruction) -> Instruction | None:
    """The value from which a tuple takes all its elements, in order; None if there is none."""
    operands = instruction.operands
    if not operands or operands[0].opcode is not Opcode.GET_TUPLE_ELEMENT:
        return None
    source = operands[0].operands[0]
    if not compatible(source.shape, instruction.shape):
        return None
    for index, operand in enumerate(operands):
        if (
            operand.opcode is not Opcode.GET_TUPLE_ELEMENT
            or operand.operands[0] is not source
            or operand.tuple_index != index
        ):
            return None
    return source


def element_itself(instruction: Instruction) -> Instruction | None:
    """The operand of a tuple that a chain of get-tuple-elements leads to; None if it does not."""
    path: list[int] = []
    source = instruction
    while source.opcode is Opcode.GET_TUPLE_ELEMENT:
        path.append(source.tuple_index)
        source = source.operands[0]
    while path and source.opcode is Opcode.TUPLE:
        source = source.operands[path.pop()]
    return None if path else source


def _why_not(
    instruction: Instruction, replacement: Instruction, orphans: Container[Instruction]
) -> str | None:
    """The reason why `instruction` must stay, or None where it may be replaced.

    `orphans` are removed in the end where nothing reads them.
    """
    if shardings_differ(instruction, replacement):
        return f"its sharding differs from that of %{replacement.name}"
    if instruction.opcode is Opcode.TUPLE:
        if instruction.has_control_dependencies:
            return "it has control dependencies"
    elif not control_dependencies_can_move(instruction, replacement):
        return f"a control predecessor of it may depend on %{replacement.name}"
    return why_not_in_its_place(instruction, replacement, orphans)
