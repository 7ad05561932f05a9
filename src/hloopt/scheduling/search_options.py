"""The option `search` of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from hloopt.diagnostics import PipelineError
from hloopt.options import Bytes, Seconds, option
from hloopt.search_budget import SearchLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(SearchLimits):
    """Options of the search for a schedule that is better than that of the rules."""

    objective: Literal["makespan", "exposed"] = option(
        "makespan", "what to shorten: all waiting, or before all else waiting for collectives"
    )
    memory_limit: Bytes | None = option(
        None,
        "bytes that may be allocated for the module; null: no more may be alive at a time than in "
        "the plain order. A plain order that needs more and cannot be changed to fit is kept",
    )
    solver: Literal["cp-sat"] | None = option(
        None,
        "after the search, find the best order of small computations, or prove how near the one "
        "found is: cp-sat, which needs OR-Tools (pip install 'hloopt[solver]'); null: do not",
    )
    solver_limit: int = option(60, "the most instructions of a computation that is solved")
    solver_time: Seconds = option(
        Seconds(60),
        "how long the solver may take for a computation; with iterations by its own measure of "
        "work, so that the result is always the same",
    )

    def __post_init__(self) -> None:
        """Raise PipelineError for a search or a solver that would never end."""
        SearchLimits.__post_init__(self)
        if not 0 <= self.solver_time < inf:
            raise PipelineError(
                f"the search's solver_time is {self.solver_time}: it has to be 0 or more"
            )
