"""Work in several processes."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from hloopt.processes import in_processes


def lost(task: int) -> int:
    return -task


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def test_results_are_in_order() -> None:
    assert list(in_processes(lambda n: n * n, range(50), 3, lost)) == [n * n for n in range(50)]
    assert list(in_processes(lambda n: n, [], 3, lost)) == []


def test_a_process_that_is_killed_loses_its_task() -> None:
    def work(task: int) -> int:
        if task % 4 == 1:
            os.kill(os.getpid(), 9)
        return task

    assert list(in_processes(work, range(8), 2, lost)) == [0, -1, 2, 3, 4, -5, 6, 7]


@pytest.mark.parametrize("error", [ZeroDivisionError("by 3"), Unpicklable(1, 3)])
def test_an_exception_is_raised_here_with_its_traceback(error: Exception) -> None:
    def work(task: int) -> int:
        if task == 3:
            raise error
        return task

    found: list[int] = []
    with pytest.raises(type(error) if type(error) is ZeroDivisionError else RuntimeError) as raised:
        found.extend(in_processes(work, range(8), 2, lost))
    assert str(error) in str(raised.value)
    assert "in work" in "".join(raised.value.__notes__)


def test_a_process_that_is_killed_while_it_waits_loses_nothing() -> None:
    def work(task: int) -> int:
        return os.getpid()

    found = in_processes(work, range(6), 1, lost)
    killed = next(found)
    os.kill(killed, 9)
    os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
    rest = list(found)
    assert len(rest) == 5
    assert all(pid > 0 for pid in rest[1:])  # one may have been asked of the one that was killed


def test_a_process_that_is_killed_while_it_sends_loses_its_task() -> None:
    def work(task: int) -> bytes:
        if task == 1:
            threading.Timer(0.2, os.kill, (os.getpid(), 9)).start()
        return bytes(200_000_000 if task == 1 else 1)

    sizes = [len(each) for each in in_processes(work, range(3), 1, lambda task: b"")]
    assert sizes[0] == sizes[2] == 1
    assert sizes[1] in (0, 200_000_000)


def test_workers_that_a_signal_does_not_wake_end_too() -> None:
    def work(task: int) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return task

    assert list(in_processes(work, range(4), 2, lost)) == [0, 1, 2, 3]
