"""The figures that the benchmark measures: seconds, bytes, counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

FACTORS = (1, 2, 4)
"""The numbers of copies of a module that scaling is measured on."""


@dataclass(slots=True)
class TextFigures:
    """One file: seconds of one task; medians. 0 where there is no jaxlib."""

    file: str
    instructions: int
    characters: int
    xla: float
    cold: float
    """Ours, the first time in a process."""
    warm: float
    """Ours, later times."""
    each: float
    """Ours, every instruction printed one by one; 0 where not measured."""


@dataclass(slots=True)
class PassFigures:
    """One pass on one file."""

    file: str
    name: str
    instructions: tuple[int, int]
    """Before and after."""
    cold: float
    """CPU seconds, median over fresh processes."""
    to_parse: float
    """`cold` over our time to parse the file, in the same process where the pass is of ours."""
    xla_to_parse: float
    """A run of XLA's pass over XLA's time to parse the file; 0 where not known."""


@dataclass(slots=True)
class ScaleFigures:
    """One pass on a module and on 2 and 4 copies of it."""

    file: str
    name: str
    instructions: dict[int, int]
    seconds: dict[int, float]
    """CPU seconds by factor; the best of the runs."""
    parsing: dict[int, float]
    """CPU seconds to parse the module, by factor; the best of the runs."""

    @property
    def growth(self) -> float:
        """Time per instruction at the largest factor, over that at 1x. 1 is linear."""
        last = FACTORS[-1]
        scaled = self.instructions[last] / self.instructions[1]
        return self.seconds[last] / self.seconds[1] / scaled

    @property
    def in_parses(self) -> float:
        """Times as long as parsing the module takes, at 1x."""
        return self.seconds[1] / self.parsing[1]


@dataclass(slots=True)
class MemoryFigures:
    """Peak memory of a process that reads one file, in bytes. `xla` is 0 without jaxlib."""

    file: str
    ours: int
    xla: int


@dataclass(slots=True)
class ProcessFigures:
    """A whole process. Median seconds."""

    wall: float
    cpu: float
    """The processor time of all its threads: a process with jaxlib has several."""


@dataclass(slots=True)
class RunFigures:
    """One module of the corpus, parsed and run; XLA also compiles it. Seconds."""

    id: str
    devices: int
    ours: float
    xla: float


@dataclass(slots=True)
class InterpreterFigures:
    """The interpreter, warm. Seconds."""

    modules: list[RunFigures]
    """The modules that both ran; none without jaxlib or corpus."""
    not_ours: int
    """The number of those that only XLA ran."""
    matmul: float
    numpy_matmul: float
    step: float
    """A whole program on `step_devices` devices, `step_count` instructions in all."""
    step_devices: int
    step_count: int


@dataclass(slots=True)
class SchedulingFigures:
    """The latency-hiding scheduler."""

    module: str
    """The largest recorded module; empty where there is no record, the figures then are 0."""
    instructions: int
    ours: float
    xla: float
    """Seconds of the pass; XLA's 0 where its GPU compiler is not installed."""
    wide: dict[int, float]
    """CPU seconds by the number of instructions in one computation, half of them ready."""

    @property
    def growth(self) -> float:
        """Time per instruction of the widest computation, over that of the narrowest."""
        (small, least), *_, (large, most) = self.wide.items()
        return most / large / (least / small)


@dataclass(slots=True)
class Figures:
    """All that was measured."""

    printed: list[TextFigures] = field(default_factory=list)
    forms: dict[str, list[TextFigures]] = field(default_factory=dict)
    """Figures as in `printed`, by the form of the text."""
    verified: list[TextFigures] = field(default_factory=list)
    passes: list[PassFigures] = field(default_factory=list)
    copies: list[PassFigures] = field(default_factory=list)
    scaling: list[ScaleFigures] = field(default_factory=list)
    memory: list[MemoryFigures] = field(default_factory=list)
    startup: dict[str, ProcessFigures] = field(default_factory=dict)
    """Whole processes, by what they do."""
    interpreter: InterpreterFigures | None = None
    scheduling: SchedulingFigures | None = None
    pipelining: list[PassFigures] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
