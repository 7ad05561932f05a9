"""The interface of a latency model: node costs, and latencies between instructions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import NamedTuple

from hloopt.analysis.latency.files import is_time
from hloopt.ir import Instruction
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.targets.target import Target

ORDINARY_EDGE = 1.0
"""Between dependent instructions that are not start and done of an operation, in any unit."""


class ErrorClass(StrEnum):
    """The error that times of an origin may have; docs/cost_models.md has figures."""

    GIVEN = "given"
    """None: nothing runs, or the figure is what is meant."""
    MEASURED = "measured"
    MODELLED = "modelled"
    """Formulas whose constants are those of the device."""
    ESTIMATED = "estimated"
    """Peak rates, which nothing real exceeds."""
    GUESSED = "guessed"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """The origin of a time."""

    FREE = "free"
    """Nothing runs."""
    CONSTANT = "constant"
    """The model has one figure for all of this kind, and means it."""
    STATED = "stated latency"
    """The frontend attribute `latency_metadata`."""
    TABLE = "cost table"
    PROFILE = "profile"
    MATMUL_TABLE = "matmul table"
    """Measured throughputs of matrix products."""
    COLLECTIVE_TABLE = "collective table"
    """Measured throughputs of collectives."""
    NETWORK = "network formula"
    ROOFLINE = "roofline"
    """The speed-of-light model's of kernels on a GPU."""
    RATES = "rates"
    """Bytes and flops at the rates of the target."""
    FUSION = "fusion estimate"
    """Bytes and flops of a kernel that a compiler might make of a module that is not fused."""
    LINK = "link"
    """Bytes over the links of the target."""
    GUESS = "guess"
    """The model does not know: a constant or an estimate stands in."""
    UNKNOWN = "unknown"
    """Nothing is known, so it counts as nothing."""

    @property
    def error_class(self) -> ErrorClass:
        return _ERROR_CLASSES[self]


_ERROR_CLASSES = {
    **dict.fromkeys((Origin.FREE, Origin.CONSTANT, Origin.STATED), ErrorClass.GIVEN),
    **dict.fromkeys((Origin.TABLE, Origin.PROFILE), ErrorClass.MEASURED),
    **dict.fromkeys((Origin.MATMUL_TABLE, Origin.COLLECTIVE_TABLE), ErrorClass.MEASURED),
    **dict.fromkeys((Origin.NETWORK, Origin.ROOFLINE), ErrorClass.MODELLED),
    **dict.fromkeys((Origin.RATES, Origin.FUSION, Origin.LINK), ErrorClass.ESTIMATED),
    Origin.GUESS: ErrorClass.GUESSED,
    Origin.UNKNOWN: ErrorClass.UNKNOWN,
}


class Time(NamedTuple):
    """The time something takes, and who says so."""

    cycles: float
    origin: Origin


class TableTime(NamedTuple):
    """The time of one thing by a table of measurements, in microseconds."""

    measured: float
    """The time by the table as it is."""
    smoothed: float
    """The time by the table made monotone in size."""


class LatencyModel(ABC):
    """Times in cycles, XLA's word for the unit of a model: a microsecond, or an abstract unit. To
    people a microsecond is never called a cycle.

    `node_cost` and `latency` are the cycles of `node_time` and `edge_time`. A model may define them
    to save the making of a `Time`; one that derives from it and defines only the time has the
    cycles of its own time.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        for time, cycles in (("node_time", "node_cost"), ("edge_time", "latency")):
            if time in own and cycles not in own:
                setattr(cls, cycles, getattr(LatencyModel, cycles))

    @property
    @abstractmethod
    def cycles_per_microsecond(self) -> float:
        """Cycles per microsecond."""

    @property
    def is_abstract(self) -> bool:
        """Whether a cycle is an abstract unit, which stands for no time at all."""
        return False

    @property
    def unit(self) -> str:
        """The unit of a cycle in reports: `us`, or `cycles` where it is abstract."""
        return "cycles" if self.is_abstract else "us"

    @property
    def target(self) -> Target | None:
        """The hardware whose rates the model reckons with; None without any."""
        return None

    @abstractmethod
    def node_time(self, instruction: Instruction) -> Time:
        """The time an instruction keeps what runs it busy."""

    @abstractmethod
    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """The time after `source` at which an instruction that depends on it, `target`, may run."""

    def whole_time(self, collective: Instruction) -> Time:
        """The time an operation holds up what runs it that is not split, or whose start waits for
        the end. XLA's schedulers never ask: to them it is an instruction like any other."""
        return self.node_time(collective)

    def by_table(self, instruction: Instruction) -> TableTime | None:
        """The time by a table of measured throughputs, of a start that of its operation; None
        where the model has none for it."""
        return None

    def node_cost(self, instruction: Instruction) -> float:
        """The cycles of `node_time`."""
        return self.node_time(instruction).cycles

    def latency(self, source: Instruction, target: Instruction) -> float:
        """The cycles of `edge_time`."""
        return self.edge_time(source, target).cycles


class TargetModel(LatencyModel):
    """Base of models in microseconds by the rates of a target.

    Remembers the times of nodes: ask before changing the module.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Instruction, Time] = {}

    @property
    def cycles_per_microsecond(self) -> float:
        return 1.0

    @property
    def target(self) -> Target:
        return self._target

    def node_time(self, instruction: Instruction) -> Time:
        """O(1), but for the first time."""
        time = self._known.get(instruction)
        if time is None:
            time = self._known[instruction] = self._node_time(instruction)
        return time

    @abstractmethod
    def _node_time(self, instruction: Instruction) -> Time:
        """`node_time` of an instruction that was not asked about before."""


FREE_TIME = Time(0.0, Origin.FREE)
ORDINARY_EDGE_TIME = Time(ORDINARY_EDGE, Origin.CONSTANT)


def as_guess(time: Time) -> Time:
    """The time of a fallback: constants, which stand in for a figure here, become guesses."""
    return Time(time.cycles, Origin.GUESS) if time.origin is Origin.CONSTANT else time


def stated_latency(instruction: Instruction, cycles_per_microsecond: float) -> float | None:
    """Cycles by the frontend attribute `latency_metadata`, in nanoseconds; None without a sound
    one."""
    text = frontend_attribute(instruction, "latency_metadata")
    try:
        nanoseconds = int(text) if text is not None else None
    except ValueError:
        return None
    return nanoseconds * cycles_per_microsecond / 1000.0 if is_time(nanoseconds) else None
