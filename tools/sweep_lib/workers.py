"""Processes that examine inputs, and the watchdog that finds out which input kills one."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from sweep_lib.findings import Finding, Problem, Progress, TooSlow
from sweep_lib.limits import clock


class Subject(Protocol):
    """Numbered inputs and how to examine one. Picklable; `start` runs once in each process."""

    @property
    def patience(self) -> float:
        """Seconds of real time after which the examination of one input hangs."""

    def start(self) -> None: ...

    def content(self, number: int) -> bytes:
        """The input, for the file of a finding."""

    def examine(self, number: int, known: set[str]) -> Progress:
        """Examine one input; a problem of a kind that is not in `known` is reduced, and added.

        An exception is a finding, too.
        """


def run(subject: Subject, slices: Iterable[range], jobs: int) -> Iterator[tuple[range, Progress]]:
    """Examine the inputs in `jobs` processes; a process and one answer for each slice.

    A process does not live longer than a slice: our caches live as long as the process. Raises
    what `subject.start` raises.
    """
    context = multiprocessing.get_context("spawn")
    subject.start()  # fails here, not in the workers
    waiting = iter(slices)
    workers: list[_Worker] = []
    known: set[str] = set()
    try:
        while True:
            while len(workers) < jobs and (numbers := next(waiting, None)) is not None:
                workers.append(_Worker(context, subject, numbers, known))
            if not workers:
                return
            wait([worker.connection for worker in workers], timeout=1.0)
            for worker in list(workers):
                worker.poll()
                if worker.done:
                    workers.remove(worker)
                    yield worker.numbers, worker.progress
    finally:
        for worker in workers:
            worker.process.kill()


class _Worker:
    """A slice of the inputs, with a process that is started again where an input kills it."""

    def __init__(self, context: Any, subject: Subject, numbers: range, known: set[str]) -> None:
        self.context = context
        self.subject = subject
        self.numbers = numbers
        self.next = numbers.start
        self.done = False
        self.progress = Progress()
        self._known = known
        self._launch()

    def _launch(self) -> None:
        self.connection: Connection
        self.connection, theirs = self.context.Pipe(duplex=False)
        rest = range(self.next, self.numbers.stop)
        self.process: BaseProcess = self.context.Process(
            target=_work, args=(self.subject, rest, self._known, theirs)
        )  # no daemon: commands start processes of their own
        self.process.start()
        theirs.close()
        self._deadline = time.monotonic() + 60.0

    def poll(self) -> None:
        """Take what has been reported since; deal with a process that died or hangs."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if isinstance(message, int):  # the input that comes next
                    self.next = message
                    self._deadline = time.monotonic() + self.subject.patience
                else:
                    self._known.update(found.problem.kind for found in message.findings)
                    self.progress.add(message)
        except EOFError:
            self.process.join()
            if self.next >= self.numbers.stop:
                self.done = True
            else:
                self._lost(f"the process died (exit code {self.process.exitcode})")
            return
        if time.monotonic() > self._deadline:
            self.process.kill()
            self.process.join()
            self._lost("the process hangs")

    def _lost(self, kind: str) -> None:
        """Blame the input at hand, go on with the next one."""
        self.connection.close()
        self.progress.add(_lost_to(self.subject, self.next, Problem(kind, kind)))
        self.next += 1
        if self.next < self.numbers.stop:
            self._launch()
        else:
            self.done = True


def _work(subject: Subject, numbers: range, known: set[str], out: Connection) -> None:
    """Examine the inputs; before each, tell its number."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    subject.start()
    try:
        with clock():
            for number in numbers:
                out.send(number)
                out.send(_examined(subject, number, known))
        out.send(numbers.stop)
    except BrokenPipeError:  # the parent was killed
        return


def _examined(subject: Subject, number: int, known: set[str]) -> Progress:
    """The outcome of one input; an exception that the examination lets through is a finding."""
    try:
        return subject.examine(number, known)
    except (Exception, TooSlow) as error:
        return _lost_to(subject, number, Problem.of("the examination", error))


def _lost_to(subject: Subject, number: int, problem: Problem) -> Progress:
    """An input without an outcome. Where making it is what fails, its file is empty."""
    try:
        content = subject.content(number)
    except (Exception, TooSlow):
        content = b""
    return Progress(1, Counter(lost=1), [Finding(number, problem, content)])
