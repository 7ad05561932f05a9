"""Pages about shardings on narrow and wide terminals."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.sharding.fake_partitioner import install
from tests.sharding.sharding_pairs import NAMES, paths_of

from hloopt.cli import main
from hloopt.files import load

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_too_wide(
    name: str, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    long = f"/{'q' * 190}"
    paths = []
    for number, path in enumerate(paths_of(name)):
        text = Path(path).read_text().replace("jit(f)", f"jit(f){long}").replace("f.py", long)
        (tmp_path / f"{number}.hlo").write_text(text.replace("%x", f"%x_{'q' * 190}"))
        paths.append(str(tmp_path / f"{number}.hlo"))
    assert main(["sharding", "explain", *paths]) == 0
    assert main(["sharding", "show", paths[0]]) == 0
    install(monkeypatch)
    constraint = next(i.name for i in load(paths[0]).instructions() if "sharding" in i.attributes)
    assert main(["sharding", "what-if", paths[0], "--drop", f"%{constraint}"]) == 0
    for command in ("stats", "schedule"):
        assert main([command, paths[1], "--before", paths[0]]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert line == line.rstrip()
        assert cell_len(line) <= width, line
