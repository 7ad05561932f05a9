"""Paths that fsspec reaches: a memory of its own, and a real HTTP server."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.dumps.dump_maker import OTHER_GROUPS, STEP, changed_from, write_dump

from hloopt.cli import main

fsspec = pytest.importorskip("fsspec", reason="needs the extra remote")
pytest.importorskip("aiohttp", reason="needs the extra remote")

Capture = pytest.CaptureFixture[str]


class Quiet(SimpleHTTPRequestHandler):
    """Lists folders as pages of links, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    passes, end = changed_from(1, "{{0,1,2,3}}", OTHER_GROUPS)
    for host in range(3):
        write_dump(tmp_path / "dump" / f"process-{host}")
    write_dump(tmp_path / "dump" / "process-1", passes=passes, end=end)
    return tmp_path / "dump"


@pytest.fixture
def http(dump: Path) -> Iterator[str]:
    handler = partial(Quiet, directory=str(dump.parent))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/dump"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def memory(dump: Path) -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for path in dump.rglob("*"):
        if path.is_file():
            system.pipe_file(f"/dump/{path.relative_to(dump)}", path.read_bytes())
    yield "memory://dump"
    system.rm("/dump", recursive=True)


def run(arguments: list[str], capsys: Capture) -> tuple[int, str]:
    exit_code = main(arguments)
    return exit_code, capsys.readouterr().out


@pytest.mark.parametrize("place", ["http", "memory"])
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_dumps_elsewhere_are_dumps_here(
    place: str, jobs: str, dump: Path, request: pytest.FixtureRequest, capsys: Capture
) -> None:
    url: str = request.getfixturevalue(place)
    line = ["--no-cache", "--format", "json", "-j", jobs]
    here = run(["dumps", str(dump), *line], capsys)
    there = run(["dumps", url, *line], capsys)
    assert there[0] == here[0] == 1
    assert json.loads(there[1].replace(url, str(dump))) == json.loads(here[1])
    assert len(json.loads(there[1])["divergences"]) == 1


@pytest.mark.parametrize("place", ["http", "memory"])
@pytest.mark.parametrize(
    "command", ["stats", "verify", "fingerprint", "memory", "fmt --check", "lint"]
)
def test_commands_read_from_there(
    place: str, command: str, dump: Path, request: pytest.FixtureRequest, capsys: Capture
) -> None:
    url: str = request.getfixturevalue(place)
    here = run([*command.split(), str(dump)], capsys)
    there = run([*command.split(), url, "-j", "2"], capsys)
    assert (there[0], there[1].replace(url, str(dump))) == here


def test_one_module_elsewhere(http: str, capsys: Capture) -> None:
    exit_code, out = run(["dumps", http, "--module", "3", "--passes", "--no-cache"], capsys)
    assert exit_code == 0
    assert "algsimp" in out


def test_results_are_written_there(memory: str, dump: Path, capsys: Capture) -> None:
    source = str(dump / "process-0" / "module_0003.jit_step.before_optimizations.txt")
    for target in ("out.hlo", "folder/out.hlo.gz", "out.hlo.pb"):
        path = f"{memory}/{target}"
        assert main(["opt", source, "--passes", "dce", "-o", path]) == 0
        assert main(["verify", path]) == 0
    assert main(["lint", source, "--format", "json", "-o", f"{memory}/lint.json"]) in (1, 2)
    assert json.loads(fsspec.filesystem("memory").cat_file("/dump/lint.json"))
    capsys.readouterr()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("memory://nothing.hlo", "cannot read memory://nothing.hlo: No such file"),
        ("http://127.0.0.1:9/x.hlo", "cannot read http://127.0.0.1:9/x.hlo: "),
        ("nowhere://x/y.hlo", "error[HLO018]: cannot reach nowhere://x/y.hlo: "),
    ],
)
def test_what_is_not_there(path: str, message: str, capsys: Capture) -> None:
    for command in (["stats"], ["dumps"]):
        assert main([*command, path]) == 2
        err = capsys.readouterr().err
        assert message.replace("read", "list") in err or message in err
        assert "Traceback" not in err


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert main(["stats", "s3://bucket/step.hlo"]) == 2
    err = capsys.readouterr().err
    assert "error[HLO018]: s3://bucket/step.hlo is not on this machine" in err
    assert "pip install 'hloopt[remote]'" in err


def test_a_file_that_vanishes_is_told(http: str, dump: Path, capsys: Capture) -> None:
    path = next((dump / "process-2").glob("*cpu_after*"))
    path.write_text(STEP[:-40], encoding="utf-8")
    assert main(["dumps", http, "--no-cache"]) == 2
    assert "ends in the middle of a module" in capsys.readouterr().out
