"""Collectives of several operands, taken apart into one for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.async_operations import OWN_STARTS, wrapped
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import is_only_taken_apart
from hloopt.pass_framework.base import ModulePass, PassContext, PassOptions, option, register
from hloopt.passes.rewriting.replace import attributes_for_another_value, replace_instruction
from hloopt.passes.rewriting.selection import selected
from hloopt.passes.rewriting.tuples import leaf_shardings

_DIVISIBLE = frozenset(
    (
        *(Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER),
        *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_BROADCAST),
    )
)
"""Collectives that do the same to each of their operands."""
_COMBINED = _DIVISIBLE | {Opcode.ALL_TO_ALL, Opcode.ASYNC_START, *OWN_STARTS} - {Opcode.COPY_START}


@register("collective-uncombiner", preserves="bits")
class CollectiveUncombiner(ModulePass):
    """Make single collectives of one with several operands: the combiners' work undone.

    All-gathers, all-reduces, reduce-scatters, permutes and broadcasts do the same to each operand.
    The operands of an all-to-all go to different devices, so that it stays. Each element of the
    result that is read gets a collective of its own, with the attributes, sharding and control
    dependencies of the combined one; the first keeps its channel id, the others get new ones. In a
    schedule they stand where it stood. It stays where something reads its result as a whole, and
    where it is asynchronous: `synchronize-collectives` undoes that. XLA has no such pass.
    O(operands and their uses) beside O(instructions).
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        names: tuple[str, ...] = option((), "names of the collectives to take apart; none: all")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        channel_ids = unused_channel_ids(module)
        found = [
            instruction
            for computation in module.computations.values()
            if not computation.is_fusion
            for instruction in computation.instructions
            if instruction.opcode in _COMBINED and _is_combined(instruction)
        ]
        parts: dict[Computation, dict[Instruction, list[Instruction]]] = {}
        for combined in selected(found, self.options.names, "combined collective", context):
            if reason := self.why_not(combined):
                context.missed(combined, reason)
            elif context.apply(combined, f"{counted(_read(combined), 'collective')} instead of it"):
                singles = _singles(combined, channel_ids)
                context.count("collectives taken apart")
                parts.setdefault(combined.parent, {})[combined] = singles
        for computation, placed in parts.items():
            computation.splice(placed)
            for combined in placed:
                computation.remove(combined)
        return bool(parts)

    def why_not(self, combined: Instruction) -> str | None:
        """The reason why a collective of several operands stays; None where it can be taken apart.

        O(its users).
        """
        if combined.opcode is Opcode.ALL_TO_ALL:
            return "each of its operands goes to another device"
        if combined.opcode not in _DIVISIBLE:
            return "it is asynchronous"
        if combined.parent.is_asynchronous:
            return "it is wrapped by an async-start"
        if constrains_layout(combined):
            return "it constrains its layout"
        if any(operand.shape.is_tuple for operand in combined.operands):
            return "it has tuples as operands, as a collective-permute in place"
        if not is_only_taken_apart(combined):
            return "its result is read as a whole, not by its elements"
        if not combined.users:
            return "nothing reads its result"
        for read in combined.users:
            if read.has_control_dependencies:
                return f"%{read.name}, which reads it, has control dependencies"
        return None


def _is_combined(instruction: Instruction) -> bool:
    """Whether an instruction is a collective of several operands, or starts one."""
    if instruction.opcode is Opcode.ASYNC_START:
        operation = wrapped(instruction)
        return operation.opcode in _COMBINED and len(operation.operands) > 1
    return len(instruction.operands) > 1


def _read(combined: Instruction) -> int:
    """The number of elements of the result that something reads."""
    return len({read.tuple_index for read in combined.users})


def _singles(combined: Instruction, channel_ids: Iterator[int]) -> list[Instruction]:
    """Let a collective of its own make each element that is read; the old one is left unread."""
    reads: dict[int, list[Instruction]] = {}
    for read in combined.users:
        reads.setdefault(read.tuple_index, []).append(read)
    whole = combined.attributes.get("sharding")
    shardings: list[str | None] = [*(leaf_shardings(combined) or ())]
    if len(shardings) != len(combined.operands):
        shardings = [whole] * len(combined.operands)
    singles: list[Instruction] = []
    for index in sorted(reads):
        attributes = attributes_for_another_value(combined)
        if singles and "channel_id" in attributes:
            attributes["channel_id"] = str(next(channel_ids))
        sharding = shardings[index]
        if sharding is not None:
            attributes["sharding"] = sharding
        single = combined.parent.add(
            combined.opcode,
            combined.shape.elements[index],
            [combined.operands[index]],
            name=combined.name,
            attributes=attributes,
            called=combined.called,
        )
        for predecessor in combined.control_predecessors:
            single.add_control_predecessor(predecessor)
        for successor in combined.control_successors:
            successor.add_control_predecessor(single)
        for read in reads[index]:
            replace_instruction(read, single)
        singles.append(single)
    return singles
