"""`hloopt run`: inputs made up and given, and devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands.run.modules import STEP, Capture, Write, refused, run_json


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
        ("toknes", np.zeros(3), "'toknes' is not a parameter", "did you mean 'tokens'?"),
        ("7", np.zeros(3), "'7' is not a parameter", "it has p, tokens, state"),
        ("", np.zeros(3), "'' is not a parameter", "it has p, tokens, state"),
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
