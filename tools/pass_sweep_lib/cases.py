"""The cases of a sweep: passes with their options, presets and shipped pipelines, and what each
wants before it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from differential_lib.chains import LEFT_OUT
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline import Pipeline
from hloopt.pass_framework.pipeline_text import format_pass, parse_passes
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.shipped import pipeline_names
from pass_sweep_lib.options import NEED_A_FLAT_CALL_GRAPH, NEED_A_SCHEDULE, OPTIONS

RARE = {"memory-search": 20, "overlap-search": 20, "pipeline(overlap)": 20}
"""Passes that take seconds, and of how many modules they get one."""


class Case(NamedTuple):
    """A pass with options, or a pipeline, that runs on a module by itself."""

    passes: str
    """As `--passes` takes it."""
    name: str
    """The name of the pass, or of the pipeline."""
    needs_schedule: bool = False
    needs_flat_calls: bool = False

    @property
    def pipeline(self) -> Pipeline:
        """Made once in a process."""
        return _pipeline(self.passes)


@cache
def _pipeline(passes: str) -> Pipeline:
    return parse_passes(passes, find_pipeline)


@cache
def all_cases() -> tuple[Case, ...]:
    """Every row of options of every pass, presets, and the shipped pipelines."""
    rows = [
        (name, format_pass(name, {k: v for k, v in row.items() if (name, k) not in LEFT_OUT}))
        for name, choices in OPTIONS.items()
        for row in choices
    ]
    rows += [(name, name) for name in PRESETS]
    rows += [(f"pipeline({name})", f"pipeline({name})") for name in pipeline_names()]
    return tuple(
        Case(passes, name, name in NEED_A_SCHEDULE, name in NEED_A_FLAT_CALL_GRAPH)
        for name, passes in dict.fromkeys(rows)
    )
