"""`hloopt run`: tables, JSON, traces, files of arrays, and what it says when it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hloopt.amounts import parse_size
from hloopt.cli import main
from hloopt.commands.run import command
from hloopt.equivalence.settings import MOST_MEMORY, MOST_STEPS

STEP = """HloModule step, num_partitions=2

ENTRY e {
  p = f32[2,2]{1,0} parameter(0)
  tokens = s32[3]{0} parameter(1)
  state = (bf16[2]{0}, f8e4m3fn[2]{0}) parameter(2)
  n = f32[2,2]{1,0} negate(p)
  d = u32[] partition-id()
  ROOT r = (f32[2,2]{1,0}, s32[3]{0}, (bf16[2]{0}, f8e4m3fn[2]{0}), u32[])
    tuple(n, tokens, state, d)
}
"""
ODD = """HloModule odd

ENTRY e {
  empty = f32[0,3]{1,0} parameter(0)
  complex = c64[2]{0} parameter(1)
  t = token[] parameter(2)
  nested = ((s4[3]{0}, pred[2]{0}), token[], (f32[<=4]{0})) parameter(3)
  special = f32[4]{0} constant({nan, inf, -inf, 1})
  ROOT r = (f32[0,3]{1,0}, c64[2]{0}, token[], ((s4[3]{0}, pred[2]{0}), token[], (f32[<=4]{0})), f32[4]{0})
    tuple(empty, complex, t, nested, special)
}
"""  # noqa: E501  # a shape is on one line
LOOP = """HloModule loop

always {
  x = s32[] parameter(0)
  ROOT t = pred[] constant(true)
}

next {
  x = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT y = s32[] add(x, one)
}

ENTRY e {
  p = s32[] parameter(0)
  ROOT w = s32[] while(p), condition=always, body=next
}
"""


def entry(*lines: str) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule m\n\nENTRY e {{\n{body}}}\n"


UNKNOWN = entry(
    "p = f32[2]{0} parameter(0)",
    'ROOT c = f32[2]{0} custom-call(p), custom_call_target="who"',
)
LEFT_OUT = entry("ROOT c = f32[2]{0} constant({...})")


MANY = """HloModule many

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = f32[] parameter(0)
  ROOT r = f32[] all-reduce(p), channel_id=1, to_apply=sum, use_global_device_ids=true,
    replica_groups=[1,4611686018427387904]<=[4611686018427387904]
}
"""


Capture = pytest.CaptureFixture[str]
Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a module into a file; its path."""

    def write(text: str) -> str:
        path = tmp_path / "step.hlo"
        path.write_text(text)
        return str(path)

    return write


