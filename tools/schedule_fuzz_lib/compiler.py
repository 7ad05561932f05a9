"""Orders that XLA:GPU's compiler gives random programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hloopt.diagnostics import HloError
from oracle_script import oracle_script
from schedule_fuzz_lib.settings import Setting

TARGET = "h100_sxm"
_PASS = "latency-hiding-scheduler"
_PASSES = ("legalize-scheduling-annotations", _PASS)
_QUIET = "latency_hiding_scheduler=0"
"""No log of the scheduler: its statistics before scheduling count what calls need, and these
counts stay when the callee gets another order. So with a log other orders come out than without."""
_COSTS = "sol_latency_estimator=10"
_REFUSAL = re.compile(
    r"FindAndExtractBestNodeAvailable failed|exceeds the overlap limits|"
    r"Couldn't find an annotated node|Not all instructions have been scheduled|"
    r"annotation groups with gaps|existing annotation"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The schedule of one program."""

    given: str = ""
    """The module as the compiler has it after reading, where users are in the order of protos."""
    before: str = ""
    """The module as the scheduler got it, in the order of the memory scheduler; empty without an
    answer."""
    after: str = ""
    refusal: str = ""
    """The scheduler's message, where it finds no order."""
    loss: str = ""
    """The reason why there is no answer at all."""
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Microseconds under "node" by instruction, under "latency" by start: XLA's own."""


class Compiler:
    """XLA:GPU in an environment of its own, as `oracle/XLA_GPU.md` has it. No GPU is needed."""

    def __init__(self, shared: Path, python: str) -> None:
        self._xla = oracle_script(shared / "oracle", "xla_gpu")
        self._python = python

    def schedule(
        self, texts: Sequence[str], setting: Setting, profile: Mapping[str, float]
    ) -> list[Answer]:
        """Schedule programs in one process.

        `profile` has microseconds by the names of instructions. Raises HloError where the compiler
        is not installed.
        """
        try:
            results: list[Any] = self._xla.compile_many(
                list(texts),
                target=TARGET,
                flags=setting.flags(),
                only=list(_PASSES),
                passes=_PASS,
                python=self._python,
                vmodule=f"{_QUIET},{_COSTS}" if setting.times == "sol" else _QUIET,
                costs=profile if setting.times == "profile" else None,
            )
        except self._xla.PackagesMissing as error:
            raise HloError(f"{self._python} has no XLA:GPU: {error}") from None
        return [_answer(result, setting) for result in results]


def _answer(result: Any, setting: Setting) -> Answer:
    steps = result.step(_PASS)
    if steps:
        costs = result.costs if setting.times == "sol" else {}
        return Answer(result.input, steps[-1].before, steps[-1].after, costs=costs)
    if found := _REFUSAL.search(result.error):
        return Answer(result.input, refusal=result.error[found.start() :].splitlines()[0])
    return Answer(loss=result.error.splitlines()[0] if result.error else "nothing was scheduled")
