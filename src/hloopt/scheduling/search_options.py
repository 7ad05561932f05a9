"""The option `search` of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hloopt.options import Bytes, option
from hloopt.search_budget import SearchLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(SearchLimits):
    """Options of the search for a schedule that is better than that of the rules."""

    objective: Literal["makespan", "exposed"] = option(
        "makespan", "what to shorten: all waiting, or before all else waiting for collectives"
    )
    memory_limit: Bytes | None = option(
        None, "what the schedule may need at its peak; null: what the plain one needs"
    )
