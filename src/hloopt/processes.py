"""Work in several processes, with results in order whatever becomes of a process."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

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
    cannot leave the others waiting. An exception of `work` is raised here, with the traceback of
    its process as a note.
    """
    from multiprocessing.connection import wait

    careful = partial(guarded, work)
    waiting = deque(range(len(tasks)))
    workers: dict[Connection, BaseProcess] = {}
    busy: dict[Connection, int] = {}
    done: dict[int, _Result | Raised] = {}
    following = 0
    try:
        while following < len(tasks):
            while waiting and len(busy) < count:
                idle = next((end for end in workers if end not in busy), None)
                connection = idle or _add_worker(careful, workers)
                try:
                    connection.send(tasks[waiting[0]])
                except OSError:  # it was ended while it waited: another one gets the task
                    workers.pop(connection).join()
                    continue
                busy[connection] = waiting.popleft()
            for ready in wait(list(busy)):
                connection = cast("Connection", ready)
                number = busy.pop(connection)
                try:
                    done[number] = connection.recv()
                except (EOFError, OSError):  # it was ended, perhaps while it sent
                    workers.pop(connection).join()
                    done[number] = lost(tasks[number])
            while following in done:
                result = done.pop(following)
                if isinstance(result, Raised):
                    raise result.error
                yield result
                following += 1
    finally:
        for connection, worker in workers.items():
            worker.terminate()
            # A signal just before a worker waits for its next task does not wake it: this does.
            connection.close()
        for worker in workers.values():
            worker.join()


class Raised(NamedTuple):
    """An exception in place of a result."""

    error: Exception


def guarded(work: Callable[[_Task], _Result], task: _Task) -> _Result | Raised:
    """The result of `work`, or the exception that it raised, which other processes can be sent."""
    try:
        return work(task)
    except Exception as error:  # whatever it is, it belongs to whoever waits for the result
        import pickle
        import traceback

        text = traceback.format_exc()
        try:
            kept = pickle.loads(pickle.dumps(error))
        except Exception:  # exceptions need not be made of plain data
            kept = RuntimeError(f"{type(error).__name__}: {error}")
        kept.add_note(text)
        return Raised(kept)


def _add_worker(
    work: Callable[[_Task], _Result | Raised], workers: dict[Connection, BaseProcess]
) -> Connection:
    ours, worker = start_worker(work, [*workers])
    workers[ours] = worker
    return ours


def start_worker(
    work: Callable[[Any], object], others: Sequence[Connection]
) -> tuple[Connection, BaseProcess]:
    """A process that answers each task with its result, and the end of the pipe to it.

    `others` are the ends of pipes to other workers, which it inherits.
    """
    from multiprocessing import Pipe, Process

    ours, theirs = Pipe()
    worker = Process(target=_work, args=(work, theirs, [ours, *others]), daemon=True)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:  # a signal before the worker is ready to unwind has to wait
        worker.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    theirs.close()  # else its end could not be noticed
    return ours, worker


def _work(
    work: Callable[[Any], object], connection: Connection, inherited: Sequence[Connection]
) -> None:
    """Do tasks in a worker process until the pipe is closed; unwind quietly on a signal.

    It ends with the main process, even one that was killed and could not tell.
    """
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends its workers
        unwind_on_sigterm()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        for other in inherited:
            other.close()  # else the end of the main process could not be noticed
        threading.Thread(target=_end_with_parent, daemon=True).start()
        while True:
            connection.send(work(connection.recv()))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to unwind


def _end_with_parent() -> None:
    """Wait until the main process is gone; then unwind as on a signal."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    if parent := parent_process():
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
