"""The options of the search for overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hloopt.cost_models import CostModelName
from hloopt.diagnostics import PipelineError
from hloopt.options import Bytes, option
from hloopt.search_budget import SearchLimits

Family = Literal[
    "pipeline",
    "combine",
    "separate",
    "split",
    "unroll",
    "order",
    "sink",
    "offload",
    "rematerialize",
    "minimize",
]
"""The kinds of decisions."""
FAMILIES: tuple[Family, ...] = ("pipeline", "combine", "separate", "split", "unroll", "order")
MEMORY_FAMILIES: tuple[Family, ...] = (
    *FAMILIES,
    "sink",
    "offload",
    "rematerialize",
    "minimize",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapOptions(SearchLimits):
    """The options of the search for overlap: what may be decided, by whose times, for how long."""

    target: str | None = option(None, "the hardware whose times count: see `hloopt targets`")
    cost_model: CostModelName | None = option(
        None, "the model of times; null: sol where the target has its figures, else roofline"
    )
    memory_limit: Bytes | None = option(
        None,
        "bytes of device memory that buffers may take; null: what they take in the program as it "
        "is given, in whole pages of 2 MiB",
    )
    decisions: tuple[Family, ...] = option(
        FAMILIES,
        "which kinds of decisions to make: order is the one to begin with and the search of the "
        "scheduler, for a module with a schedule",
    )
    overlap_limit: int = option(1, "collectives that may be in flight at a time")
    jobs: int = option(
        1, "processes that judge decisions: the result does not depend on their number"
    )

    def __post_init__(self) -> None:
        """Raise PipelineError for a search that would never end, or has no process."""
        SearchLimits.__post_init__(self)
        if self.jobs < 1:
            raise PipelineError(f"jobs is {self.jobs}: it takes 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySearchOptions(OverlapOptions):
    """The options of the search for memory: those of the search for overlap, more to decide."""

    memory_limit: Bytes | None = option(
        None, "bytes of device memory that buffers may take; null: what a device of the target has"
    )
    decisions: tuple[Family, ...] = option(
        MEMORY_FAMILIES,
        "which kinds of decisions to make: sink transposes slices in loops in place of arrays "
        "before them, offload keeps stacks of loops in host memory, rematerialize computes values "
        "again, minimize schedules with less memory, the others are those of overlap-search",
    )
