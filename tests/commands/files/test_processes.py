"""Work in several processes."""

from __future__ import annotations

import os

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
