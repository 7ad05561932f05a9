"""Closed pipes, full disks, signals: what happens to a process of its own."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

LAYERS = 3000
SOURCE = Path(__file__).parents[1] / "src"

needs_a_full_disk = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="the system has no /dev/full"
)


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module of some hundred kilobytes, on which `dce` takes part of a second."""
    lines = ["HloModule step\n\nENTRY e {\n  t0 = f32[8]{0} parameter(0)\n"]
    for number in range(1, LAYERS):
        lines.append(f"  t{number} = f32[8]{{0}} negate(t{number - 1})\n")
        lines.append(f"  dead{number} = f32[8]{{0}} add(t{number}, t{number})\n")
    lines.append(f"  ROOT r = f32[8]{{0}} negate(t{LAYERS - 1})\n}}\n")
    path = tmp_path_factory.mktemp("streams") / "step.hlo"
    path.write_text("".join(lines))
    return path


def start(
    *arguments: str | Path,
    environment: dict[str, str] | None = None,
    stdout: int | IO[str] = subprocess.PIPE,
    stderr: int | IO[str] = subprocess.PIPE,
    before: Callable[[], object] | None = None,
) -> subprocess.Popen[str]:
    """Start the command line; `before` is called in the new process, ahead of it."""
    return subprocess.Popen(
        [sys.executable, "-m", "hloopt", *map(str, arguments)],
        stdout=stdout,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **(environment or {})},
        preexec_fn=before,
        start_new_session=True,  # signals to the group must not reach the tests
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [
        *(["opt", "--passes", "dce"], ["opt", "--passes", "dce", "--diff"], ["memory"]),
        *(["run", "--trace"], ["run", "--format", "json", "--trace"]),
    ],
)
def test_a_reader_that_stops_ends_the_command_quietly(
    step: Path, arguments: list[str], unbuffered: str
) -> None:
    command, *options = arguments
    process = start(command, step, *options, environment={"PYTHONUNBUFFERED": unbuffered})
    assert process.stdout is not None
    assert process.stderr is not None
    if command == "memory":
        process.stdout.close()  # its report would fit into the pipe
    else:
        process.stdout.readline()
        process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == ""
    assert process.wait(30) == 141


