"""Arrays that users give in files, and results written to them."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hloopt.diagnostics import HloError
from hloopt.interpreter.array_files import npz_bytes, read_arrays
from hloopt.interpreter.inputs import GivenKey, Inputs
from hloopt.interpreter.machine import devices_of
from hloopt.interpreter.values import Array, Value
from hloopt.ir.computation import Computation
from hloopt.text import parse_module

TEXT = """HloModule m
ENTRY e {
  x = bf16[2] parameter(0)
  pair = (s8[2], pred[]) parameter(1)
  ROOT r = (bf16[2], (s8[2], pred[])) tuple(x, pair)
}
"""


def _entry() -> Computation:
    return parse_module(TEXT).entry


def _arguments(given: dict[str, Array], tmp_path: Path, device: int = 0) -> list[Value]:
    path = str(tmp_path / "given.npz")
    np.savez(path, allow_pickle=False, **given)
    entry = _entry()
    inputs = Inputs("zeros", read_arrays([path], entry, device_count=2))
    return inputs.arguments(entry, devices_of(2, 1)[device], seed=0)


def test_keys_name_parameter_leaf_and_device(tmp_path: Path) -> None:
    given = {
        "x": np.array([1, 2], ml_dtypes.bfloat16),  # which NumPy keeps as raw bytes
        "1": np.array([3, 4], np.int64),
        "pair:1@1": np.array(True),
    }
    for device in (0, 1):
        x, (numbers, flag) = _arguments(given, tmp_path, device)
        assert x.dtype == ml_dtypes.bfloat16
        assert x.tolist() == [1, 2]
        assert numbers.dtype == np.int8
        assert numbers.tolist() == [3, 4]
        assert bool(flag) == (device == 1)


def test_a_file_of_one_array_needs_a_key(tmp_path: Path) -> None:
    path = str(tmp_path / "one.npy")
    np.save(path, np.zeros(2, np.float32))
    assert list(read_arrays([f"x@1={path}"], _entry(), 2)) == [GivenKey(0, 0, 1)]
    with pytest.raises(HloError, match="which parameter is it for") as caught:
        read_arrays([path], _entry(), 2)
    assert "KEY=FILE.npy" in str(caught.value.help)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("y", "'y' is not a parameter"),
        ("2", "'2' is not a parameter"),
        ("pair:2", "'pair:2': %pair has 2 arrays"),
        ("0:1", "'0:1': %x has 1 array,"),
        ("x@2", "'x@2': the program runs on 2 devices"),
        ("x@a", r"'x@a' is no PARAMETER\[:LEAF\]\[@DEVICE\]"),
        ("x:-1", "'x:-1' is no PARAMETER"),
    ],
)
def test_a_key_that_fits_nothing_is_an_error(key: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(HloError, match=message):
        _arguments({key: np.zeros(2)}, tmp_path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"the given array is f64\[3\], the parameter bf16\[2\]"),
        (np.zeros(2, np.complex64), r"the given array is c64\[2\]"),
        (np.zeros(2, "V4"), r"the given array is \|V4\[2\]"),
        (np.array(["a", "b"]), r"the given array is <U1\[2\]"),
    ],
)
def test_an_array_that_does_not_fit_is_an_error(array: Array, message: str, tmp_path: Path) -> None:
    with pytest.raises(HloError, match=message):
        _arguments({"x": array}, tmp_path)


def test_a_file_that_holds_something_else(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_text("no array", encoding="utf-8")
    with pytest.raises(HloError, match=r"no \.npy or \.npz file"):
        read_arrays([f"x={path}"], _entry(), 2)
    with pytest.raises(HloError, match="cannot read"):
        read_arrays([f"x={tmp_path / 'absent.npy'}"], _entry(), 2)


def test_results_come_back_as_inputs(tmp_path: Path) -> None:
    value = (np.array([1, 2], ml_dtypes.bfloat16), (np.array([3, 4], np.int8), None))
    path = tmp_path / "out.npz"
    path.write_bytes(npz_bytes([value, value], devices_of(2, 1)))
    with np.load(path) as found:
        assert sorted(found) == ["0@0", "0@1", "1@0", "1@1"]
        assert found["0@1"].view(ml_dtypes.bfloat16).tolist() == [1, 2]
    path.write_bytes(npz_bytes([value], devices_of(1, 1)))
    with np.load(path) as found:
        assert sorted(found) == ["0", "1"]
