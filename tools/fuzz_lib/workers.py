"""Processes that check texts, and the watchdog that finds out which text kills one."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from fuzz_lib.checks import Problem, TooSlow, check, same_problem
from fuzz_lib.mutations import Texts, mutated
from fuzz_lib.reduction import reduced

PER_PROCESS = 2000
"""Texts after which a worker is replaced: caches of ours live as long as the process."""


class Settings(NamedTuple):
    """What to check, and the limits; picklable."""

    folders: tuple[Path, ...]
    seed: int
    thorough: float = 0.25
    """The share of texts that go through all passes."""
    seconds: float = 5.0
    """Of processor time, for one text; there is a longer limit of real time."""
    megabytes: int = 500
    """That one text may add to a worker's memory."""
    reduction_seconds: float = 20.0


class Finding(NamedTuple):
    """A text with a problem."""

    number: int
    problem: Problem
    text: str


@dataclass(slots=True)
class Progress:
    """What a worker reports: how many texts are done, what became of them, what was found."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def run(settings: Settings, first: int, count: int, jobs: int) -> Iterator[Progress]:
    """Check `count` texts from number `first` on in `jobs` processes, reporting now and then.

    Raises OSError where there are no texts to start from.
    """
    context = multiprocessing.get_context("spawn")
    tasks = iter(range(first, first + count, PER_PROCESS))
    Texts(settings.folders)  # raises here, not in the workers
    workers: list[_Worker] = []
    known: set[str] = set()
    while True:
        while len(workers) < jobs and (start := next(tasks, None)) is not None:
            end = min(first + count, start + PER_PROCESS)
            workers.append(_Worker(context, settings, start, end, known))
        if not workers:
            return
        wait([worker.connection for worker in workers], timeout=1.0)
        for worker in list(workers):
            yield from worker.poll()
            if worker.done:
                workers.remove(worker)


class _Worker:
    """A slice of the texts, with a process that is started again where a text kills it."""

    def __init__(
        self, context: Any, settings: Settings, start: int, end: int, known: set[str]
    ) -> None:
        self.context = context
        self.settings = settings
        self.start, self.end = start, end
        self.done = False
        self._known = known
        self._launch()

    def _launch(self) -> None:
        self.connection: Connection
        self.connection, theirs = self.context.Pipe(duplex=False)
        self.process: BaseProcess = self.context.Process(
            target=_work, args=(self.settings, self.start, self.end, self._known, theirs)
        )
        self.process.start()
        theirs.close()
        self._patience(60.0)

    def _patience(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def poll(self) -> Iterator[Progress]:
        """What has been reported since; deals with a process that died or hangs."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if isinstance(message, int):  # the text that comes next
                    self.start = message
                    self._patience(12 * self.settings.seconds + self.settings.reduction_seconds)
                else:
                    self._known.update(found.problem.kind for found in message.findings)
                    yield message
        except EOFError:
            self.process.join()
            if self.start >= self.end:
                self.done = True
            else:
                yield self._lost(f"the process died (exit code {self.process.exitcode})")
            return
        if time.monotonic() > self._deadline:
            self.process.kill()
            self.process.join()
            yield self._lost("the process hangs")

    def _lost(self, kind: str) -> Progress:
        """Blame the text at hand, go on with the next one."""
        self.connection.close()
        number = self.start
        text = mutated(Texts(self.settings.folders), self.settings.seed, number)
        self.start += 1
        if self.start < self.end:
            self._launch()
        else:
            self.done = True
        return Progress(Counter(lost=1), [Finding(number, Problem(kind, kind), text)])


def _work(settings: Settings, start: int, end: int, known: set[str], out: Connection) -> None:
    """Check texts `start` … `end` - 1; for each, first tell its number."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    texts = Texts(settings.folders)
    with clock():
        for number in range(start, end):
            out.send(number)
            out.send(examine(settings, mutated(texts, settings.seed, number), number, known))
    out.send(end)


@contextmanager
def clock() -> Iterator[None]:
    """Let `examine` interrupt what takes too long. In the main thread of a process."""
    before = signal.signal(signal.SIGPROF, _too_slow)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def _too_slow(signum: int, frame: object) -> None:
    raise TooSlow


def examine(settings: Settings, text: str, number: int, known: set[str]) -> Progress:
    """Check one text within the limits; a problem that is not known yet is reduced."""
    limits = _Limits(settings)
    thorough = (number * 2654435761 % 1000) < settings.thorough * 1000
    with limits:
        outcome, problem = check(text, thorough=thorough)
    progress = Progress(Counter({outcome: 1}))
    if problem is None:
        return progress
    progress.outcomes["finding"] += 1
    if problem.kind not in known:
        known.add(problem.kind)

        def still_fails(candidate: str) -> bool:
            with limits:
                return same_problem(candidate, problem)

        text = reduced(text, still_fails, settings.reduction_seconds)
    progress.findings.append(Finding(number, problem, text))
    return progress


class _Limits:
    """Processor time and memory that what runs inside may take."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __enter__(self) -> None:
        used = _address_space()
        limit = used + (self.settings.megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        signal.setitimer(signal.ITIMER_PROF, self.settings.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _address_space() -> int:
    """Bytes of address space this process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
