"""`hloopt analyze reachability`: formats, names, long paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main


@pytest.fixture
def chain(tmp_path: Path) -> str:
    """A file with a chain of a thousand instructions."""
    steps = "".join(f"  n.{i} = f32[] negate({f'n.{i - 1}' if i else 'p'})\n" for i in range(999))
    path = tmp_path / "chain.hlo"
    path.write_text(
        f"HloModule m\n\nENTRY e {{\n  p = f32[] parameter(0)\n{steps}"
        "  ROOT r = f32[] sine(n.998)\n}\n"
    )
    return str(path)


def test_json_has_the_whole_path(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "reachability", chain, "%r", "%p", "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    path = report.pop("path")
    assert report == {
        "file": chain,
        "module": "m",
        "first": {"instruction": "r", "computation": "e"},
        "second": {"instruction": "p", "computation": "e"},
        "compared": ["r", "p"],
        "is_reachable": False,
        "is_connected": True,
    }
    assert len(path) == 1001
    assert path[0] == {"instruction": "p", "opcode": "parameter", "takes_previous_as": None}
    assert path[-1] == {"instruction": "r", "opcode": "sine", "takes_previous_as": "operand 0"}


@pytest.mark.parametrize(("top", "shown"), [("2", 2), ("5", 5), ("2000", 1001)])
def test_the_middle_of_a_long_path_is_left_out(
    chain: str, top: str, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "reachability", chain, "p", "r", "--top", top]) == 0
    out = capsys.readouterr().out
    assert out.count("%") - len("%%") == shown
    assert (f"… {1001 - shown:,} more" in out) == (shown < 1001)


def test_an_instruction_is_reachable_from_itself(
    chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "reachability", chain, "p", "p"]) == 0
    assert capsys.readouterr().out == "%p is reachable from %p\n"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["pp", "r"], "Invalid value for A: no instruction 'pp'; did you mean 'p'?"),
        (["p", "%n.1000"], "Invalid value for B: no instruction 'n.1000'; did you mean 'n."),
        (["p", "elsewhere"], "Invalid value for B: no instruction 'elsewhere'\n"),
        (["p", "e"], "Invalid value for B: 'e' is a computation: name an instruction\n"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(
    chain: str, names: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "reachability", chain, *names]) == 2
    assert message in capsys.readouterr().err
