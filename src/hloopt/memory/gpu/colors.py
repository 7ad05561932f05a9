"""The memory XLA:GPU wants that a value in: that of collectives, or what a custom call asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from hloopt.analysis.dataflow import NOTHING, Dataflow
from hloopt.analysis.nvshmem import uses_nvshmem
from hloopt.diagnostics import HloError, HloVerifyError, PipelineError, did_you_mean
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.opcode import ASYNC, COLLECTIVES

COLLECTIVE_COLOR = 1
"""Memory that collectives of other devices may access."""
TEMPORARY_COLOR = 2
"""Temporaries apart from arguments and results."""

_OPERANDS = "operands_memory_spaces"
_RESULTS = "results_memory_spaces"
_IN_COLLECTIVE_MEMORY = COLLECTIVES - {Opcode.COLLECTIVE_BROADCAST}
_MOSAIC = ("mosaic_gpu", "mosaic_gpu_v2")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemoryFlags:
    """The flags of XLA:GPU that decide which memory buffers lie in, as in `XLA_FLAGS`."""

    xla_gpu_enable_nccl_user_buffers: bool = False
    """Operands and results of collectives lie in memory that is registered with NCCL."""
    xla_gpu_experimental_enable_nccl_symmetric_buffers: bool = False
    """Likewise, at the same address on each device."""
    xla_gpu_experimental_enable_nvshmem: bool = False
    """Likewise for collectives whose backend is NVSHMEM."""
    xla_gpu_temp_buffer_use_separate_color: bool = False
    """Temporaries get a color of their own."""

    @classmethod
    def on(cls, names: Iterable[str]) -> GpuMemoryFlags:
        """The flags with these names are true. Raises PipelineError for an unknown name."""
        known = [field.name for field in fields(cls)]
        flags = dict.fromkeys(names, True)
        for name in flags:
            if name not in known:
                raise PipelineError(
                    f"no flag '{name}' decides where XLA:GPU places buffers",
                    help=did_you_mean(name, known) or f"there are {', '.join(known)}",
                )
        return cls(**flags)

    def colors(self, flow: Dataflow) -> Iterator[tuple[int, int]]:
        """Values and the colors they are wanted in; a value may be wanted in several.

        O(instructions + slots of collectives). Raises HloVerifyError for a custom call that asks
        for memory there is not.
        """
        for computation in flow.scope.orders:
            for instruction in computation.instructions:
                if instruction.opcode is Opcode.CUSTOM_CALL:
                    yield from _of_custom_call(flow, instruction)
                elif self._is_in_collective_memory(instruction):
                    yield from _all_collective(flow, instruction)

    def _is_in_collective_memory(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        if opcode in ASYNC:
            opcode = _wrapped(instruction)
        if opcode not in _IN_COLLECTIVE_MEMORY:
            return False
        return (
            self.xla_gpu_enable_nccl_user_buffers
            or self.xla_gpu_experimental_enable_nccl_symmetric_buffers
            or (self.xla_gpu_experimental_enable_nvshmem and uses_nvshmem(instruction))
        )


def _wrapped(instruction: Instruction) -> Opcode:
    while instruction.opcode is not Opcode.ASYNC_START:
        instruction = instruction.operands[0]
    return instruction.called[0].root.opcode


def _all_collective(flow: Dataflow, instruction: Instruction) -> Iterator[tuple[int, int]]:
    """Everything it reads and writes but tables of pointers."""
    for part in (instruction, *instruction.operands):
        for value in flow.members(flow.held[part]):
            if value != NOTHING and not flow.shape(value).is_tuple:
                yield value, COLLECTIVE_COLOR


def _of_custom_call(flow: Dataflow, call: Instruction) -> Iterator[tuple[int, int]]:
    attributes = call.attributes
    has_multimem = "xla_multimem_parameters" in attributes.get("backend_config", "")
    if has_multimem and custom_call_target(call) in _MOSAIC:
        yield from _all_collective(flow, call)
    text = attributes.get("frontend_attributes", "")
    if _OPERANDS not in text and _RESULTS not in text:
        return
    asked = parse_frontend_attributes(text)
    for number, color in _pairs(call, _OPERANDS, asked.get(_OPERANDS, "")):
        if number < len(call.operands):
            yield from _wanted(flow, flow.held[call.operands[number]][:1], color)
    for number, color in _pairs(call, _RESULTS, asked.get(_RESULTS, "")):
        value = flow.at(call, (number,)) if call.shape.is_tuple else flow.held[call][0]
        if value is not None and (call.shape.is_tuple or number == 0):
            yield from _wanted(flow, (value,), color)


def _wanted(flow: Dataflow, held: Iterable[int], color: int) -> Iterator[tuple[int, int]]:
    return ((value, color) for value in flow.members(held) if value != NOTHING and color)


def _pairs(call: Instruction, name: str, text: str) -> Iterator[tuple[int, int]]:
    """The pairs of `{number:color,…}`; color 0 asks for nothing."""
    inside = text.strip().removeprefix("{").removesuffix("}")
    for entry in filter(None, map(str.strip, inside.split(","))):
        number, _, color = entry.partition(":")
        try:
            pair = int(number), int(color)
        except ValueError:
            raise _misuse(call, f"{name} wants pairs of numbers, not '{entry}'") from None
        if pair[0] < 0 or pair[1] not in (0, COLLECTIVE_COLOR, TEMPORARY_COLOR):
            raise _misuse(
                call,
                f"{name} asks for '{entry}', and XLA:GPU knows memory 0 (default), 1 "
                "(collective) and 2 (temporaries)",
            )
        yield pair


def _misuse(call: Instruction, message: str) -> HloError:
    return HloVerifyError(f"custom-call '%{call.name}': {message}")