@needs_a_full_disk
@pytest.mark.parametrize("command", [["opt", "--passes", "dce"], ["memory"], ["run"]])
def test_a_full_disk_behind_stdout_is_reported(step: Path, command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        process = start(command[0], step, *command[1:], stdout=full)
        _, stderr = process.communicate(timeout=30)
    assert stderr == "error: cannot write the output: No space left on device\n"
    assert process.returncode == 2


@needs_a_full_disk
@pytest.mark.parametrize("option", ["--version", "--help"])
def test_a_full_disk_behind_what_needs_no_command_is_reported(option: str) -> None:
    with open("/dev/full", "w") as full:
        process = start(option, stdout=full)
        _, stderr = process.communicate(timeout=30)
    assert stderr == "error: cannot write the output: No space left on device\n"
    assert process.returncode == 2


@needs_a_full_disk
@pytest.mark.parametrize("arguments", [["verify", "missing.hlo"], ["verify", "--nope"]])
def test_the_exit_code_tells_where_stderr_cannot(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        process = start(*arguments, stderr=full)
        stdout, _ = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (2, "")


def test_a_closed_stdin_is_reported() -> None:
    process = start("opt", "-", "--passes", "dce", before=lambda: os.close(0))
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (2, "")
    assert stderr == "error[HLO001]: cannot read <stdin>: it is closed\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory so")
@pytest.mark.parametrize("options", [["verify"], ["opt", "--passes", "dce", "--check", "-j", "2"]])
def test_a_small_file_that_unpacks_to_more_than_there_is_memory(
    tmp_path: Path, options: list[str]
) -> None:
    import resource

    path, other = tmp_path / "bomb.hlo.gz", tmp_path / "other.hlo.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(500):
            file.write(bytes(1 << 20))
    other.write_bytes(path.read_bytes())
    limits = (400 << 20, 400 << 20)
    process = start(
        *options, path, other, before=lambda: resource.setrlimit(resource.RLIMIT_AS, limits)
    )
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (2, "")
    assert "memory ran out" in stderr
    assert "Traceback" not in stderr


def test_an_interrupt_while_the_command_line_is_imported(tmp_path: Path) -> None:
    """A module of ours in the place of click interrupts the process inside the import."""
    (tmp_path / "click.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(SOURCE)])
    process = start("verify", "-", environment={"PYTHONPATH": path})
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 130


def test_output_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    path = tmp_path / "x.hlo"
    text = 'HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0), metadata={op_name="é"}\n}\n'
    path.write_text(text, encoding="utf-8")
    process = start("opt", path, "--passes", "dce", environment={"PYTHONIOENCODING": "ascii"})
    assert isinstance(process.stdout, io.TextIOWrapper)
    assert process.stdout.buffer.read() == text.encode()
    process.communicate(timeout=30)
    assert process.returncode == 0
    process = start("memory", path, environment={"PYTHONIOENCODING": "ascii"})
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (0, "")
    assert stdout.isascii()


@pytest.mark.parametrize(
    ("number", "exit_code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "")],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_signal_ends_the_command_without_traceback(
    step: Path, tmp_path: Path, number: signal.Signals, exit_code: int, said: str, jobs: str
) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    text = step.read_text()
    for copy in range(60):
        (inputs / f"{copy}.hlo").write_text(text)
    outputs = tmp_path / "out"
    process = start("opt", inputs, "--passes", "dce", "-j", jobs, "-o", outputs)
    deadline = time.monotonic() + 20
    while not list(outputs.glob("*.hlo")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == exit_code
    assert stderr.strip() == said
    written = {path.name for path in outputs.iterdir()}
    assert 0 < len(written) < 60
    assert written <= {f"{copy}.hlo" for copy in range(60)}  # no temporary files
    assert len({path.read_text() for path in outputs.iterdir()}) == 1


ENDLESS = (
    "HloModule m\nalways { x = s32[] parameter(0) ROOT t = pred[] constant(true) }\n"
    "twice { x = s32[] parameter(0)  ROOT s = s32[] add(x, x) }\n"
    "ENTRY e { p = s32[] parameter(0)  dead = s32[] negate(p)"
    " ROOT w = s32[] while(p), condition=always, body=twice }\n"
)


def test_a_run_can_be_interrupted(tmp_path: Path) -> None:
    path, output = tmp_path / "loop.hlo", tmp_path / "out.npz"
    path.write_text(ENDLESS)
    process = start("run", path, "--print-values", "t", "-o", output)
    assert process.stdout is not None
    assert process.stdout.readline() == "%t: pred[]\n"
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr.strip()) == (130, "interrupted")
    assert not output.exists()


def test_killing_the_command_leaves_the_old_or_the_new_output(step: Path, tmp_path: Path) -> None:
    """SIGKILL cannot be caught: a hidden .tmp file may stay, the output itself is whole."""
    output = tmp_path / "out.hlo"
    started = time.monotonic()
    process = start("opt", step, "--passes", "dce", "--no-report", "-o", output)
    assert process.communicate(timeout=30)[1] == ""
    duration = time.monotonic() - started
    new = output.read_text()
    rng = random.Random(0)
    endings = set()
    for delay in [0.0, *(duration * rng.uniform(0.3, 1.1) for _ in range(11))]:
        output.write_text("old")
        process = start("opt", step, "--passes", "dce", "--no-report", "-o", output)
        time.sleep(delay)
        process.kill()
        process.communicate(timeout=30)
        assert output.read_text() in ("old", new)
        endings.add(process.returncode)
    assert -signal.SIGKILL in endings
    names = {path.name for path in tmp_path.iterdir()} - {"out.hlo"}
    assert all(name.startswith(".out.hlo.") and name.endswith(".tmp") for name in names)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_workers_end_quietly_when_their_command_is_killed(tmp_path: Path) -> None:
    """They run a loop without an end: only the end of the main process can end them."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for copy in range(4):
        (inputs / f"{copy}.hlo").write_text(ENDLESS)
    errors = tmp_path / "errors"
    options = ["--passes", "dce", "-j", "2", "-o", str(tmp_path / "out"), "--validate"]
    with open(errors, "w") as stderr:
        process = start("opt", inputs, *options, stderr=stderr)
        while len(members := _group(process.pid)) < 3:
            time.sleep(0.02)
        time.sleep(1.0)  # let them begin to work
        process.kill()
        process.communicate(timeout=30)
    deadline = time.monotonic() + 20
    while _group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(members) == 3
    assert _group(process.pid) == []
    assert errors.read_text() == ""


def _group(leader: int) -> list[int]:
    """The processes of a group that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group, *_ = path.read_text().rpartition(")")[2].split()
            if int(group) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found


# -- outputs that are no regular files ------------------------------------------------------------

SMALL = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
WRITERS = (["opt", "--passes", "dce", "--no-report"], ["fmt"])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.hlo"
    path.write_text(SMALL)
    return path


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="the system has no /dev/stdout")
@pytest.mark.parametrize("command", WRITERS)
def test_the_device_of_stdout_is_written_behind_what_is_in_it(
    small: Path, tmp_path: Path, command: list[str]
) -> None:
    process = start(*command, small, "-o", "/dev/stdout")
    assert process.communicate(timeout=30)[0].endswith("}\n")
    log = tmp_path / "log"
    log.write_text("before\n")
    with open(log, "a") as file:
        process = start(*command, small, "-o", "/dev/stdout", stdout=file)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert re.fullmatch(r"before\nHloModule m.*\}\n", log.read_text(), re.S)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="the system has no /dev/fd")
@pytest.mark.parametrize("command", WRITERS)
def test_a_process_substitution_gets_the_whole_output(small: Path, command: list[str]) -> None:
    reader, writer = os.pipe()
    line = [*map(str, [sys.executable, "-m", "hloopt", *command, small, "-o", f"/dev/fd/{writer}"])]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(line, pass_fds=[writer], env=environment, timeout=30, check=False)
    os.close(writer)
    with open(reader) as file:
        assert file.read().endswith("}\n")
    assert done.returncode == 0


@pytest.mark.parametrize("command", WRITERS)
def test_a_named_pipe_is_written_to_and_stays(
    small: Path, tmp_path: Path, command: list[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start(*command, small, "-o", pipe)
    assert pipe.read_text().endswith("}\n")
    assert process.communicate(timeout=30)[0] == ""
    assert process.returncode == 0
    assert pipe.is_fifo()


@pytest.mark.parametrize("command", WRITERS)
def test_the_null_device_is_written_to_and_stays(small: Path, command: list[str]) -> None:
    process = start(*command, small, "-o", os.devnull)
    assert process.communicate(timeout=30)[0] == ""
    assert process.returncode == 0
    assert not Path(os.devnull).is_file()
