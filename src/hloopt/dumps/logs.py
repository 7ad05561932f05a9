"""Times of passes, from the log of XLA.

XLA writes them with TF_CPP_MIN_LOG_LEVEL=0 and TF_CPP_VMODULE=hlo_pass_pipeline=1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    r"|HLO pass (?P<begun>\S.*?)\s*$)"
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
        """Begin a pipeline: the next of the module, or one that a pass of another one runs."""
        if len(self.stack) < 2:
            self.module, self.stack[:] = module, [pipeline]
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
    for event in events_of(lines):
        if event.seconds is not None:
            names = event.module, event.pipeline, event.name
            key = in_file_name(names[0]), in_file_name(names[1]), in_file_name(names[2])
            before = times.get(key, PassTime(0, 0.0))
            times[key] = PassTime(before.runs + 1, before.seconds + event.seconds)
    return times


class Event(NamedTuple):
    """The begin or end of a pass, which may be a pipeline itself, or the begin of a pipeline."""

    module: str
    pipeline: str
    """The one that runs the pass, or that begins."""
    name: str
    """The pass; empty for a pipeline that begins."""
    seconds: float | None = None
    """The time of a pass that ends."""


def events_of(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a log in its order, on all threads."""
    threads: dict[str, _Thread] = {}
    for match in filter(None, map(_LINE.match, lines)):
        thread = threads.setdefault(match["thread"], _Thread())
        stack = thread.stack
        if (pipeline := match["pipeline"]) is not None:
            thread.enter(match["module"], pipeline)
            yield Event(thread.module, pipeline, "")
        elif (begun := match["begun"]) is not None:
            if stack:  # else the log does not have the begin of the pipeline
                yield Event(thread.module, stack[-1], begun)
            stack.append(begun)
        elif (done := match["done"]) in stack[1:]:
            while stack.pop() != done:
                pass
            seconds = float(match["amount"]) * _UNITS[match["unit"]]
            yield Event(thread.module, stack[-1], done, seconds)


_SPECIAL = pattern(r"[/\\\[\] ]")


def in_file_name(name: str) -> str:
    """A name as XLA writes it into names of files."""
    return _SPECIAL.sub("_", name)
