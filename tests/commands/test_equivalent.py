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
twice { x = s32[] parameter(0) ROOT s = s32[] add(x, x) }
ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=always, body=twice }
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
    assert capsys.readouterr() == (
        "equal: 2 outputs, 1 device, 2 seeds, bit for bit\n"
        "also on inputs with NaN, infinities, zeros, integer extremes\n",
        "",
    )


def test_the_first_difference_is_named_in_one_line(write: Write, capsys: Capture) -> None:
    paths = write(BEFORE, DIFFERENT)
    assert main(["equivalent", *paths, "--fill", "iota", "--devices", "1x2"]) == 1
    assert capsys.readouterr() == (
        "different: output{0}[0,1] was -2.0, it is 0.0; 3 of 4 elements differ on device 0 "
        "(seed 0)\n"
        "output  type      unequal  absolute  at     relative     ulps  rounding\n"
        "───────────────────────────────────────────────────────────────────────\n"
        "{0}     f32[2,2]    75.0%         6  [1,1]         1  1.1e+09         0\n",
        "",
    )


def test_json_of_a_difference(write: Write, capsys: Capture) -> None:
    paths = write(BEFORE, DIFFERENT)
    assert main(["equivalent", *paths, "--fill", "iota", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found.pop("difference") == {
        "reason": "output{0}[0,1] was -2.0, it is 0.0; 3 of 4 elements differ (seed 0)",
        "seed": 0,
        "special_values": None,
        "device": 0,
        "output": [0],
        "index": [0, 1],
        "before": "-2.0",
        "after": "0.0",
        "different_elements": 3,
        "elements": 4,
    }
    first, second = found.pop("outputs")
    place = {"index": [1, 1], "device": 0, "seed": 0, "before": "-6.0", "after": "0.0"}
    assert first.pop("absolute") == {"value": 6.0, **place}
    assert first.pop("relative") == {"value": 1.0, **place, "index": [0, 1], "before": "-2.0"}
    assert first.pop("ulps")["value"] == np.array(6, np.float32).view(np.int32)
    assert first == {
        **{"name": "output{0}", "output": [0], "type": "f32[2,2]", "elements": 4},
        **{"unequal": 3, "not_finite": 0, "rounding": 0.0},
        **{"narrowest": None, "narrowest_ulps": None, "narrowest_ulps_allowed": None},
    }
    assert second["unequal"] == 0
    assert second["absolute"] is None
    assert found == {
        **{"before": paths[0], "after": paths[1], "equal": False, "verdict": "different"},
        **{"devices_before": 1, "devices_after": 1, "seeds": 1, "not_compared": []},
        **{"special_values": [], "on_special_values_alone": []},
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
    assert main(["equivalent", *write(left, left.replace("(n, n)", "(n, p)"))]) == 1


def test_what_stand_ins_make_other_is_not_decided(write: Write, capsys: Capture) -> None:
    """A compiler may have put a call of its own, or none at all, in place of another one."""
    left = BEFORE.replace("negate(p)", 'custom-call(p), custom_call_target="who"')
    for right in (left.replace("who", "what"), BEFORE):
        assert main(["equivalent", *write(left, right)]) == 2
        out = capsys.readouterr().out
        assert out.startswith("not decided: ")
        assert 'custom call "who" is made up, and only one of the modules has it' in out


def test_smaller_dimensions_show_the_same_difference(write: Write, capsys: Capture) -> None:
    large = (BEFORE.replace("2,2", "9000,9000"), DIFFERENT.replace("2,2", "9000,9000"))
    memory = ["--max-memory", "100MB"]
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
        assert json.loads(capsys.readouterr().out)["devices_after"] == 3
        assert main(["equivalent", *paths, "--fill", "zeros"]) == 0
        assert "3 devices" in capsys.readouterr().out


# -- tolerances, and what cannot be told ----------------------------------------------------------

SCALED = BEFORE.replace("add(n, n)", "multiply(n, c)").replace(
    "  a =", "  k = f32[] constant(FACTOR)\n  c = f32[2,2] broadcast(k), dimensions={}\n  a ="
)
LARGE = """HloModule m

ENTRY e {
  p = f32[64]{0} parameter(0)
  l = f32[] constant(3e6)
  c = f32[64]{0} broadcast(l), dimensions={}
  q = f32[64]{0} multiply(p, p)
  b = f32[64]{0} add(q, c)
  ROOT d = f32[64]{0} subtract(b, c)
}
"""
PLAIN = LARGE.replace("ROOT d = f32[64]{0} subtract(b, c)", "ROOT d = f32[64]{0} copy(q)")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--rtol", "0.01"], 0),
        (["--rtol", "1e-4"], 1),
        (["--atol", "0.05"], 0),
        (["--atol", "0"], 1),
        (["--rtol", "-1"], 2),
    ],
)
def test_tolerances(write: Write, options: list[str], code: int) -> None:
    left, right = (SCALED.replace("FACTOR", n) for n in ("2", "2.001"))
    assert main(["equivalent", *write(left, right), *options]) == code


def test_the_largest_errors_stand_in_a_table(write: Write, capsys: Capture) -> None:
    left, right = (SCALED.replace("FACTOR", n) for n in ("2", "2.0000002"))
    assert main(["equivalent", *write(left, right), "--fill", "iota"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == ("equal: 2 outputs, 1 device, 3 seeds; 1 bit for bit")
    assert out.splitlines()[1].split() == [
        "output",
        "type",
        "unequal",
        "absolute",
        "at",
        "relative",
        "ulps",
    ]
    assert out.splitlines()[3].split() == [
        "{0}",
        "f32[2,2]",
        "75.0%",
        "9.5e-07",
        "[1,1]",
        "1.6e-07",
        "2",
    ]
    assert max(map(len, out.splitlines())) <= 80


def test_what_rounding_may_explain_is_not_decided(write: Write, capsys: Capture) -> None:
    paths = write(LARGE, PLAIN)
    assert main(["equivalent", *paths]) == 2
    out = capsys.readouterr().out
    assert out.startswith("not decided: output[")
    assert f"First amplified at %d ({paths[0]}:9)" in out
    assert main(["equivalent", *paths, "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "not-decided"
    assert found["equal"] is False
    assert found["outputs"][0]["rounding"] > 0.1
    assert main(["equivalent", *paths, "--atol", "1"]) == 0


def test_with_inputs_given_they_run_once_unless_asked(
    write: Write, tmp_path: Path, capsys: Capture
) -> None:
    paths = write(BEFORE, EQUAL)
    np.savez(tmp_path / "in.npz", p=np.zeros((2, 2)))
    given = ["--input", str(tmp_path / "in.npz")]
    for options, seeds in ((given, 1), ([*given, "--seeds", "2"], 2), ([], 3)):
        assert main(["equivalent", *paths, *options, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["seeds"] == seeds
    np.savez(tmp_path / "in.npz", p=np.zeros((2, 2)), i=np.zeros(3, np.int32))
    assert main(["equivalent", *paths, *given, "--seeds", "5", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == 1, "it would run on the same inputs"


def test_other_signatures_are_found_before_anything_shrinks_or_runs(
    write: Write, capsys: Capture
) -> None:
    large = BEFORE.replace("2,2", "90000,90000")
    paths = write(large, large.replace("s32[3]", "s32[4]"))
    for options in ([], ["--shrink"]):
        assert main(["equivalent", *paths, *options]) == 1
        out, err = capsys.readouterr()
        assert out == (
            f"different: parameter 1 was s32[3] ({paths[0]}:5), it is s32[4] ({paths[1]}:5)\n"
        )
        assert err == ""


# -- programs for all devices, and partitioned ones -----------------------------------------------

WHOLE = """HloModule m, num_partitions=4

ENTRY e {
  p = f32[8,6]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  q = f32[6]{0} parameter(1), sharding={replicated}
  b = f32[8,6]{1,0} broadcast(q), dimensions={1}, sharding={devices=[4,1]<=[4]}
  ROOT r = f32[8,6]{1,0} multiply(p, b), sharding={devices=[4,1]<=[4]}
}
"""
PART = """HloModule m, num_partitions=4

ENTRY e {
  p = f32[2,6]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  q = f32[6]{0} parameter(1), sharding={replicated}
  b = f32[2,6]{1,0} broadcast(q), dimensions={1}
  i = u32[] partition-id()
  ROOT r = f32[2,6]{1,0} multiply(p, b)
}
"""


def test_a_program_is_compared_with_its_parts(write: Write, capsys: Capture) -> None:
    for texts, said in (((WHOLE, PART), "1 and 4 devices"), ((PART, WHOLE), "4 and 1 devices")):
        assert main(["equivalent", *write(*texts)]) == 0
        assert capsys.readouterr().out == (
            f"equal: 1 output, {said}, 3 seeds, bit for bit\n"
            "also on inputs with NaN, infinities, zeros\n"
        )
    assert main(["equivalent", *write(WHOLE, PART.replace("multiply", "add"))]) == 1
    assert "output[" in capsys.readouterr().out


def test_a_program_and_its_parts_do_not_shrink_together(write: Write, capsys: Capture) -> None:
    assert main(["equivalent", *write(WHOLE, PART), "--shrink"]) == 2
    assert "do not shrink together" in capsys.readouterr().err


def test_a_cut_that_no_text_tells_is_asked_for(write: Write, capsys: Capture) -> None:
    silent = [text.replace(", sharding={devices=[4,1]<=[4]}", "") for text in (WHOLE, PART)]
    silent[0] = silent[0].replace("dimensions={1}", "dimensions={1}, sharding={replicated}")
    paths = write(*silent)
    assert main(["equivalent", *paths]) == 2
    err = capsys.readouterr().err
    assert f"parameter 0 is f32[8,6] ({paths[0]}:4) over all devices, f32[2,6]" in err
    assert "have the sharding={…} of parameters" in err
