"""Judging sets of decisions in other processes, before a search asks for them."""

from __future__ import annotations

import gc
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, cast

from hloopt.diagnostics import PassRefused
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.judging import Figures, Judge
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.processes import Raised, guarded, start_worker
from hloopt.text import parse_module, print_module

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Decisions = tuple[Decision, ...]

_DRAFTS = 4
"""The drafts that a process keeps: those that a search is at, and what it tries beside them."""


def content_of(draft: Draft) -> str:
    """A hash of the text of a draft: decisions that come to the same program have the same."""
    return sha256(print_module(draft.module).encode()).hexdigest()


class Foreseen(NamedTuple):
    """The figures of a program that another process has judged."""

    content: str
    figures: Figures | None
    """None where resources do not suffice for it."""


class NotAhead(Exception):
    """The process that judged was ended from outside."""


@dataclass(slots=True)
class _Worker:
    """Judges sets of decisions on a program, in a process of its own."""

    options: OverlapOptions
    text: str
    """The program without decisions."""
    drafts: OrderedDict[Decisions, Draft | None] = field(default_factory=OrderedDict)
    """By decisions the latest drafts; None where they cannot be made."""

    def __call__(self, decisions: Decisions) -> Foreseen | None:
        """The figures of the program after decisions; None where they cannot be made."""
        gc.enable()  # the search that started this process has paused it
        draft = self._draft(decisions)
        if draft is None:
            return None
        content = content_of(draft)
        try:
            return Foreseen(content, Judge(self.options).figures_of(draft))
        except PassRefused:
            return Foreseen(content, None)

    def _draft(self, decisions: Decisions) -> Draft | None:
        """The draft after decisions, starting at the longest prefix that is kept."""
        begin = next(
            (n for n in range(len(decisions), 0, -1) if decisions[:n] in self.drafts),
            0,
        )
        draft: Draft | None
        if begin:
            draft = self.drafts[decisions[:begin]]
            self.drafts.move_to_end(decisions[:begin])
        else:
            draft = Draft(parse_module(self.text))
        for number in range(begin, len(decisions)):
            if draft is not None:
                draft = draft.after(decisions[number])
            self._keep(decisions[: number + 1], draft)
        return draft

    def _keep(self, decisions: Decisions, draft: Draft | None) -> None:
        self.drafts[decisions] = draft
        while len(self.drafts) > _DRAFTS:
            self.drafts.popitem(last=False)


@contextmanager
def judging_ahead(options: OverlapOptions, draft: Draft) -> Iterator[JudgesAhead | None]:
    """Processes that judge decisions on a draft, ended at the end; None for a single process.

    A process of a pool cannot have any of its own.
    """
    from multiprocessing import current_process

    if options.jobs == 1 or current_process().daemon:
        yield None
        return
    ahead = JudgesAhead(options, print_module(draft.module))
    try:
        yield ahead
    finally:
        ahead.end()


class JudgesAhead:
    """Processes that judge what a search is expected to ask for.

    A search asks for one set of decisions after the other and gets what it would find alone, so its
    result does not depend on the number of processes. What was planned and is not asked for is
    dropped once something else is planned.
    """

    def __init__(self, options: OverlapOptions, text: str) -> None:
        self._work = partial(guarded, _Worker(options, text))
        self._count = options.jobs
        self._workers: dict[Connection, BaseProcess] = {}
        self._busy: dict[Connection, Decisions] = {}
        self._planned: deque[Decisions] = deque()
        self._done: dict[Decisions, Foreseen | Raised | NotAhead | None] = {}

    def plan(self, upcoming: Iterable[Decisions]) -> None:
        """Judge these next, in this order, as far as processes are idle."""
        self._planned = deque(upcoming)
        self._fill()

    def judged(self, decisions: Decisions) -> Foreseen | None:
        """The figures of the program after decisions; None where they cannot be made.

        Raises NotAhead where its process was ended, and what judging raised.
        """
        if decisions not in self._done and decisions not in self._busy.values():
            with suppress(ValueError):
                self._planned.remove(decisions)
            self._planned.appendleft(decisions)
        while decisions not in self._done:
            self._fill()
            self._receive()
        found = self._done.pop(decisions)
        self._fill()
        if isinstance(found, NotAhead):
            raise found
        if isinstance(found, Raised):
            raise found.error
        return found

    def end(self) -> None:
        """End all processes."""
        for connection, worker in self._workers.items():
            worker.terminate()
            connection.close()
        for worker in self._workers.values():
            worker.join()

    def _fill(self) -> None:
        """Give idle processes what is planned."""
        while self._planned and len(self._busy) < self._count:
            decisions = self._planned.popleft()
            if decisions in self._done or decisions in self._busy.values():
                continue
            idle = next((each for each in self._workers if each not in self._busy), None)
            if idle is None:
                idle, worker = start_worker(self._work, [*self._workers])
                self._workers[idle] = worker
            try:
                idle.send(decisions)
            except OSError:  # it was ended while it waited
                self._workers.pop(idle).join()
                self._planned.appendleft(decisions)
                continue
            self._busy[idle] = decisions

    def _receive(self) -> None:
        """Wait until a process has judged something."""
        from multiprocessing.connection import wait

        for ready in wait(list(self._busy)):
            connection = cast("Connection", ready)
            decisions = self._busy.pop(connection)
            try:
                self._done[decisions] = connection.recv()
            except (EOFError, OSError):  # it was ended
                self._workers.pop(connection).join()
                self._done[decisions] = NotAhead()
