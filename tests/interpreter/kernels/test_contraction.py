"""dot, ragged-dot and scaled-dot."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.values import Array


def _dot(lhs: str, rhs: str, result: str, attributes: str) -> str:
    return (
        f"HloModule m\nENTRY e {{ p = {lhs} parameter(0)\n q = {rhs} parameter(1)\n"
        f" ROOT d = {result} dot(p, q), {attributes} }}"
    )


_MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _random(*sizes: int) -> Array:
    return np.random.default_rng(sum(sizes)).integers(-9, 9, sizes).astype(np.float32)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes", "formula"),
    [
        ((2, 3), (3, 4), "2,4", _MATRICES, "mk,kn->mn"),
        ((2, 3), (4, 3), "2,4", "lhs_contracting_dims={1}, rhs_contracting_dims={1}", "mk,nk->mn"),
        ((3,), (3,), "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}", "k,k->"),
        ((2,), (3,), "2,3", "lhs_contracting_dims={}, rhs_contracting_dims={}", "m,n->mn"),
        (
            (2, 5, 3),
            (4, 3, 5),
            "5,2,4",
            "lhs_batch_dims={1}, rhs_batch_dims={2}, lhs_contracting_dims={2}, "
            "rhs_contracting_dims={1}",
            "mbk,nkb->bmn",
        ),
        (
            (2, 3, 4, 5),
            (4, 6, 3),
            "2,5,6",
            "lhs_contracting_dims={2,1}, rhs_contracting_dims={0,2}",
            "abcd,cnb->adn",
        ),
    ],
)
def test_dot_is_an_einsum(
    lhs: tuple[int, ...], rhs: tuple[int, ...], result: str, attributes: str, formula: str
) -> None:
    p, q = _random(*lhs), _random(*rhs)
    sizes = [",".join(map(str, side)) for side in (lhs, rhs)]
    text = _dot(f"f32[{sizes[0]}]", f"f32[{sizes[1]}]", f"f32[{result}]", attributes)
    found = run(text, p, q)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.einsum(formula, p, q))


@pytest.mark.parametrize(
    ("type", "result", "lhs", "rhs", "expected"),
    [
        # as XLA:CPU has it
        ("s8", "s8", [100, 100], [3, 3], 88),
        ("s8", "f32", [100, 100], [3, 3], 600),
        ("bf16", "s32", [1.5, 1.5], [1.5, 1.75], 4),
        ("bf16", "s32", [256, 1], [1, 1.5], 258),
        ("f32", "s32", [256, 1], [1, 1.5], 257),
        ("f64", "f32", [1e60, 1], [1e-60, 1e-60], 1),
        ("s4", "s4", [7, 7], [7, 7], 2),
        ("pred", "pred", [True, True], [True, True], True),
        ("s64", "s64", [2**62, 1], [2, 3], -(2**63) + 3),
        ("c64", "c64", [1j, 2], [1j, 1], 1),
        ("f32", "bf16", [1, 2**-9], [1, 1], 1),
    ],
)
def test_types_of_dots(
    type: str, result: str, lhs: list[float], rhs: list[float], expected: complex
) -> None:
    names = {"pred": "bool", "bf16": "bfloat16", "s4": "int4", "c64": "complex64"}

    def dtype(name: str) -> np.dtype[np.generic]:
        known = names.get(name, name.replace("s", "int").replace("f", "float"))
        return np.dtype(getattr(ml_dtypes, known, known))

    text = _dot(f"{type}[1,2]", f"{type}[2,1]", f"{result}[1,1]", _MATRICES)
    found = run(text, np.array([lhs], dtype(type)), np.array(rhs, dtype(type))[:, None])
    assert found.dtype == dtype(result)
    assert found[0, 0] == expected


def test_small_floats_are_summed_in_f32() -> None:
    ones = np.ones((1, 4096), ml_dtypes.bfloat16)
    found = run(_dot("bf16[1,4096]", "bf16[4096,1]", "bf16[1,1]", _MATRICES), ones, ones.T)
    assert float(found[0, 0]) == 4096


def test_algorithms_round_operands() -> None:
    p, q = np.array([[1 + 2**-10]], np.float32), np.array([[1]], np.float32)
    for algorithm, expected in [("dot_bf16_bf16_f32", 1), ("dot_f32_f32_f32", 1 + 2**-10)]:
        attributes = f"{_MATRICES}, algorithm={algorithm}"
        assert run(_dot("f32[1,1]", "f32[1,1]", "f32[1,1]", attributes), p, q) == expected


def _ragged(lhs: str, rhs: str, groups: str, result: str, attributes: str) -> str:
    return (
        f"HloModule m\nENTRY e {{ p = f32[{lhs}] parameter(0)\n q = f32[{rhs}] parameter(1)\n"
        f" g = s32[{groups}] parameter(2)\n"
        f" ROOT d = f32[{result}] ragged-dot(p, q, g), {attributes} }}"
    )


_GROUPS = np.array([2, 0, 1], np.int32)
_LIMITS = [(0, 2), (2, 2), (2, 3)]


def test_ragged_rows_take_the_matrix_of_their_group() -> None:
    p, q = _random(4, 5), _random(3, 5, 6)
    attributes = (
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}"
    )
    found = run(_ragged("4,5", "3,5,6", "3", "4,6", attributes), p, q, _GROUPS)
    np.testing.assert_array_equal(
        found, np.stack([p[0] @ q[0], p[1] @ q[0], p[2] @ q[2], np.zeros(6)])
    )


def test_ragged_sums_become_integers_as_they_are() -> None:
    """XLA:CPU's result_caster leaves them alone: nothing rounds 257.5 to bf16, which has 258."""
    attributes = (
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}"
    )
    text = _ragged("1,2", "3,2,1", "3", "1,1", attributes)
    text = text.replace("= f32", "= bf16").replace("ROOT d = bf16", "ROOT d = s32")
    p, q = np.array([[256, 1]]), np.array([[[1], [1.5]]] * 3)
    groups = np.array([1, 0, 0], np.int32)
    found = run(text, p.astype(ml_dtypes.bfloat16), q.astype(ml_dtypes.bfloat16), groups)
    assert found[0, 0] == 257


