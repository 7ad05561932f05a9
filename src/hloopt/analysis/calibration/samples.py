"""Measured instructions, with the times that the figures of a target give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hloopt.analysis.async_operations import SEND_RECV, SYNC_COLLECTIVES, wrapped
from hloopt.analysis.cost.roofline import MATRIX
from hloopt.analysis.gpu_async import is_gpu_begin, is_gpu_end
from hloopt.analysis.latency.estimates import Estimates, is_nothing
from hloopt.analysis.latency.run_times import CONTROL_FLOW
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.opcode import ASYNC
from hloopt.targets.target import Target, rated_type

MEMORY = "memory"
MATRIX_RATE = "matrix"
VECTOR_RATE = "vector"
LAUNCH = "launch"
"""The kinds of figures; those of links are named as the target names the link."""


class Name(NamedTuple):
    """The name of a figure of a target."""

    kind: str
    """`MEMORY`, `MATRIX_RATE`, `VECTOR_RATE`, `LAUNCH`, or a link."""
    element_type: str = ""
    """Of a rate."""

    def __str__(self) -> str:
        return f"{self.kind} {self.element_type}".rstrip()


class Part(NamedTuple):
    """A bound of an instruction: the seconds that one figure of the target gives it."""

    figure: Name
    seconds: float


class Sample(NamedTuple):
    """A measured instruction."""

    instruction: Instruction
    measured: float
    """Seconds."""
    parts: tuple[Part, ...]
    """The longest counts; at least one, none of 0 seconds."""
    launch: float = 0.0
    """Seconds before; only of collectives, on targets that state a launch."""


def samples_of(module: Module, target: Target, costs: Mapping[str, float]) -> Iterator[Sample]:
    """The instructions with a cost whose bytes and flops are known, in the module's order.

    `costs` are microseconds by name, above 0. Starts stand for their operations. O(instructions).
    """
    estimates = Estimates(module, target)
    for instruction in module.instructions():
        cost = costs.get(instruction.name, 0.0)
        if cost > 0:
            sample = _sample(instruction, cost / 1e6, estimates, target)
            if sample is not None:
                yield sample


def _sample(
    instruction: Instruction, measured: float, estimates: Estimates, target: Target
) -> Sample | None:
    opcode = instruction.opcode
    if is_gpu_end(instruction) or opcode in CONTROL_FLOW or is_nothing(instruction):
        return None
    inner = wrapped(instruction) if opcode is Opcode.ASYNC_START else instruction
    if is_gpu_begin(inner) or inner.opcode in SYNC_COLLECTIVES or inner.opcode in SEND_RECV:
        transfer = None if inner.opcode is Opcode.COPY_START else estimates.links.transfer(inner)
        if transfer is None or transfer.way is None or not transfer.seconds:
            return None
        if inner.opcode is Opcode.RAGGED_ALL_TO_ALL:  # its operands say only how much at most
            return None
        part = Part(Name(transfer.way), transfer.seconds)
        return Sample(instruction, measured, (part,), transfer.launch / 1e6)
    if opcode in ASYNC or not estimates.is_known(instruction):
        return None
    bound = estimates.bound(instruction)
    parts = [Part(Name(MEMORY), bound.memory)]
    rate = _rate_of(instruction, estimates, target)
    if rate is not None:
        parts.append(Part(rate, bound.compute))
    parts = [part for part in parts if part.seconds > 0]
    return Sample(instruction, measured, tuple(parts)) if parts else None


def _rate_of(instruction: Instruction, estimates: Estimates, target: Target) -> Name | None:
    """The rate that the arithmetic of an instruction mostly runs at; None without arithmetic."""
    longest, found = 0.0, None
    for each in _unfused(instruction):
        seconds = estimates.roofline.compute(each)
        if seconds > longest:
            longest, found = seconds, each
    if found is None:
        return None
    if found.opcode in MATRIX or found.opcode is Opcode.CUSTOM_CALL:
        kind = rated_type(target.matrix, found.operands[0].shape.type_name)
        return None if kind is None else Name(MATRIX_RATE, kind)
    shape = next((leaf for leaf in found.shape.leaves() if leaf.is_array), None)
    kind = None if shape is None else rated_type(target.vector, shape.type_name)
    return None if kind is None else Name(VECTOR_RATE, kind)


def _unfused(instruction: Instruction) -> Iterator[Instruction]:
    """The instruction, or what it fuses, nested fusions included."""
    waiting = [instruction]
    while waiting:
        each = waiting.pop()
        if each.opcode is Opcode.FUSION:
            waiting.extend(each.called[0].instructions)
        else:
            yield each