def run_json(path: str, capsys: Capture, *options: str) -> dict[str, Any]:
    assert main(["run", path, "--format", "json", *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found: dict[str, Any] = json.loads(out)
    return found


def refused(capsys: Capture, *arguments: str) -> str:
    """What a command line says that ends in exit code 2."""
    assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


# -- tables -----------------------------------------------------------------------------------


def test_equal_outputs_of_devices_share_a_row(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--fill", "zeros"]) == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()[2:-1]]
    assert [row[:3] for row in rows] == [
        ["0", "all", "f32[2,2]"],
        ["1", "all", "s32[3]"],
        ["2", "all", "bf16[2]"],
        ["3", "all", "f8e4m3fn[2]"],
        ["4", "0", "u32[]"],
        ["4", "1", "u32[]"],
    ]
    assert "2 devices, seed 0" in out
    assert err == ""


def test_devices_of_a_row_are_ranges(write: Write, capsys: Capture) -> None:
    text = entry(
        "table = s32[6]{0} constant({7, 7, 7, 8, 7, 8})",
        "d = u32[] partition-id()",
        "ROOT r = s32[1]{0} dynamic-slice(table, d), dynamic_slice_sizes={1}",
    )
    assert main(["run", write(text), "--devices", "1x6"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:-1]
    assert [" ".join(row.split()).partition(" s32")[0] for row in rows] == ["0 0-2, 4", "0 3, 5"]


def test_types_without_order_or_elements_have_no_numbers(write: Write, capsys: Capture) -> None:
    assert main(["run", write(ODD)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [row[1] for row in rows] == [
        "f32[0,3]",
        "c64[2]",
        "s4[3]",
        "pred[2]",
        "f32[4]",
        "f32[4]",
    ]
    assert rows[0][2:] == ["0"]
    assert rows[5][2:] == ["-inf", "inf", "nan", "1", "nan", "inf", "-inf", "1"]


def test_a_module_without_outputs(write: Write, capsys: Capture) -> None:
    assert main(["run", write(entry("ROOT t = token[] after-all()"))]) == 0
    assert capsys.readouterr().out.startswith("no outputs\n")


def test_tables_fit_80_columns_and_nothing_is_cut_off(write: Write, capsys: Capture) -> None:
    shape = "f32[4,128,16,10,10]"
    text = entry(
        "i = u32[] partition-id()",
        "two = u32[] constant(2)",
        "m = u32[] remainder(i, two)",
        "f = f32[] convert(m)",
        "c = f32[] constant(-1.23456e25)",
        "s = f32[] multiply(f, c)",
        f"ROOT r = {shape} broadcast(s), dimensions={{}}",
    ).replace("HloModule m", "HloModule m, num_partitions=16")
    assert main(["run", write(text), "--trace"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:-1])) <= 80  # the last has the path
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("output")) :]
    odd = next(number for number, line in enumerate(table) if "1, 3, 5, … (8)" in line)
    start, end = table[0].index("type"), table[0].index("type") + len(shape)
    assert "".join(line[start:end].split(" ")[0] for line in table[odd : odd + 2]) == shape
    assert table[odd].split()[-4:] == ["-1.235e+25", "-1.235e+25", "-1.235e+25", "0"]


def test_top_says_how_many_rows_are_left(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--top", "2"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 2 + 2 + 2
    assert "--top shows them" in out
    assert "--top" in refused(capsys, write(STEP), "--top", "0")


# -- inputs and devices -------------------------------------------------------------------------


def test_a_seed_gives_the_same_again(write: Write, capsys: Capture) -> None:
    path = write(STEP)
    first, again, other = (run_json(path, capsys, "--seed", seed) for seed in "001")
    assert first == again != other


def test_devices_are_replicas_times_partitions(write: Write, capsys: Capture) -> None:
    found = run_json(write(STEP), capsys, "--devices", "2x3")["devices"]
    places = [(d["device"], d["replica"], d["partition"]) for d in found]
    assert places == [(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 1, 0), (4, 1, 1), (5, 1, 2)]
    assert [d["outputs"][-1]["values"] for d in found] == [0, 1, 2, 0, 1, 2]


def test_fill_iota(write: Write, capsys: Capture) -> None:
    outputs = run_json(write(STEP), capsys, "--fill", "iota")["devices"][0]["outputs"]
    assert outputs[0] == {
        "type": "f32",
        "shape": [2, 2],
        "statistics": {"minimum": -3.0, "maximum": 0.0, "mean": -1.5, "nans": 0},
        "values": [[0.0, -1.0], [-2.0, -3.0]],
    }


def test_outputs_are_inputs_of_the_next_step(write: Write, tmp_path: Path, capsys: Capture) -> None:
    """Types that NumPy does not know, tuples and devices included."""
    path, file = write(STEP.replace("negate(p)", "copy(p)")), tmp_path / "out.npz"
    first = run_json(path, capsys, "-o", str(file))
    with np.load(file) as arrays:
        assert list(arrays) == [f"{leaf}@{device}" for device in (0, 1) for leaf in range(5)]
        keys = {"0": "p", "1": "tokens", "2": "state:0", "3": "2:1"}
        given = {f"{keys[leaf]}@{d}": arrays[f"{leaf}@{d}"] for leaf in keys for d in (0, 1)}
    np.savez(tmp_path / "in.npz", **given)
    again = run_json(path, capsys, "--seed", "1", "--input", str(tmp_path / "in.npz"))
    assert again["devices"] == first["devices"]


def test_an_array_for_one_device(write: Write, tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "all.npy", np.array([4, 5, 6]))  # s64, which fits
    np.save(tmp_path / "one.npy", np.array([7, 8, 9], np.int32))
    files = [
        f"--input={key}={tmp_path / name}.npy" for key, name in (("tokens", "all"), ("1@1", "one"))
    ]
    devices = run_json(write(STEP), capsys, *files)["devices"]
    assert [d["outputs"][1]["values"] for d in devices] == [[4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(
    ("key", "array", "message", "hint"),
    [
        ("toknes", np.zeros(3), "'toknes' is no parameter", "did you mean 'tokens'?"),
        ("7", np.zeros(3), "'7' is no parameter", "it has p, tokens, state"),
        ("", np.zeros(3), "'' is no parameter", "it has p, tokens, state"),
        ("state:2", np.zeros(2), "%state has 2 arrays, counted from 0", ""),
        ("p:1", np.zeros(2), "%p has 1 array, counted from 0", ""),
        ("p@2", np.zeros((2, 2)), "the program runs on 2 devices, counted from 0", ""),
        ("p@x", np.zeros((2, 2)), "'p@x' is no PARAMETER[:LEAF][@DEVICE]", ""),
        (
            "p",
            np.zeros((2, 3)),
            "the given array is f64[2,3], the parameter f32[2,2]",
            "step.hlo:4",
        ),
        ("p", np.zeros(4), "the given array is f64[4], the parameter f32[2,2]", ""),
        ("p", np.zeros((2, 2), complex), "is c128[2,2], the parameter f32[2,2]", ""),
        ("p", np.full((2, 2), "a"), "is <U1[2,2], the parameter f32[2,2]", ""),
        ("tokens", np.zeros(3), "is f64[3], the parameter s32[3]", ""),
        ("tokens", np.array([1, 2**40, 3]), "has values that s32 cannot hold", ""),
    ],
)
def test_arrays_that_fit_no_parameter(
    write: Write, tmp_path: Path, capsys: Capture, key: str, array: Any, message: str, hint: str
) -> None:
    np.savez(tmp_path / "in.npz", **{key: array})
    error = refused(capsys, write(STEP), "--input", str(tmp_path / "in.npz"))
    assert message in error
    assert hint in error


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no .npy or .npz file"),
        (b"hello", "is no .npy or .npz file"),
        (b"\x80\x04K\x01.", "is no .npy or .npz file"),
        (b"PK\x03\x04 and then nothing", "File is not a zip file"),
        (b"\x93NUMPY\x01", "cannot use"),
        (None, "No such file"),
    ],
)
def test_files_that_hold_no_arrays(
    write: Write, tmp_path: Path, capsys: Capture, data: bytes | None, message: str
) -> None:
    file = tmp_path / "in.npz"
    if data is not None:
        file.write_bytes(data)
    assert message in refused(capsys, write(STEP), "--input", str(file))


def test_python_objects_are_not_loaded(write: Write, tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "in.npz", p=np.array([object()]), allow_pickle=True)
    error = refused(capsys, write(STEP), "--input", str(tmp_path / "in.npz"))
    assert "Python objects cannot be used" in error


@pytest.mark.parametrize("option", ["{file}.npy", "tokens={file}.npz"])
def test_a_file_whose_parameter_is_not_clear(
    write: Write, tmp_path: Path, capsys: Capture, option: str
) -> None:
    np.save(tmp_path / "in.npy", np.zeros(3))
    np.savez(tmp_path / "in.npz", tokens=np.zeros(3))
    error = refused(capsys, write(STEP), "--input", option.format(file=tmp_path / "in"))
    assert "which parameter is it for?" in error


# -- values on the way --------------------------------------------------------------------------


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


# -- what cannot be run -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (UNKNOWN, "HLO501", 'custom call target "who"'),
        (LEFT_OUT, "HLO502", "values were left out"),
    ],
)
def test_stand_ins_are_only_made_up_on_demand(
    write: Write, capsys: Capture, text: str, code: str, message: str
) -> None:
    error = refused(capsys, write(text))
    assert f"error[{code}]" in error
    assert message in error
    assert "--stand-ins" in error
    assert main(["run", write(text), "--stand-ins"]) == 0


@pytest.mark.parametrize(
    ("text", "options", "code", "message"),
    [
        (LOOP, ["--max-steps", "1K"], "HLO503", "stopped after 1,000 steps"),
        (STEP, ["--max-memory", "10B"], "HLO503", "the limit is 10"),
        (entry("ROOT p = f32[4000000000,4000000000]{1,0} parameter(0)"), [], "HLO503", "inputs"),
        (
            entry("z = f32[] constant(0)", "ROOT b = f32[99999,99999] broadcast(z), dimensions={}"),
            [],
            "HLO503",
            "values would take",
        ),
        (
            entry(
                "s = u64[2]{0} parameter(0)",
                "ROOT i = (u64[2]{0}, f32[2]{0}) rng-bit-generator(s), algorithm=rng_default",
            ),
            ["--stand-ins"],
            "HLO501",
            "random bits are integers",
        ),
        (STEP, ["--devices", "99999x99999"], "HLO500", "9,999,800,001 devices"),
        (MANY, [], "HLO500", "4,611,686,018,427,387,904 devices"),
        (MANY, ["--devices", "1x4"], "HLO500", "%r: it names 4,611,686,018,427,387,904 devices"),
        ("", [], "HLO114", "the text is empty"),
        (STEP[:150], [], "HLO1", "step.hlo:"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_message(
    write: Write, capsys: Capture, text: str, options: list[str], code: str, message: str
) -> None:
    error = refused(capsys, write(text), *options)
    assert error.startswith(f"error[{code}")
    assert message in error


def test_devices_that_wait_for_ever_are_named(write: Write, capsys: Capture) -> None:
    text = """HloModule m, replica_count=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
one { x = f32[] parameter(0) ROOT r = f32[] all-reduce(x), to_apply=sum }
two { ROOT x = f32[] parameter(0) }
ENTRY e { p = f32[] parameter(0) i = u32[] replica-id()
  ROOT c = f32[] conditional(i, p, p), branch_computations={one, two} }
"""
    text = text.replace("i = u32[] replica-id()", "u = u32[] replica-id() i = s32[] convert(u)")
    error = refused(capsys, write(text))
    assert "error[HLO504]" in error
    assert "device 0 waits at %r for device 1" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--devices", "8"], "'8' is no RxP"),
        (["--devices", "0x4"], "'0x4' has no device"),
        (["--max-steps", "0"], "'0' is no amount: for example 100M"),
        (["--max-memory", "much"], "'much' is no amount: for example 8GiB"),
        (["--fill", "ones"], "'ones' is not one of 'random'"),
        (["--engine", "xla", "--trace"], "XLA shows results only"),
        (["-o", "-"], "-o needs a file"),
        (["another.hlo"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(write: Write, capsys: Capture, options: list[str], message: str) -> None:
    assert message in refused(capsys, write(STEP), *options)


def test_outputs_that_cannot_be_written(write: Write, tmp_path: Path, capsys: Capture) -> None:
    path = write(STEP)
    error = refused(capsys, path, "-o", str(tmp_path / "step.hlo" / "out.npz"))
    assert "step.hlo is a file, not a folder" in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step.hlo"]


def test_shrinking_what_is_small_says_so(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--shrink"]) == 0
    assert capsys.readouterr().err.startswith("shrunk: nothing in ")


def test_the_limits_are_those_of_the_library() -> None:
    defaults = {option.name: str(option.default) for option in command.params}
    assert parse_size(defaults["max_steps"]) == MOST_STEPS
    assert parse_size(defaults["max_memory"]) == MOST_MEMORY
