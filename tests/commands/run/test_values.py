"""`hloopt run` prints values of instructions on the way."""

from __future__ import annotations

import numpy as np
from tests.commands.run.modules import LOOP, ODD, STEP, Capture, Write, refused, run_json

from hloopt.cli import main


def test_values_of_an_instruction_are_printed(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--fill", "iota", "--print-values", "%n"]) == 0
    out = capsys.readouterr().out
    assert "%n on device 1: f32[2,2]\n[[-0., -1.],\n [-2., -3.]]\n" in out


def test_an_instruction_that_did_not_run_is_named(write: Write, capsys: Capture) -> None:
    text = LOOP.replace("constant(true)", "constant(false)")
    assert main(["run", write(text), "--print-values", "y", "--print-values", "t"]) == 0
    out, err = capsys.readouterr()
    assert "%t: pred[]\nFalse\n" in out
    assert "%y did not run" in err


def test_a_wrong_name_is_refused(write: Write, capsys: Capture) -> None:
    error = refused(capsys, write(STEP), "--print-values", "tokns")
    assert "no instruction 'tokns'; did you mean 'tokens'?" in error


def test_trace_shows_every_value(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--fill", "iota", "--trace"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["device", "instruction", "type", "min", "max", "mean", "NaN"]
    assert ["1", "%n", "f32[2,2]", "-3", "-0", "-1.5"] in [line.split() for line in lines]
    of_first = [line.split()[1] for line in lines if line.split()[:1] == ["0"] and "%" in line]
    assert of_first[:6] == ["%p", "%tokens", "%state", "%state", "%n", "%d"]


def test_json_has_traced_values_too(write: Write, capsys: Capture) -> None:
    found = run_json(write(ODD), capsys, "--trace", "--print-values", "special")
    values = {record["instruction"]: record["arrays"] for record in found["values"]}
    assert list(values) == ["empty", "complex", "t", "nested", "special", "r"]
    assert values["special"][0]["values"] == ["NaN", "Infinity", "-Infinity", 1.0]
    assert values["t"] == []
    assert "values" not in values["complex"][0]
    outputs = found["devices"][0]["outputs"]
    assert [o["type"] for o in outputs] == ["f32", "c64", "s4", "pred", "f32", "f32"]
    assert np.shape(outputs[1]["values"]) == (2, 2)
