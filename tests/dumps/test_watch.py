"""`--watch`: what appears in a folder is told once it is whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.dumps.dump_maker import END, OTHER_GROUPS, changed_from, write_dump

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
INTERRUPTED = 130


@pytest.fixture
def watch(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> Callable[[Sequence[str], Sequence[Callable[[], object]]], list[str]]:
    """Runs a command; between its looks something happens, at last Ctrl-C. The lines of stdout."""

    def run(arguments: Sequence[str], events: Sequence[Callable[[], object]]) -> list[str]:
        waiting = list(events)

        def sleep(seconds: float) -> None:
            if not waiting:
                raise KeyboardInterrupt
            waiting.pop(0)()

        monkeypatch.setattr(time, "sleep", sleep)
        assert main([*arguments, "--watch"]) == INTERRUPTED
        captured = capsys.readouterr()
        assert captured.err.startswith("watching: Ctrl-C ends it\n")
        return captured.out.splitlines()

    return run


def nothing() -> None:
    """A look at which nothing has changed."""


def test_dumps(tmp_path: Path, watch: Callable[..., list[str]]) -> None:
    passes, end = changed_from(1, "{{0,1,2,3}}", OTHER_GROUPS)
    first = tmp_path / "process-0"
    write_dump(first, end=None)
    lines = watch(
        ["dumps", str(tmp_path), "--no-cache"],
        [
            nothing,
            lambda: write_dump(first),
            nothing,
            nothing,
            lambda: write_dump(tmp_path / "process-1", passes=passes, end=end),
            nothing,
            lambda: write_dump(first, id=9),
            nothing,
        ],
    )
    assert lines[0] == (
        "jit_step, module 3, on process-0: 8 instructions, peak 1.0 KiB, collectives 1, 256 B"
    )
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "jit_step, module 3, on process-1",
        "hosts differ",
        "collectives in another order",
        "jit_step, module 9, on process-0",
        "compiled again",
    ]


@pytest.mark.parametrize("command", ["memory", "lint"])
def test_memory_and_lint(command: str, tmp_path: Path, watch: Callable[..., list[str]]) -> None:
    def write(name: str, text: str = END) -> Callable[[], object]:
        return lambda: (tmp_path / f"{name}.hlo").write_text(text, encoding="utf-8")

    lines = watch(
        [command, str(tmp_path)],
        [nothing, write("a"), write("b", END[:60]), write("b"), nothing, nothing, write("c")],
    )
    titles = [line for line in lines if ".hlo" in line]
    assert len([title for title in titles if "a.hlo" in title]) == 1
    assert len([title for title in titles if "b.hlo" in title]) == 1
    assert not any("c.hlo" in title for title in titles)


@pytest.mark.parametrize(
    "line",
    [
        *("dumps {} --watch --module 3", "dumps {} --watch --html x.html"),
        *("dumps {} --watch --format json", "memory {} --watch --format json"),
        *("memory {} --watch --trace t.json", "lint {} --watch --format sarif"),
        *(
            "lint {} --watch -o x",
            "lint {} --watch --write-baseline x",
            "memory {} --watch --shard 0/2",
        ),
    ],
)
def test_what_has_no_end_writes_nothing_at_the_end(
    line: str, tmp_path: Path, capsys: Capture
) -> None:
    write_dump(tmp_path)
    assert main(line.format(tmp_path).split()) == 2
    assert "--watch" in capsys.readouterr().err
