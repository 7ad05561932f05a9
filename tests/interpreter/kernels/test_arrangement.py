"""Elements moved to other places."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.errors import RunError

F = np.float32
MATRIX = np.arange(6, dtype=F).reshape(2, 3)
CUBE = np.arange(24, dtype=F).reshape(2, 3, 4)


def entry(root: str, *parameters: str) -> str:
    lines = [f"  {chr(97 + i)} = {shape} parameter({i})\n" for i, shape in enumerate(parameters)]
    return f"HloModule m\nENTRY e {{\n{''.join(lines)}  ROOT r = {root}\n}}\n"


CASES: dict[str, Any] = {
    "broadcast a scalar": (
        entry("f32[2,3] broadcast(a), dimensions={}", "f32[]"),
        [np.array(7, F)],
        np.full((2, 3), 7, F),
    ),
    "broadcast behind": (
        entry("f32[2,3] broadcast(a), dimensions={1}", "f32[3]"),
        [np.array([1, 2, 3], F)],
        np.array([[1, 2, 3], [1, 2, 3]], F),
    ),
    "broadcast in front": (
        entry("f32[2,3] broadcast(a), dimensions={0}", "f32[2]"),
        [np.array([1, 2], F)],
        np.array([[1, 1, 1], [2, 2, 2]], F),
    ),
    "broadcast that transposes": (
        entry("f32[3,5,2] broadcast(a), dimensions={2,0}", "f32[2,3]"),
        [MATRIX],
        np.repeat(MATRIX.T[:, None, :], 5, 1),
    ),
    "reshape": (entry("f32[3,1,2] reshape(a)", "f32[2,3]"), [MATRIX], MATRIX.reshape(3, 1, 2)),
    "reshape ignores layouts": (
        entry("f32[6]{0} reshape(a)", "f32[2,3]{0,1}"),
        [MATRIX],
        MATRIX.reshape(6),
    ),
    "transpose": (
        entry("f32[4,2,3] transpose(a), dimensions={2,0,1}", "f32[2,3,4]"),
        [CUBE],
        np.transpose(CUBE, (2, 0, 1)),
    ),
    "slice": (
        entry("f32[1,2,2] slice(a), slice={[1:2], [0:3:2], [1:4:2]}", "f32[2,3,4]"),
        [CUBE],
        CUBE[1:2, 0:3:2, 1:4:2],
    ),
    "an empty slice": (
        entry("f32[0] slice(a), slice={[2:2]}", "f32[4]"),
        [np.zeros(4, F)],
        np.zeros(0, F),
    ),
    "reverse": (
        entry("f32[2,3,4] reverse(a), dimensions={2,0}", "f32[2,3,4]"),
        [CUBE],
        CUBE[::-1, :, ::-1],
    ),
    "concatenate": (
        entry("f32[2,4] concatenate(a, b), dimensions={1}", "f32[2,3]", "f32[2,1]"),
        [MATRIX, np.array([[8], [9]], F)],
        np.array([[0, 1, 2, 8], [3, 4, 5, 9]], F),
    ),
    "iota": (
        entry("s32[2,3,2] iota(), iota_dimension=1"),
        [],
        np.array([[[0, 0], [1, 1], [2, 2]]] * 2, np.int32),
    ),
    "iota wraps in narrow integers": (
        entry("u8[300] iota(), iota_dimension=0"),
        [],
        (np.arange(300) % 256).astype(np.uint8),
    ),
    "iota of floats": (
        entry("bf16[300] iota(), iota_dimension=0"),
        [],
        np.arange(300).astype(F).astype(ml_dtypes.bfloat16),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_arrangement(case: str) -> None:
    text, arguments, expected = CASES[case]
    found = run(text, *arguments)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


# operand, padding, result; the padding value is 9
PADS = [
    ([1, 2, 3], "1_2", [9, 1, 2, 3, 9, 9]),
    ([1, 2, 3], "0_0_1", [1, 9, 2, 9, 3]),
    ([1, 2, 3], "1_1_2", [9, 1, 9, 9, 2, 9, 9, 3, 9]),
    ([1, 2, 3], "-1_0", [2, 3]),
    ([1, 2, 3], "0_-2", [1]),
    ([1, 2, 3], "-1_-1", [2]),
    ([1, 2, 3], "-2_3", [3, 9, 9, 9]),
    ([1, 2, 3], "-4_3", [9, 9]),
    ([1, 2, 3], "3_-4", [9, 9]),
    ([1, 2, 3], "-1_0_1", [9, 2, 9, 3]),
    ([1, 2, 3], "-2_-1_1", [2, 9]),
    ([1, 2, 3], "-3_0_1", [9, 3]),
    ([1, 2, 3], "0_-1_1", [1, 9, 2, 9]),
    ([1, 2, 3], "2_-5_1", [9, 9]),
    ([], "1_1_3", [9, 9]),
    ([1], "1_1_3", [9, 1, 9]),
]


@pytest.mark.parametrize(("operand", "padding", "expected"), PADS)
def test_pad(operand: list[float], padding: str, expected: list[float]) -> None:
    root = f"f32[{len(expected)}] pad(a, b), padding={padding}"
    text = entry(root, f"f32[{len(operand)}]", "f32[]")
    assert run(text, np.array(operand, F), np.array(9, F)).tolist() == expected


def test_pad_of_several_dimensions() -> None:
    text = entry("f32[3,5] pad(a, b), padding=1_0x0_2", "f32[2,3]", "f32[]")
    found = run(text, MATRIX, np.array(-1, F))
    np.testing.assert_array_equal(found, np.pad(MATRIX, ((1, 0), (0, 2)), constant_values=-1))


# element i of an array lies at the i-th place of memory by its layout
BITCASTS = [
    ("f32[2,3]{0,1}", "f32[6]{0}", MATRIX, MATRIX.T.reshape(6)),
    ("f32[2,3]{0,1}", "f32[3,2]{1,0}", MATRIX, MATRIX.T),
    ("f32[2,3]{1,0}", "f32[3,2]{0,1}", MATRIX, MATRIX.T),
    ("f32[2,3]", "f32[3,2]", MATRIX, MATRIX.reshape(3, 2)),
    ("f32[2,3]{0,1}", "s32[3,2]{0,1}", MATRIX, MATRIX.T.reshape(2, 3).T.view(np.int32)),
    ("f32[2,3,4]{0,2,1}", "f32[3,4,2]{2,1,0}", CUBE, CUBE.transpose(1, 2, 0)),
    ("f32[2]", "u8[2,4]", np.array([1, -2], F), np.array([[0, 0, 128, 63], [0, 0, 0, 192]], "u1")),
    ("u8[2,4]", "f32[2]", np.array([[0, 0, 128, 63], [0, 0, 0, 192]], "u1"), np.array([1, -2], F)),
    ("f32[]", "f32[1,1]", np.array(3, F), np.array([[3]], F)),
]


@pytest.mark.parametrize(("source", "target", "operand", "expected"), BITCASTS)
def test_bitcast(source: str, target: str, operand: object, expected: np.ndarray) -> None:
    found = run(entry(f"{target} bitcast(a)", source), operand)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_bitcast_of_a_tuple() -> None:
    text = """HloModule m
    ENTRY e { a = f32[2] parameter(0)  t = (f32[2], f32[2]) tuple(a, a)
      ROOT b = (f32[2], f32[2]) bitcast(t) }"""
    first, second = run(text, np.array([1, 2], np.float32))
    assert first.tolist() == second.tolist() == [1, 2]


def test_bitcast_of_packed_integers() -> None:
    """Two elements of four bits share a byte, the first one in its lower half."""
    text = entry("s8[2] bitcast(a)", "s4[4]")
    assert run(text, np.array([1, 2, -1, 0], ml_dtypes.int4)).tolist() == [0x21, 0x0F]


def test_map() -> None:
    text = """HloModule m
    f { x = f32[] parameter(0) y = f32[] parameter(1) d = f32[] subtract(x, y)
        ROOT r = f32[] multiply(d, x) }
    ENTRY e { a = f32[2,3] parameter(0) b = f32[2,3] parameter(1)
        ROOT r = f32[2,3] map(a, b), dimensions={0,1}, to_apply=f }
    """
    np.testing.assert_array_equal(run(text, MATRIX, MATRIX * 3), -2 * MATRIX * MATRIX)


def test_data_from_outside() -> None:
    """An outfeed gives a token; an infeed has no data to give."""
    text = "HloModule m\nENTRY e { a = f32[2] parameter(0) t = token[] after-all() ROOT %s }"
    assert run(text % 'r = token[] outfeed(a, t), outfeed_config=""', np.zeros(2, F)) is None
    with pytest.raises(RunError, match="no host") as error:
        run(text % "r = (f32[2], token[]) infeed(t)", np.zeros(2, F))
    assert error.value.code == "HLO501"


def test_an_iota_of_no_elements_takes_no_memory_however_long_its_dimension_is() -> None:
    text = "HloModule m\nENTRY e { ROOT i = s64[1099511627776,0] iota(), iota_dimension=0 }"
    assert run(text).shape == (1 << 40, 0)
