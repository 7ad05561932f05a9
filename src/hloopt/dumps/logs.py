"""Times of passes, from the log of XLA.

XLA writes them with TF_CPP_MIN_LOG_LEVEL=0 and TF_CPP_VMODULE=hlo_pass_pipeline=1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from hloopt.diagnostics import HloError
from hloopt.patterns import pattern


class PassTime(NamedTuple):
    """The time of a pass of one pipeline on one module, all runs together."""

    runs: int
    seconds: float


_LINE = pattern(
    r"[IWEF]\d{4} [\d:.]+ +(?P<thread>\d+) [\w./]*hlo_pass_pipeline\.cc:\d+\] +"
    r"(?:Running HLO pass pipeline on module (?P<module>.*?): (?P<pipeline>.+)"
    r"|HLO pass: (?P<done>.+?) time: (?P<amount>[\d.]+) (?P<unit>us|ms|s|min|h)\b.*"
    r"|HLO pass (?P<begun>\S+))"
)
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}

Times = dict[tuple[str, str, str], PassTime]
"""By module, pipeline and pass."""


@dataclass(slots=True)
class _Thread:
    """Where the compilation on one thread is."""

    module: str = ""
    stack: list[str] = field(default_factory=list)
    """Pipelines that run, and within each the pass that does. The end of the first is not told."""

    def enter(self, module: str, pipeline: str) -> None:
        """A pipeline begins: behind another, once more, or as the pass that runs, or within it."""
        if len(self.stack) < 2:
            self.module, self.stack = module, [pipeline]
        elif self.stack[-1] != pipeline:
            self.stack.append(pipeline)


def read_pass_times(path: str) -> Times:
    """The times in a log. Raises HloError if it cannot be read or has none. O(lines)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            times = _times(file)
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror or error}", code="HLO001") from None
    if not times:
        raise HloError(
            f"{path} has no times of passes",
            help="run with TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=hlo_pass_pipeline=1, and keep "
            "stderr",
        )
    return times


def _times(lines: Iterable[str]) -> Times:
    times: Times = {}
    threads: dict[str, _Thread] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        thread = threads.setdefault(match["thread"], _Thread())
        if match["pipeline"] is not None:
            thread.enter(match["module"], in_file_name(match["pipeline"]))
        elif match["begun"] is not None:
            thread.stack.append(in_file_name(match["begun"]))
        elif (done := in_file_name(match["done"])) in thread.stack[1:]:
            while thread.stack.pop() != done:
                pass
            key = in_file_name(thread.module), thread.stack[-1], done
            before = times.get(key, PassTime(0, 0.0))
            seconds = float(match["amount"]) * _UNITS[match["unit"]]
            times[key] = PassTime(before.runs + 1, before.seconds + seconds)
    return times


_SPECIAL = pattern(r"[/\\\[\] ]")


def in_file_name(name: str) -> str:
    """A name as XLA writes it into names of files."""
    return _SPECIAL.sub("_", name)
