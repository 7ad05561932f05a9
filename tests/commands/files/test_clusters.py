"""`--executor` on real clusters on this machine: two workers, one of which is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dump_folder import write_folder
from hloopt.cli import main

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
SECONDS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump")
    write_folder(path, 400)
    return path


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str]:
    """A head and a second node, each with one worker."""
    pytest.importorskip("ray", reason="needs the extra ray: make test-clusters")
    start = [str(BIN / "ray"), "start", "--num-cpus=1", "--disable-usage-stats"]
    head = ["--head", "--port=6397", "--ray-client-server-port=10001"]
    stop = [str(BIN / "ray"), "stop", "--force"]
    subprocess.run(stop, capture_output=True, timeout=SECONDS, check=False)
    for options in ([*head, "--include-dashboard=false"], ["--address=127.0.0.1:6397"]):
        subprocess.run([*start, *options], capture_output=True, timeout=SECONDS, check=True)
    wait = "import ray; ray.init('ray://127.0.0.1:10001'); assert len(ray.nodes()) == 2"
    for _ in range(10):  # until the server for clients has begun
        done = subprocess.run(
            [sys.executable, "-c", wait], capture_output=True, timeout=SECONDS, check=False
        )
        if not done.returncode:
            break
        time.sleep(1)
    yield "ray://127.0.0.1:10001"
    subprocess.run(stop, capture_output=True, timeout=SECONDS, check=True)


@pytest.fixture(scope="module")
def dask_cluster() -> Iterator[str]:
    """A scheduler and two workers."""
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"


def command(arguments: list[str]) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "hloopt", *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def workers() -> list[int]:
    """Processes of Ray that run a task."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(b"ray::_call"):
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("cluster", ["ray_cluster", "dask_cluster"])
@pytest.mark.parametrize("line", ["stats {} --format json", "verify {}", "dumps {} --no-cache"])
def test_a_cluster_writes_what_one_process_does(
    cluster: str, line: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(cluster)
    arguments = line.format(folder).split()
    alone = command(arguments)
    whole = alone.communicate(timeout=SECONDS)
    there = command([*arguments, "--executor", url])
    out, err = there.communicate(timeout=SECONDS)
    assert err == whole[1]
    assert out == whole[0]
    assert there.returncode == alone.returncode


def test_a_worker_that_is_killed_is_no_loss(ray_cluster: str, folder: Path) -> None:
    arguments = ["stats", str(folder)]
    whole = command(arguments).communicate(timeout=SECONDS)[0]
    run = command([*arguments, "--executor", ray_cluster])
    killed = 0
    deadline = time.monotonic() + SECONDS
    while run.poll() is None and killed < 3 and time.monotonic() < deadline:
        for pid in workers()[:1]:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        time.sleep(0.3)
    out, _ = run.communicate(timeout=SECONDS)
    assert killed
    assert run.returncode == 0
    assert out == whole  # nothing is missing, and nothing there twice


@pytest.mark.parametrize("url", ["ray://", "x://y", "ray", "slurm://a"])
def test_what_is_no_cluster(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(folder), "--executor", url]) == 2
    assert "is no cluster" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["ray", "dask"])
def test_without_the_engine(
    engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("ray", "distributed"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(["stats", str(folder), "--executor", f"{engine}://127.0.0.1:1"]) == 2
    assert f"pip install 'hloopt[{engine}]'" in capsys.readouterr().err