def test_ragged_contraction_gives_a_result_per_group() -> None:
    p, q = _random(5, 4), _random(4, 6)
    attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}"
    found = run(_ragged("5,4", "4,6", "3", "3,5,6", attributes), p, q, _GROUPS)
    np.testing.assert_array_equal(found, [p[:, a:b] @ q[a:b] for a, b in _LIMITS])


def test_ragged_batch_pairs_groups() -> None:
    p, q = _random(3, 2, 5), _random(3, 5, 6)
    attributes = (
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={1}, lhs_ragged_dims={0}"
    )
    found = run(_ragged("3,2,5", "3,5,6", "3", "3,2,6", attributes), p, q, _GROUPS)
    np.testing.assert_array_equal(found, p @ q)


def test_batches_can_have_group_sizes_of_their_own() -> None:
    p, q = _random(2, 3, 5), _random(4, 2, 5, 6)
    groups = np.array([[1, 1, 0, 1], [0, 0, 3, 0]], np.int32)
    attributes = (
        "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}"
    )
    found = run(_ragged("2,3,5", "4,2,5,6", "2,4", "2,3,6", attributes), p, q, groups)
    matrices = [[0, 1, 3], [2, 2, 2]]
    expected = [[p[b, i] @ q[g, b] for i, g in enumerate(row)] for b, row in enumerate(matrices)]
    np.testing.assert_array_equal(found, expected)


def test_scales_are_for_blocks() -> None:
    text = """HloModule m
ENTRY e { p = f32[1,4] parameter(0)
 q = f32[4,1] parameter(1)
 a = f32[1,2] parameter(2)
 b = f32[1,1] parameter(3)
 ROOT d = f32[1,1] scaled-dot(p, q, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    p, q = np.array([[1, 2, 3, 4]], np.float32), np.ones((4, 1), np.float32)
    found = run(text, p, q, np.array([[10, 100]], np.float32), np.array([[2]], np.float32))
    assert found.tolist() == [[2 * (30 + 700)]]


def test_a_scale_without_dimensions_stands_for_none() -> None:
    text = """
ENTRY e {
 p = bf16[1,4] parameter(0)
 q = bf16[4,1] parameter(1)
 a = bf16[] parameter(2)
 b = bf16[2,1] parameter(3)
 ROOT d = f32[1,1] scaled-dot(p, q, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    bf16 = ml_dtypes.bfloat16
    p, q = np.array([[1, 2, 3, 4]], bf16), np.ones((4, 1), bf16)
    found = run(text, p, q, np.array(5, bf16), np.array([[10], [100]], bf16))
    assert found.tolist() == [[30 + 700]]


def test_scaled_dots_round_as_their_dots_do() -> None:
    text = """
ENTRY e {
 p = f8e4m3fn[2,1,4] parameter(0)
 q = f8e4m3fn[2,3,4] parameter(1)
 a = f8e8m0fnu[2,1,2] parameter(2)
 b = f8e4m3fn[1,3,1] parameter(3)
 ROOT d = s32[2,1,3] scaled-dot(p, q, a, b), lhs_batch_dims={0}, lhs_contracting_dims={2},
   rhs_batch_dims={0}, rhs_contracting_dims={2} }"""
    e4, e8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    p, q = np.full((2, 1, 4), 15, e4), np.full((2, 3, 4), 13, e4)
    found = run(text, p, q, np.full((2, 1, 2), 2, e8), np.array([[[1], [2], [0.5]]], e4))
    exact = np.array([15 * 13 * 4 * 2 * scale for scale in (1, 2, 0.5)])
    assert (found == exact.astype(ml_dtypes.bfloat16).astype(np.int32)).all()
