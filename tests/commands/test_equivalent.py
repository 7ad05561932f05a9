"""`hloopt equivalent`: exit codes, formats, and the first difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
Write = Callable[..., list[str]]

BEFORE = """HloModule m

ENTRY e {
  p = f32[2,2]{1,0} parameter(0)
  i = s32[3]{0} parameter(1)
  n = f32[2,2]{1,0} negate(p)
  a = f32[2,2]{1,0} add(n, n)
  ROOT r = (f32[2,2]{1,0}, s32[3]{0}) tuple(a, i)
}
"""
EQUAL = BEFORE.replace(" add(n, n)", " subtract(n, p)").replace("HloModule m", "HloModule other")
DIFFERENT = BEFORE.replace(" add(n, n)", " add(p, n)")
ENDLESS = """HloModule m

always { x = s32[] parameter(0) ROOT t = pred[] constant(true) }
same { ROOT x = s32[] parameter(0) }
ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=always, body=same }
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write modules into files; their paths."""

    def write(*texts: str) -> list[str]:
        paths = [tmp_path / f"{number}.hlo" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return list(map(str, paths))

    return write


def test_equal_modules(write: Write, capsys: Capture) -> None:
    assert main(["equivalent", *write(BEFORE, EQUAL), "--seeds", "2"]) == 0
    assert capsys.readouterr() == ("equal: 2 outputs, 1 device, 2 seeds\n", "")


def test_the_first_difference_is_named_in_one_line(write: Write, capsys: Capture) -> None:
    paths = write(BEFORE, DIFFERENT)
    assert main(["equivalent", *paths, "--fill", "iota", "--devices", "1x2"]) == 1
    assert capsys.readouterr() == (
        "different: output{0}[0,1] was -2.0, it is 0.0; 3 of 4 elements differ on device 0 "
        "(seed 0)\n",
        "",
    )


def test_json_of_a_difference(write: Write, capsys: Capture) -> None:
    paths = write(BEFORE, DIFFERENT)
    assert main(["equivalent", *paths, "--fill", "iota", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found.pop("difference") == {
        "reason": "output{0}[0,1] was -2.0, it is 0.0; 3 of 4 elements differ (seed 0)",
        "seed": 0,
        "device": 0,
        "output": [0],
        "index": [0, 1],
        "before": "-2.0",
        "after": "0.0",
        "different_elements": 3,
        "elements": 4,
    }
    assert found == {
        **{"before": paths[0], "after": paths[1], "equal": False},
        **{"devices": 1, "seeds": 3, "outputs": 2},
    }


def test_json_of_equal_modules(write: Write, capsys: Capture) -> None:
    assert main(["equivalent", *write(BEFORE, BEFORE), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"]
    assert "difference" not in found


ROOT = "ROOT r = (f32[2,2]{1,0}, s32[3]{0}) tuple(a, i)"
PARAMETER = "i = s32[3]{0} parameter(1)"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (PARAMETER, "i = s32[3]{0} constant({1, 2, 3})", "2 parameters before, 1 after"),
        (PARAMETER, "k = s64[3] parameter(1) i = s32[3] convert(k)", "parameter 1 was s32[3]"),
        (ROOT, "ROOT r = f32[2,2]{1,0} copy(a)", "the result was (f32[2,2]"),
    ],
)
def test_modules_with_other_signatures_differ(
    write: Write, capsys: Capture, old: str, new: str, reason: str
) -> None:
    paths = write(BEFORE, BEFORE.replace(old, new))
    assert main(["equivalent", *paths]) == 1
    assert reason in capsys.readouterr().out
    assert main(["equivalent", *paths, "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["difference"]["output"] is None


def test_given_arrays_are_for_parameters_of_any_name(
    write: Write, tmp_path: Path, capsys: Capture
) -> None:
    """Zeros hide the difference only if both modules get them."""
    renamed = DIFFERENT.replace("p =", "q =").replace("(p)", "(q)").replace("(p,", "(q,")
    paths = write(BEFORE, renamed)
    np.savez(tmp_path / "in.npz", p=np.zeros((2, 2)))
    assert main(["equivalent", *paths]) == 1
    assert main(["equivalent", *paths, "--input", str(tmp_path / "in.npz")]) == 0


def test_what_the_second_module_cannot_do_is_a_difference(write: Write, capsys: Capture) -> None:
    ends = ENDLESS.replace("constant(true)", "constant(false)")
    endless, paths = ["--max-steps", "1K"], write(ends, ENDLESS)
    assert main(["equivalent", *paths, *endless]) == 1
    assert "it cannot be run: %" in capsys.readouterr().out
    assert main(["equivalent", *reversed(paths), *endless]) == 2
    assert "error[HLO503]" in capsys.readouterr().err


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_that_cannot_be_read_is_an_error(write: Write, capsys: Capture, number: int) -> None:
    paths = write(BEFORE, BEFORE)
    paths[number] += "x"
    assert main(["equivalent", *paths]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_unknown_custom_calls_are_made_up_the_same(write: Write, capsys: Capture) -> None:
    call = 'custom-call(p), custom_call_target="who"'
    left = BEFORE.replace("negate(p)", call)
    assert main(["equivalent", *write(left, left.replace("(n, n)", "(n,n)"))]) == 0
    assert main(["equivalent", *write(left, left.replace("who", "what"))]) == 1


def test_smaller_dimensions_show_the_same_difference(write: Write, capsys: Capture) -> None:
    large = (BEFORE.replace("2,2", "9000,9000"), DIFFERENT.replace("2,2", "9000,9000"))
    memory = ["--max-memory", "10MB"]
    assert main(["equivalent", *write(*large), *memory]) == 2
    assert "--shrink" in capsys.readouterr().err
    assert main(["equivalent", *write(*large), *memory, "--shrink"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("different: output{0}[")
    assert "shrunk: 9,000 → " in err


def test_modules_run_on_the_devices_of_the_one_with_most(write: Write, capsys: Capture) -> None:
    header = "sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT s = s32[] add(a, b) }"
    reduces = "ROOT r = s32[2] all-reduce(p), replica_groups={{0,1,2}}, to_apply=sum"
    alone = f"HloModule m\n{header}\nENTRY e {{ ROOT p = s32[2] parameter(0) }}\n"
    together = alone.replace("ROOT p = s32[2] parameter(0)", f"p = s32[2] parameter(0) {reduces}")
    for texts in ((alone, together), (together, alone)):
        paths = write(*texts)
        assert main(["equivalent", *paths, "--format", "json"]) == 1
        assert json.loads(capsys.readouterr().out)["devices"] == 3
        assert main(["equivalent", *paths, "--fill", "zeros"]) == 0
        assert "3 devices" in capsys.readouterr().out
