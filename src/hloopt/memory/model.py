"""What a memory analysis finds, whichever way it was found. All sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.memory.buffers import BufferKind


@dataclass(frozen=True, slots=True)
class MemorySizes:
    """Sizes of one kind of memory, each a sum over buffers."""

    argument: int = 0
    output: int = 0
    """Outputs with their pointer table, those in donated arguments included."""
    alias: int = 0
    """Donated arguments that an output reuses: part of both argument and output."""
    temp: int = 0
    """The most that temporaries need at one time, and the pointer tables among them."""


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """A buffer that is needed at the peak."""

    name: str
    """The instruction that defines it, with a shape index where its result is a tuple."""
    computation: str
    shape: str
    size: int
    kind: BufferKind
    op_name: str
    """Where the program made it, from its metadata; empty where there is none."""
    live: tuple[int, int]
    """First and last position, both included, of the live range that holds the peak."""


@dataclass(frozen=True, slots=True)
class PeakInstruction:
    """Where most memory is in use."""

    position: int
    name: str
    computation: str
    opcode: str
    op_name: str


@dataclass(slots=True)
class MemoryReport:
    """How much memory a module needs on one device, when and for what."""

    module: str
    order: str
    """The order the positions count in: "schedule", or the order assumed for want of one."""
    device: MemorySizes
    host: MemorySizes
    """What lies in host memory, `S(5)`; in no other number of the report."""
    constant: int
    peak: int
    """The most that is in use at one time. XLA's own number also counts host memory."""
    peak_instruction: PeakInstruction | None
    """None for a module that needs no memory."""
    live_at_peak: list[LiveBuffer]
    """Largest first; the sizes add up to `peak`."""
    timeline: list[int]
    """Bytes in use at each position."""
    assumptions: list[str] = field(default_factory=list)
    """What the numbers rest on, one sentence each."""

    @property
    def throughout(self) -> int:
        """What is set aside from beginning to end: argument + output - alias + constant."""
        return self.device.argument + self.device.output - self.device.alias + self.constant

    @property
    def total(self) -> int:
        """Argument + output - alias + constant + temp."""
        return self.throughout + self.device.temp
