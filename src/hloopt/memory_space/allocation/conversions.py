"""Synchronous copies and slices that can become asynchronous copies into alternate memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from hloopt.ir import Instruction, Opcode
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import TRIVIAL, Program

_SLICES = (Opcode.SLICE, Opcode.DYNAMIC_SLICE)


@dataclass(slots=True, eq=False)
class Conversion:
    """An operation that reads a value in default memory and leaves its result in alternate."""

    operation: Instruction
    source: int
    """The value that is read."""
    result: int
    """The value that is made."""
    operand: int = 0
    """The operand that holds what is read."""


@dataclass(slots=True)
class Conversions:
    """The operations that can be converted, by what they read. One that failed stays as it is."""

    by_result: dict[Instruction, Conversion] = field(default_factory=dict)
    by_source: dict[int, list[Conversion]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        program: Program,
        options: MemorySpaceOptions,
        candidates: Iterable[Buffer],
        final: Iterable[int] = (),
        *,
        in_blocks: bool = False,
    ) -> Conversions:
        """Find them among the results in candidate buffers, without values that are final.

        Custom fusions are among them where they are prefetched `in_blocks`. O(instructions).
        """
        found = cls()
        flow = program.flow
        results = set(flow.held[program.module.entry.root])
        allowed = {value for buffer in candidates for value in buffer.values} - set(final)
        for operation in program.schedule.steps:
            operand = _loaded_operand(operation, options, in_blocks)
            if operand is None:
                continue
            loaded = operation.operands[operand]
            source, result = flow.held[loaded][0], flow.held[operation][0]
            if result not in allowed or source in final or not _is_in_default(operation, loaded):
                continue
            read = (value for other in operation.operands for value in flow.held[other])
            if any(flow.definer[value] in found.by_result for value in read):
                continue
            if flow.definer[result] is not operation:
                continue
            if operation.is_root or result in results or _feeds_async_start(loaded):
                continue
            found.add(Conversion(operation, source, result, operand))
        return found

    def add(self, conversion: Conversion) -> None:
        self.by_result[conversion.operation] = conversion
        self.by_source.setdefault(conversion.source, []).append(conversion)

    def give_up(self, conversion: Conversion) -> None:
        """Leave an operation as it is."""
        del self.by_result[conversion.operation]
        self.by_source[conversion.source].remove(conversion)


def bounds(
    program: Program, operations: Sequence[Instruction], inside: Collection[Instruction] = ()
) -> tuple[int, int]:
    """The time after which operations have all they read, and the one before which they must end.

    The latter is that of a write into what they read, or of a control successor; the end of the
    program where there is neither. Operands `inside`, which one of them makes for another, do not
    count. O(positions of the buffers that are read).
    """
    flow, times = program.flow, program.schedule.times
    first = min(map(program.time, operations))
    before: list[Instruction] = []
    after: list[Instruction] = []
    buffers: dict[Buffer, None] = {}
    for operation in operations:
        before += operation.control_predecessors
        after += operation.control_successors
        for operand in operation.operands:
            if operand not in inside:
                before.append(operand)
                buffers |= dict.fromkeys(program.buffers.of_value[v] for v in flow.held[operand])
    after += [
        p.instruction
        for buffer in buffers
        for value in buffer.values
        for p in flow.positions(value)
        if p.instruction.opcode not in TRIVIAL
    ]
    ready = max((times[i] for i in before), default=first)
    return ready, min((times[i] for i in after if times[i] > first), default=program.end)


def _loaded_operand(
    operation: Instruction, options: MemorySpaceOptions, in_blocks: bool
) -> int | None:
    """The operand of which an operation loads a part or all; None if it cannot be converted."""
    if in_blocks and operation.opcode is Opcode.FUSION:
        number = options.custom_fusion_block_prefetch_operand
        is_custom = operation.attribute("kind") == "kCustom"
        if not options.enable_sync_custom_fusion_replacement or not is_custom or number is None:
            return None
        has_array = number < len(operation.operands) and operation.operands[number].shape.is_array
        return number if has_array else None
    return 0 if _is_convertible(operation, options) else None


def _is_convertible(operation: Instruction, options: MemorySpaceOptions) -> bool:
    if operation.opcode is Opcode.COPY:
        source = operation.operands[0].shape
        return options.enable_sync_copy_replacement and operation.shape is source
    if operation.opcode not in _SLICES or not options.enable_sync_slice_replacement:
        return False
    implemented = options.async_slices_implemented
    if not isinstance(implemented, bool):
        implemented = operation.opcode.value in implemented.opcodes
    same_type = operation.shape.type_name == operation.operands[0].shape.type_name
    return implemented and same_type


def _is_in_default(operation: Instruction, loaded: Instruction) -> bool:
    return {s.layout.memory_space for s in (operation.shape, loaded.shape)} == {0}


def _feeds_async_start(loaded: Instruction) -> bool:
    """Whether what an operation reads is read by an async-start as well."""
    return any(user.opcode is Opcode.ASYNC_START for user in loaded.users)
