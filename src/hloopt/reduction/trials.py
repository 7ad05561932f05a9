"""Trials of candidates: in processes of their own, under a time limit, each text once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from hloopt.processes import start_worker
from hloopt.reduction.outcomes import NOT_SHOWN, Outcome, Predicate, Verdict

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from hloopt.reduction.journal import Journal

HANGS = "it does not end"
"""The signature of a module on which the predicate takes too long."""


class TimeLimit(NamedTuple):
    """How long a trial may take, and what it means if it takes longer."""

    seconds: float
    is_shown: bool = False
    """Whether to run on and on is the failure that is looked for."""

    @property
    def outcome(self) -> Outcome:
        """The outcome of a trial that was ended."""
        detail = f"no end after {self.seconds:g} s"
        return (
            Outcome(Verdict.SHOWN, HANGS, detail)
            if self.is_shown
            else Outcome(Verdict.NOT_SHOWN, HANGS, detail)
        )


def _asked(predicate: Predicate, task: tuple[str, int | None]) -> tuple[Outcome, float]:
    """The answer to a task, in a worker, and the seconds of the processor that it took."""
    started = time.process_time()
    return predicate(*task), time.process_time() - started


class _Running(NamedTuple):
    key: str
    size: int
    """Of the text, in characters."""
    connection: Connection
    process: BaseProcess
    deadline: float


class Trials:
    """Asks a predicate in worker processes, several at once; a context manager.

    Outcomes are remembered by text. Candidates are looked at in their order, however many run at a
    time, so that a reduction comes out the same for any number of processes.
    """

    def __init__(
        self,
        predicate: Predicate,
        limit: TimeLimit,
        jobs: int = 1,
        journal: Journal | None = None,
        *,
        adapts: bool = False,
    ) -> None:
        self.count = 0
        """The trials that were made, without those that were remembered."""
        self.limit = limit
        self.adapts = adapts
        """Whether the limit may be set by what the input takes."""
        self.predicate = predicate
        self.steps: int | None = None
        """The steps of the interpreter that a trial may take."""
        self._pace: float | None = None if limit.is_shown else math.inf
        """The most seconds of the processor that a character took where a trial came to an end."""
        self._jobs = jobs
        self._journal = journal
        self._known: dict[str, Outcome] = {} if journal is None else journal.outcomes
        self._idle: list[tuple[Connection, BaseProcess]] = []
        self._running: dict[int, _Running] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._abandon()
        self._end_idle()

    def narrow(self, text: str, outcome: Outcome) -> None:
        """Ask about candidates from now on, given the input and its outcome."""
        self.predicate = self.predicate.narrowed(text, outcome)
        self._end_idle()
        self.allow_steps_of(outcome)

    def allow_steps_of(self, outcome: Outcome) -> None:
        """Let trials take about the steps of this one: smaller modules need no more, or hang."""
        if outcome.steps:
            self.steps = outcome.steps + _MORE_STEPS

    def take_time(self) -> None:
        """Give candidates the whole time limit from now on, those too that were ended sooner."""
        self._pace = math.inf
        for key in [key for key, known in self._known.items() if known.signature == HANGS]:
            del self._known[key]

    def _patience(self, size: int) -> float:
        """The seconds for a candidate of so many characters.

        Where hanging is the failure, each one that shows it takes all of its time. Ten times of
        what others took, that came to an end, tells as much sooner; the result is asked again, with
        the whole limit.
        """
        if self._pace is None:
            return self.limit.seconds
        return min(
            self.limit.seconds, _LEAST_PATIENCE + _TIMES * self._pace * max(size, _LEAST_SIZE)
        )

    def outcome(self, text: str, *, again: bool = False, times: int = 1) -> Outcome:
        """The outcome for one text, with so many times the time limit; `again` asks anew."""
        key = _key(text)
        if again:
            self._known.pop(key, None)
        results: dict[int, Outcome] = {}
        self._start(0, text, results, times * self.limit.seconds)
        while 0 not in results:
            self._wait(results)
        return results[0]

    def first(
        self, candidates: Iterator[str | None], accept: Callable[[str, Outcome], bool]
    ) -> int | None:
        """The number of the first candidate that is accepted; None if none is.

        A candidate of None is passed over. `accept` is asked in the order of the candidates.
        """
        texts: dict[int, str] = {}
        results: dict[int, Outcome] = {}
        following = started = 0
        is_at_end = False
        try:
            while True:
                while not is_at_end and len(self._running) < self._jobs:
                    try:
                        text = next(candidates)
                    except StopIteration:
                        is_at_end = True
                        break
                    if text is None:
                        results[started] = NOT_SHOWN
                    else:
                        texts[started] = text
                        self._start(started, text, results, self._patience(len(text)))
                    started += 1
                    if following in results:
                        break
                while following in results:
                    outcome = results.pop(following)
                    tried = texts.pop(following, None)
                    if tried is not None and accept(tried, outcome):
                        return following
                    following += 1
                if is_at_end and following == started:
                    return None
                if self._running:
                    self._wait(results)
        finally:
            self._abandon()

    # -- workers ------------------------------------------------------------------------------

    def _start(self, number: int, text: str, results: dict[int, Outcome], seconds: float) -> None:
        key = _key(text)
        known = self._known.get(key)
        if known is not None:
            results[number] = known
            return
        self.count += 1
        others = [running.connection for running in self._running.values()]
        others += [connection for connection, _ in self._idle]
        worker = (
            self._idle.pop()
            if self._idle
            else start_worker(partial(_asked, self.predicate), others)
        )
        connection, process = worker
        connection.send((text, self.steps))
        deadline = time.monotonic() + seconds
        self._running[number] = _Running(key, len(text), connection, process, deadline)

    def _wait(self, results: dict[int, Outcome]) -> None:
        """Wait for one trial at least; those that take too long are ended."""
        from multiprocessing.connection import wait

        by_connection = {r.connection: number for number, r in self._running.items()}
        soonest = min(running.deadline for running in self._running.values())
        ready = wait(list(by_connection), max(0.0, soonest - time.monotonic()))
        for connection in ready:
            number = by_connection[cast("Connection", connection)]
            running = self._running.pop(number)
            try:
                outcome, seconds = cast("tuple[Outcome, float]", running.connection.recv())
                self._idle.append((running.connection, running.process))
                self._pace = max(self._pace or 0.0, seconds / max(_LEAST_SIZE, running.size))
            except (EOFError, ConnectionError):
                running.process.join()
                outcome = _died(running.process.exitcode)
            results[number] = self._note(running.key, outcome)
        now = time.monotonic()
        for number, running in [*self._running.items()]:
            if running.deadline <= now:
                del self._running[number]
                self._end(running.process)
                running.connection.close()
                results[number] = self._note(running.key, self.limit.outcome)

    def _note(self, key: str, outcome: Outcome) -> Outcome:
        self._known[key] = outcome
        if self._journal is not None:
            self._journal.add(key, outcome)
        return outcome

    def _abandon(self) -> None:
        """End trials whose outcome nobody needs any more."""
        for running in self._running.values():
            running.connection.close()
            self._end(running.process)
        self._running.clear()

    def _end_idle(self) -> None:
        for connection, process in self._idle:
            connection.close()
            self._end(process)
        self._idle.clear()

    def _end(self, process: BaseProcess) -> None:
        """End a worker; one that has started processes unwinds first, and ends them."""
        if self.predicate.starts_processes:
            process.terminate()
            process.join(_GRACE)
        if process.is_alive():
            process.kill()
            process.join()


def _key(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_MORE_STEPS = 10_000
_LEAST_PATIENCE = 0.3
_TIMES = 10
_LEAST_SIZE = 10_000
"""Characters; smaller texts take as long as these."""
_GRACE = 1.0
"""Seconds that a worker has to unwind."""


def _died(exit_code: int | None) -> Outcome:
    """The outcome of a trial that ended its process: native code crashed, or memory ran out."""
    import signal

    number = -(exit_code or 0)
    is_signal = number in {*signal.Signals}
    how = f"signal {signal.Signals(number).name}" if is_signal else f"exit code {exit_code}"
    return Outcome(Verdict.SHOWN, f"the process ends: {how}", f"the process ends by {how}")
