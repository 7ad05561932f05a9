"""`refuse`: a command line that is to be refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.bad_input.refusals import Refuse

from hloopt.cli import main


@pytest.fixture
def refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Run a command line that must fail; returns what it said. `out.hlo` must stay as it was."""
    output = tmp_path / "out.hlo"
    output.write_text("as it was")

    def run(*arguments: str | Path, exit_code: int = 2) -> str:
        before = sorted(tmp_path.rglob("*"))
        assert main(list(map(str, arguments))) == exit_code
        stdout, stderr = capsys.readouterr()
        assert stdout == ""
        assert len(re.findall(r"^(?:Error|error\[HLO\d{3}\]): ", stderr, re.M)) == 1
        assert "Traceback" not in stderr
        assert output.read_text() == "as it was"
        assert sorted(tmp_path.rglob("*")) == before
        return stderr

    return run
