"""`hloopt analyze reachability`: formats, limits, names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """A file with a chain of instructions."""
    steps = "".join(f"  n.{i} = f32[] negate({f'n.{i - 1}' if i else 'p'})\n" for i in range(3))
    path = tmp_path / "chain.hlo"
    path.write_text(
        f"HloModule m\n\nENTRY e {{\n  p = f32[] parameter(0)\n{steps}"
        "  ROOT r = f32[] sine(n.2)\n}\n"
    )
    return str(path)


def test_json_has_the_file(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "reachability", chain, "%r", "%p", "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["file"], report["first"]["instruction"]) == (chain, "r")
    assert len(report["path"]) == 5


def test_a_path_is_as_long_as_asked_for(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "reachability", chain, "p", "r", "--top", "2"]) == 0
    assert "… 3 more; --top shows them" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["pp", "r"], "Invalid value for A: no instruction 'pp'; did you mean 'p'?"),
        (["p", "%n.5"], "Invalid value for B: no instruction 'n.5'; did you mean 'n."),
        (["p", "elsewhere"], "Invalid value for B: no instruction 'elsewhere'\n"),
        (["p", "e"], "Invalid value for B: 'e' is a computation: name an instruction\n"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(
    chain: str, names: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "reachability", chain, *names]) == 2
    assert message in capsys.readouterr().err
