"""Measured instructions, with the times that the figures of a target give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from hloopt.analysis.async_operations import SEND_RECV, SYNC_COLLECTIVES, wrapped
from hloopt.analysis.cost.roofline import unfused, unit_of
from hloopt.analysis.gpu_async import is_gpu_begin, is_gpu_end
from hloopt.analysis.latency.estimates import Estimates, is_nothing
from hloopt.analysis.latency.links import CARD, NVLINK
from hloopt.analysis.latency.run_times import CONTROL_FLOW
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.opcode import ASYNC
from hloopt.targets.target import Target, rated_type


class Kind(StrEnum):
    """The kinds of figures of a target."""

    MEMORY = "memory"
    MATRIX = "matrix"
    VECTOR = "vector"
    LINK = "link"
    NVLINK = "NVLink lane"
    CARD = "network card"
    LAUNCH = "launch"


class Name(NamedTuple):
    """The name of a figure of a target."""

    kind: Kind
    of: str = ""
    """The element type of a rate, the name of a link."""

    def __str__(self) -> str:
        return f"{self.kind} {self.of}".rstrip()


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

    @property
    def stated(self) -> float:
        """Seconds by the figures of the target."""
        return self.launch + max(part.seconds for part in self.parts)


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
        part = Part(_way(transfer.way, target), transfer.seconds)
        return Sample(instruction, measured, (part,), transfer.launch / 1e6)
    if opcode in ASYNC or not estimates.is_known(instruction):
        return None
    bound = estimates.bound(instruction)
    parts = [Part(Name(Kind.MEMORY), bound.memory)]
    rate = _rate_of(instruction, estimates, target)
    if rate is not None:
        parts.append(Part(rate, bound.compute))
    parts = [part for part in parts if part.seconds > 0]
    return Sample(instruction, measured, tuple(parts)) if parts else None


def _way(name: str, target: Target) -> Name:
    """The figure of a way; a section `gpu` has those between devices."""
    if target.gpu is not None and name in (NVLINK, CARD):
        return Name(Kind(name))
    return Name(Kind.LINK, name)


def _rate_of(instruction: Instruction, estimates: Estimates, target: Target) -> Name | None:
    """The rate that the arithmetic of an instruction mostly runs at; None without arithmetic."""
    compute = estimates.roofline.compute
    longest = max(unfused(instruction), key=compute)
    if not compute(longest):
        return None
    is_matrix, element_type = unit_of(longest)
    rates, kind = (target.matrix, Kind.MATRIX) if is_matrix else (target.vector, Kind.VECTOR)
    rated = rated_type(rates, element_type)
    return None if rated is None else Name(kind, rated)
