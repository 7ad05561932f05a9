"""The option `search` of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from hloopt.diagnostics import PipelineError
from hloopt.options import Bytes, PassOptions, Seconds, option


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(PassOptions):
    """Options of the search for a schedule that is better than that of the rules."""

    budget: Seconds = option(Seconds(30), "how long to look, such as 30s or 2min")
    iterations: int | None = option(
        None, "how many changes to try instead: the result then is always the same"
    )
    seed: int = option(0, "another one tries other changes")
    objective: Literal["makespan", "exposed"] = option(
        "makespan", "what to shorten: all waiting, or before all else waiting for collectives"
    )
    memory_limit: Bytes | None = option(
        None, "what the schedule may need at its peak; null: what the plain one needs"
    )

    def __post_init__(self) -> None:
        """Raise PipelineError for a search that would never end."""
        for name in ("budget", "iterations"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < inf:
                raise PipelineError(f"the search's {name} is {value}: it has to be 0 or more")
