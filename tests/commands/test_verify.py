"""`hloopt verify`: exit codes and places of problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.cli import main

GOOD = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} negate(p)\n}\n"
INVALID = GOOD.replace("q = f32[4]", "q = f32[5]")
MALFORMED = GOOD.replace("negate", "negat")


@pytest.mark.parametrize(
    ("texts", "exit_code", "summary"),
    [
        ([GOOD], 0, "no problem in 1 file"),
        ([GOOD, INVALID], 1, "1 problem in 2 files"),
        ([INVALID, MALFORMED], 2, "2 problems in 2 files"),
    ],
)
def test_all_problems_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], texts: list[str], exit_code: int,
    summary: str,
) -> None:  # fmt: skip
    paths = [str(tmp_path / f"{number}.hlo") for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        Path(path).write_text(text)
    assert main(["verify", *paths]) == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"{summary}\n")
    assert err.count("error[HLO") == sum(text != GOOD for text in texts)
    assert main(["verify", *paths, "--format", "json"]) == exit_code
    problems = json.loads(capsys.readouterr().out)
    assert [p["line"] for p in problems] == [5 for text in texts if text != GOOD]


def test_json_says_where_and_what_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(INVALID)
    assert main(["verify", str(path), "--format", "json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)
    message = problem.pop("message")
    assert message.startswith("%q: Expected instruction to have shape equal to f32[4]")
    assert problem == {
        "file": str(path),
        **{"line": 5, "column": 8, "end_line": 5, "end_column": 31},
        **{"code": "HLO300", "help": None, "instruction": "q", "computation": "e"},
    }


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (GOOD.replace("negate(p)", "add(p, h)").replace(
            "ROOT", "h = bf16[4]{0} parameter(1)\n  ROOT"), "--allow-mixed-precision"),
        (GOOD.replace("m\n", "m, replica_count=4\n", 1).replace(
            "negate(p)", "collective-permute(p), source_target_pairs={{0,1}}"), None),
        (GOOD.replace("f32[4]{0} negate(p)", 'f32[?]{0} custom-call(p), custom_call_target="f"'),
         "--supported-unbounded-dynamic-ops=custom-call"),
    ],
)  # fmt: skip
def test_options_are_those_of_the_verifier(tmp_path: Path, text: str, option: str | None) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(text)
    assert main(["verify", str(path)]) == (1 if option else 0)
    assert main(["verify", str(path), *([option] if option else [])]) == 0


def test_layouts_count_where_they_should(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        "ENTRY e {\n  p = f32[4,2]{1,0} parameter(0)\n  ROOT q = f32[4,2]{0,1} negate(p)\n}\n"
    )
    assert main(["verify", str(path)]) == 0
    strict = ["--layout-sensitive", "--instruction-can-change-layout=layout-assignment"]
    assert main(["verify", str(path), *strict]) == 1
    assert ":3:8\n" in capsys.readouterr().err


def test_an_unknown_opcode_is_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(GOOD)
    assert main(["verify", str(path), "--supported-unbounded-dynamic-ops", "ad"]) == 2
    assert "there is no opcode 'ad'; did you mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("HloModule m", "HloModule m, num_partitions=0"),
        GOOD.replace("ROOT q = f32[4]{0}", "ROOT q = f32[4]{7}"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_reckoned_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(text)
    assert main(["verify", str(path)]) == 1
    for command in (["cost"], ["schedule", "--target", "h100_sxm"], ["analyze", "overlap"]):
        assert main([*command, str(path)]) == 2
        assert "Traceback" not in capsys.readouterr().err
