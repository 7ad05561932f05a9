"""Work in several processes, with results in order whatever becomes of a process."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from hloopt.signals import unwind_on_sigterm

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def in_processes(
    work: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    count: int,
    lost: Callable[[_Task], _Result],
) -> Iterator[_Result]:
    """Results of the tasks in their order, worked on by at most `count` processes.

    `lost` makes the result of a task whose process was ended from outside. Each process has a pipe
    of its own and no lock is shared, so one that is killed spoils its own task only, and a signal
    cannot leave the others waiting.
    """
    from multiprocessing.connection import wait

    waiting = deque(range(len(tasks)))
    workers: dict[Connection, BaseProcess] = {}
    busy: dict[Connection, int] = {}
    done: dict[int, _Result] = {}
    following = 0
    try:
        while following < len(tasks):
            while waiting and len(busy) < count:
                idle = next((end for end in workers if end not in busy), None)
                connection = idle or _start_worker(work, workers)
                busy[connection] = waiting.popleft()
                connection.send(tasks[busy[connection]])
            for ready in wait(list(busy)):
                connection = cast("Connection", ready)
                number = busy.pop(connection)
                try:
                    done[number] = connection.recv()
                except (EOFError, ConnectionError):
                    workers.pop(connection).join()
                    done[number] = lost(tasks[number])
            while following in done:
                yield done.pop(following)
                following += 1
    finally:
        for worker in workers.values():
            worker.terminate()
        for worker in workers.values():
            worker.join()


def _start_worker(
    work: Callable[[_Task], _Result], workers: dict[Connection, BaseProcess]
) -> Connection:
    from multiprocessing import Pipe, Process

    ours, theirs = Pipe()
    worker = Process(target=_work, args=(work, theirs, [ours, *workers]), daemon=True)
    worker.start()
    theirs.close()  # else its end could not be noticed
    workers[ours] = worker
    return ours


def _work(
    work: Callable[[_Task], _Result], connection: Connection, inherited: Sequence[Connection]
) -> None:
    """Do tasks in a worker process until the pipe is closed; unwind quietly on a signal.

    It ends with the main process, even one that was killed and could not tell.
    """
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends its workers
        unwind_on_sigterm()
        for other in inherited:
            other.close()  # else the end of the main process could not be noticed
        threading.Thread(target=_end_with_parent, daemon=True).start()
        while True:
            connection.send(work(connection.recv()))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return


def _end_with_parent() -> None:
    """Wait until the main process is gone; then unwind as on a signal."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    if parent := parent_process():
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
