"""fft, cholesky and triangular-solve."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.values import Array

_NAN = float("nan")


def _random(*sizes: int) -> Array:
    return np.random.default_rng(3).normal(size=sizes)


def _transform(type: str, sizes: str, result: str, kind: str, length: str) -> str:
    return (
        f"HloModule m\nENTRY e {{ p = {type}[{sizes}] parameter(0)\n"
        f" ROOT r = {result} fft(p), fft_type={kind}, fft_length={{{length}}} }}"
    )


def test_transforms() -> None:
    real = _random(2, 4, 6).astype(np.float32)
    complex_ = (real + 1j * real[::-1]).astype(np.complex64)
    cases = [
        (complex_, "c64", "c64[2,4,6]", "FFT", "6", np.fft.fft(complex_)),
        (complex_, "c64", "c64[2,4,6]", "IFFT", "4,6", np.fft.ifft2(complex_)),
        (complex_, "c64", "c64[2,4,6]", "FFT", "2,4,6", np.fft.fftn(complex_)),
        (real, "f32", "c64[2,4,4]", "RFFT", "4,6", np.fft.rfft2(real)),
        (complex_, "c64", "f32[2,4,10]", "IRFFT", "10", np.fft.irfft(complex_, 10)),
        (complex_, "c64", "f32[2,4,11]", "IRFFT", "4,11", np.fft.irfft2(complex_, (4, 11))),
    ]
    for operand, type, result, kind, length, expected in cases:
        found = run(_transform(type, "2,4,6", result, kind, length), operand)
        assert found.dtype == (np.float32 if result.startswith("f32") else np.complex64)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("type", "sizes", "result", "kind", "length"),
    [
        ("c64", "4,1", "f32[4,0]", "IRFFT", "0"),
        ("c64", "4,0", "f32[4,0]", "IRFFT", "0"),
        ("f32", "4,0", "c64[4,0]", "RFFT", "0"),
        ("c64", "0,4", "c64[0,4]", "FFT", "4"),
        ("c64", "0,4", "c64[0,4]", "IFFT", "0,4"),
    ],
)
def test_transforms_of_no_elements(
    type: str, sizes: str, result: str, kind: str, length: str
) -> None:
    operand = np.ones([int(size) for size in sizes.split(",")], np.float32)
    operand = operand.astype(np.complex64 if type == "c64" else np.float32)
    found = run(_transform(type, sizes, result, kind, length), operand)
    assert f"[{','.join(map(str, found.shape))}]" == result[3:]


def test_inverse_of_real_transform_ignores_imaginary_ends() -> None:
    operand = np.array([1 + 5j, 2 + 1j, 3 + 7j], np.complex64)
    found = run(_transform("c64", "3", "f32[4]", "IRFFT", "4"), operand)
    np.testing.assert_allclose(found, [2, -1, 0, 0], atol=1e-6)  # as XLA:CPU has it


def _cholesky(shape: str, lower: str) -> str:
    return (
        f"HloModule m\nENTRY e {{ p = {shape} parameter(0)\n"
        f" ROOT r = {shape} cholesky(p), lower={lower} }}"
    )


def test_cholesky_reads_one_triangle() -> None:
    a = np.array([[4, 99, 99], [2, 5, 99], [1, 3, 9]], np.float32)
    factor = np.array([[2, 0, 0], [1, 2, 0], [0.5, 1.25, 7.1875**0.5]], np.float32)
    np.testing.assert_allclose(run(_cholesky("f32[3,3]", "true"), a), factor, rtol=1e-6)
    np.testing.assert_allclose(run(_cholesky("f32[3,3]", "false"), a.T), factor.T, rtol=1e-6)


def test_cholesky_of_complex_matrices() -> None:
    m = _random(3, 4, 4) + 1j * _random(3, 4, 4)[::-1]
    a = m @ m.conj().swapaxes(-1, -2)
    lower = run(_cholesky("c128[3,4,4]", "true"), a)
    np.testing.assert_allclose(lower, np.linalg.cholesky(a))
    upper = run(_cholesky("c128[3,4,4]", "false"), a)
    np.testing.assert_allclose(upper.conj().swapaxes(-1, -2) @ upper, a)


def test_cholesky_fails_per_matrix() -> None:
    a = np.array([[[1, 0], [0, -1]], [[4, 0], [0, 1]]], np.float32)
    found = run(_cholesky("f32[2,2,2]", "true"), a)
    assert np.isnan(found[0]).all()  # as XLA:CPU has it
    assert found[1].tolist() == [[2, 0], [0, 1]]


def _solve(a: str, b: str, attributes: str) -> str:
    return (
        f"HloModule m\nENTRY e {{ a = {a} parameter(0)\n b = {b} parameter(1)\n"
        f" ROOT x = {b} triangular-solve(a, b), {attributes} }}"
    )


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("kind", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve(left: bool, lower: bool, unit: bool, kind: str) -> None:
    size = 5
    a = _random(2, size, size) + 1j * _random(2, size, size)[::-1] + 4 * np.eye(size)
    b = _random(2, size, 3) if left else _random(2, 3, size)
    b = b.astype(np.complex128)
    used = np.tril(a) if lower else np.triu(a)
    if unit:
        used[:, range(size), range(size)] = 1
    if kind != "NO_TRANSPOSE":
        used = used.swapaxes(-1, -2)
    if kind == "ADJOINT":
        used = used.conj()
    attributes = (
        f"left_side={str(left).lower()}, lower={str(lower).lower()}, "
        f"unit_diagonal={str(unit).lower()}, transpose_a={kind}"
    )
    shape = "c128[2,5,3]" if left else "c128[2,3,5]"
    x = run(_solve("c128[2,5,5]", shape, attributes), a, b)
    np.testing.assert_allclose(used @ x if left else x @ used, b, atol=1e-9)


def test_triangular_solve_by_blocks() -> None:
    a = np.tril(_random(300, 300)) / 300 + np.eye(300)
    b = _random(300, 2)
    for lower, matrix in [("true", a), ("false", a.T)]:
        attributes = f"left_side=true, lower={lower}, transpose_a=NO_TRANSPOSE"
        x = run(_solve("f64[300,300]", "f64[300,2]", attributes), matrix, b)
        np.testing.assert_allclose(matrix @ x, b, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [  # as XLA:CPU has it
        ("NO_TRANSPOSE", [[1, 2], [_NAN, _NAN], [_NAN, _NAN]]),
        ("TRANSPOSE", [[_NAN, _NAN]] * 3),
    ],
)
def test_singular_matrices(kind: str, expected: list[list[float]]) -> None:
    a = np.array([[1, 9, 9], [2, 0, 9], [3, 4, 5]], np.float32)
    b = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    text = _solve("f32[3,3]", "f32[3,2]", f"left_side=true, lower=true, transpose_a={kind}")
    np.testing.assert_array_equal(run(text, a, b), expected)
