"""Child processes of compilers: their answers, their ends, and nothing left of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hloopt.compilers.child import Ending, run_child

Run = Callable[..., Ending]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program as a child; ANSWER in it is where its answer goes."""

    def run(
        program: str,
        seconds: float | None = 60,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> Ending:
        (tmp_path / "fake_compiler.py").write_text(
            f"import os, sys, time, json, signal, subprocess\nANSWER = {str(tmp_path / 'a')!r}\n"
            f"{program}\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        paths = tmp_path / "job", tmp_path / "a", tmp_path / "log"
        return run_child("fake_compiler", *paths, environment, seconds, is_enough)

    return run


def test_an_answer(run: Run, tmp_path: Path) -> None:
    assert run("print('said')\nopen(ANSWER, 'w').write(json.dumps({'ok': sys.argv[1]}))") == Ending(
        {"ok": str(tmp_path / "job")}, 0, False
    )
    assert (tmp_path / "log").read_text() == "said\n"


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGABRT)", -6),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("sys.exit(5)", 5),
        ("1 / 0", 1),
    ],
)
def test_a_child_that_dies(run: Run, program: str, code: int) -> None:
    assert run(program) == Ending(None, code, False)


def test_the_answer_of_a_child_before_does_not_count(run: Run) -> None:
    assert run("open(ANSWER, 'w').write('{}')").answer == {}
    assert run("sys.exit(1)") == Ending(None, 1, False)


def test_a_child_that_takes_too_long(run: Run) -> None:
    begin = time.monotonic()
    assert run("time.sleep(600)", 0.5) == Ending(None, -9, True)
    assert time.monotonic() - begin < 20


def test_a_child_is_ended_when_there_is_enough(run: Run, tmp_path: Path) -> None:
    program = f"open({str(tmp_path / 'dump')!r}, 'w').close()\ntime.sleep(600)"
    assert run(program, None, (tmp_path / "dump").exists) == Ending(None, -9, False)


def test_what_a_child_started_is_not_left(run: Run, tmp_path: Path) -> None:
    run(
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(ANSWER, 'w').write(json.dumps({'ok': child.pid}))\n"
        "os._exit(0)"
    )
    pid = json.loads((tmp_path / "a").read_text())["ok"]
    for _ in range(100):
        if not _runs(pid):
            return
        time.sleep(0.05)
    pytest.fail("it runs on")


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


PARENT = """
import os, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", sys.argv[1]], start_new_session=True, stdout=subprocess.PIPE, text=True
)
print(child.stdout.readline(), end="", flush=True)
os.kill(os.getpid(), 9)
"""
CHILD = """
import os, time
from hloopt.compilers.plugin_child import end_with_parent
parent = os.getppid()
{0}
end_with_parent({1!r}, parent)
if {0!r} == "":
    print(os.getpid(), flush=True)
time.sleep(600)
"""
LATER = "print(os.getpid(), flush=True)\nwhile os.getppid() == parent: time.sleep(0.01)"


@pytest.mark.parametrize("before", ["", LATER])
def test_a_child_ends_with_its_parent_and_removes_the_folder(before: str, tmp_path: Path) -> None:
    """Also where the parent is gone before it looks."""
    folder = tmp_path / "job"
    folder.mkdir()
    command = [sys.executable, "-c", PARENT, CHILD.format(before, str(folder / "job.json"))]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    child = int(run.stdout)
    for _ in range(100):
        if not _runs(child) and not folder.exists():
            return
        time.sleep(0.1)
    pytest.fail("it is left")
