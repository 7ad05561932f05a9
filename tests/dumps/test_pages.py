"""Folders of dumps as Markdown and as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.dumps.dump_maker import OTHER_GROUPS, STEP, changed_from, write_dump

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    passes, end = changed_from(1, "{{0,1,2,3}}", OTHER_GROUPS)
    for host in range(3):
        write_dump(tmp_path / "dump" / f"process-{host}")
    write_dump(tmp_path / "dump" / "process-1", passes=passes, end=end)
    write_dump(tmp_path / "dump" / "process-2", id=7, begin=STEP.replace("8,8", "9,9"), end=None)
    write_dump(tmp_path / "dump" / "process-2", id=8, name="jit_x", begin="HloModule", end=None)
    return tmp_path / "dump"


class Links(HTMLParser):
    """The targets of links, and the identities that they may be to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.identities: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "href" and value:
                self.targets.append(value)
            elif name == "id" and value:
                self.identities.add(value)


def test_every_link_of_the_page_leads_somewhere(
    hosts: Path, tmp_path: Path, capsys: Capture
) -> None:
    place = tmp_path / "out" / "dumps.html"
    line = ["dumps", str(hosts), "--no-cache", "--html", str(place), "--pages", "1"]
    assert main(line) == 2
    assert capsys.readouterr().err == f"wrote {place}\n"
    text = place.read_text(encoding="utf-8")
    links = Links(text)
    assert len(links.targets) > 10
    for target in links.targets:
        if target.startswith("#"):
            assert target[1:] in links.identities
        else:
            assert (place.parent / unquote(target)).is_file(), target
    assert [Path(t).name for t in links.targets if ".pages/" in t] == [
        *("1.jit_step.memory.html", "1.jit_step.schedule.html")
    ]
    assert '<span class="exhausted">hosts differ</span>: jit_step' in text
    assert "Compiled again: 1" in text
    assert "Not read: 1 file" in text


def test_the_page_alone_on_stdout(hosts: Path, capsys: Capture) -> None:
    line = ["dumps", str(hosts), "--no-cache", "--html", "-"]
    assert main(line) == 2
    out = capsys.readouterr().out
    assert out.startswith("<!doctype html>")
    assert out.count("<!doctype html>") == 1
    assert main([*line, "--pages", "1"]) == 2
    assert "--pages are files" in capsys.readouterr().err


def test_markdown(hosts: Path, capsys: Capture) -> None:
    assert main(["dumps", str(hosts), "--no-cache", "--format", "markdown"]) == 2
    out = capsys.readouterr().out
    assert "- **hosts differ**: jit\\_step\n  - `from simplification: algsimp on (" in out
    assert re.search(r"^\| jit\\_step \|  \| 3 \| 3 \| 5 \| 9 → 8 \| ", out, re.M)
    assert "**Not read**: 1 file" in out
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    assert main(["dumps", str(hosts), "--module", "3", "--format", "markdown"]) == 2
