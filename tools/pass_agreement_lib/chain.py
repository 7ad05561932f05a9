"""The runs of all passes of one compile: the program before and after each, from log and dumps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from hloopt.diagnostics import HloError
from hloopt.dumps.names import PIPELINE_START, Phase, Stage, parse_name
from hloopt.patterns import pattern

_EVENT = pattern(
    r".*hlo_pass_pipeline\.cc:\d+\] *(?:"
    r"Running HLO pass pipeline on module .*: (?P<pipeline>.+)"
    r"|HLO pass (?P<begun>[^\s:].*?)"
    r"|HLO pass: (?P<ended>.+?) time: .*)"
)


class PassRun(NamedTuple):
    """One run of a pass of XLA; equal texts where the pass changed nothing."""

    pipeline: str
    name: str
    before: str
    after: str


class _Dump(NamedTuple):
    stage: Stage
    text: str


class _Event(NamedTuple):
    kind: str
    """A group of _EVENT."""
    name: str


def runs_of(log: Sequence[str], dumps: Mapping[str, str]) -> list[PassRun]:
    """The runs of all passes, in the order in which they end.

    `log` is that of one compile with hlo_pass_pipeline=1; `dumps` are texts by the names of their
    files, of a compile that dumps around every pass. XLA dumps when a pipeline begins, and
    after a pass that changed it: in between the program is as it was. A compile that failed gives
    the runs that ended before. Raises HloError where log and dumps do not belong together.
    """
    stages = [(found.stage, text) for name, text in dumps.items() if (found := parse_name(name))]
    ordered = sorted(
        (_Dump(stage, text) for stage, text in stages if stage and stage.phase is Phase.PASSES),
        key=lambda dump: dump.stage,
    )
    walk = _Walk([dump for dump in ordered if dump.stage.before])
    events = list(_events(log))
    for event, then in zip_longest(events, events[1:]):
        walk.take(event, then)
    if walk.left > 1:  # a compiler that dies may have dumped what it has not logged
        raise HloError(f"{walk.left} dumps are not where the log has them: another XLA?")
    return walk.runs


def _events(log: Sequence[str]) -> Iterator[_Event]:
    for line in log:
        if (match := _EVENT.fullmatch(line.rstrip())) and match.lastgroup:
            yield _Event(match.lastgroup, match[match.lastgroup])


@dataclass(slots=True)
class _Walk:
    """Follows the log, and takes each dump where the log says that it was written."""

    dumps: list[_Dump]
    runs: list[PassRun] = field(default_factory=list)
    _next: int = 0
    _text: str = ""
    _pipeline: str = ""
    _begun: list[tuple[str, str, str]] = field(default_factory=list)
    """Of passes that have not ended: pipeline, pass, program before it."""

    @property
    def left(self) -> int:
        """The number of dumps that have not been taken."""
        return len(self.dumps) - self._next

    def take(self, event: _Event, then: _Event | None) -> None:
        if event.kind == "pipeline":
            self._pipeline = event.name
            self._advance(event.name, PIPELINE_START, None)
        elif event.kind == "begun":
            self._begun.append((self._pipeline, event.name, self._text))
        elif self._begun and self._begun[-1][1] == event.name:
            self._pipeline, name, before = self._begun.pop()
            follower = then.name if then and then.kind == "begun" else "pipeline-end"
            self._advance(self._pipeline, name, follower)
            if before:
                self.runs.append(PassRun(self._pipeline, name, before, self._text))

    def _advance(self, pipeline: str, after: str, before: str | None) -> None:
        if self._next < len(self.dumps):
            stage, text = self.dumps[self._next]
            expected = (_in_a_file(pipeline), _in_a_file(after), _in_a_file(before or stage.before))
            if (stage.pipeline, stage.after, stage.before) == expected:
                self._text = text
                self._next += 1


def _in_a_file(name: str) -> str:
    """A name as XLA writes it into names of files."""
    return name.replace(" ", "_").replace("/", "_")
