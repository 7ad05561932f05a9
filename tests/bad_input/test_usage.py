"""Files that are missing or cannot be written, and wrong options."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.bad_input.refusals import GOOD, Refuse

from hloopt.cli import main


@pytest.mark.parametrize("command", [["opt", "--passes", "dce"], ["memory"], ["verify"], ["run"]])
def test_a_missing_file_is_named(refuse: Refuse, tmp_path: Path, command: list[str]) -> None:
    missing = tmp_path / "missing.hlo"
    stderr = refuse(*command, missing)
    assert stderr == f"error[HLO001]: cannot read {missing}: No such file or directory\n"


@pytest.mark.parametrize(
    ("output", "message"),
    [("step.hlo/out.hlo", "is a file, not a folder"), ("step.hlo/x/out.hlo", "Not a directory")],
)
def test_an_output_below_a_file_cannot_be_written(
    refuse: Refuse, tmp_path: Path, output: str, message: str
) -> None:
    hlo = tmp_path / "step.hlo"
    hlo.write_text(GOOD)
    assert message in refuse("opt", hlo, "--passes", "dce", "-o", tmp_path / output)
    assert hlo.read_text() == GOOD


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_a_name_that_is_no_text_is_shown_escaped(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/st\xffep.hlo")
    Path(path).write_text(GOOD)
    assert main(["opt", path, "--passes", "dce", "--diff"]) == 1
    assert b"/st\\udcffep.hlo\n" in capsysbinary.readouterr().out


def test_a_dump_folder_that_cannot_be_made_is_reported(refuse: Refuse, tmp_path: Path) -> None:
    hlo = tmp_path / "step.hlo"
    hlo.write_text(GOOD)
    folder = tmp_path / "step.hlo" / "dumps"
    stderr = refuse("opt", hlo, "--passes", "dce", "--dump-dir", folder)
    assert stderr == f"error[HLO004]: cannot make folder {folder}: Not a directory\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["opt"], "no input"),
        (["opt", "FILE"], "nothing to run"),
        (["optt"], "did you mean 'opt'?"),
        (["opt", "FILE", "--passes", "dce", "--chek"], "--check"),
        (["opt", "FILE", "--passes", "dce", "--remarks", "mised"], "applied, missed, analysis"),
        (["opt", "FILE", "--passes", "dce", "--remarks", "missed:dec"], "did you mean 'dce'?"),
        (["opt", "FILE", "--passes", "dce", "--print-after", "dec"], "did you mean 'dce'?"),
        (["opt", "FILE", "--passes", "dce", "--format", "json"], "--format json needs"),
        (["opt", "FILE", "--passes", "dce", "-j", "0"], "-j"),
        (["opt", "FILE", "--repro", "FILE"], "--repro names"),
        (["opt", "--repro", "FILE"], "is not a reproducer"),
        (["opt", "FOLDER", "--passes", "dce"], "no HLO files in"),
        (["opt", "FILE", "--passes", "dce", "--validate", "maybe"], "'end', 'each'"),
        (["run", "FOLDER"], "Is a directory"),
        (["equivalent", "FILE"], "Missing argument 'B'"),
        (["equivalent", "-", "-"], "only one of two modules can come from standard input"),
        (["fmt", "FILE", "-o", ""], "--output is given nothing"),
        (["memory", "FILE", "--html", ""], "--html is given nothing"),
        (["run", "FILE", "-o", ""], "--output is given nothing"),
        (["memory", "FILE", "--trace", "FILE"], "--trace would overwrite the input"),
        (["cost", "FILE", "--html", "FILE"], "--html would overwrite the input"),
        (["opt", "FILE", "-", "--passes", "dce", "-o", "FOLDER"], "standard input has no name"),
        (["diff", "-", "-"], "only one of two modules can come from standard input"),
        (["memory", "FILE", "--html", "a", "--trace", "./a"], "cannot both be written to a"),
        (["schedule", "FILE", "--html", "-", "--trace", "-"], "cannot both be written to -"),
        (["opt", "FILE", "-p", "missing.yaml"], "cannot read pipeline missing.yaml"),
        (["passes", "dec"], "did you mean 'dce'?"),
        (["pipelines", "simplfy"], "did you mean 'simplify'?"),
    ],
)
def test_wrong_usage_is_explained(
    refuse: Refuse, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "step.hlo").write_text(GOOD)
    (tmp_path / "folder").mkdir()
    names = {"FILE": str(tmp_path / "step.hlo"), "FOLDER": str(tmp_path / "folder")}
    assert message in refuse(*(names.get(argument, argument) for argument in arguments))
