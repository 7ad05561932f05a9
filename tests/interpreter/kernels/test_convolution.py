"""Convolutions, against loops over their definition."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels import convolution
from hloopt.interpreter.values import Array
from hloopt.text import parse_module


@dataclass(frozen=True)
class _Axis:
    """One spatial dimension: sizes of base, kernel and result, and the window."""

    base: int
    kernel: int
    result: int
    stride: int = 1
    low: int = 0
    high: int = 0
    lhs_dilate: int = 1
    rhs_dilate: int = 1
    reversal: int = 0


def _by_definition(lhs: Array, rhs: Array, axes: list[_Axis], features: int, batches: int) -> Array:
    """Of [batch, feature, …] and [output, input, …], one multiplication at a time."""
    batch, outputs = lhs.shape[0] // batches, rhs.shape[0]
    result = np.zeros((batch, outputs, *(axis.result for axis in axes)))
    for n, o in product(range(batch), range(outputs)):
        from_batch = n + o // (outputs // batches) * batch
        first = o // (outputs // features) * rhs.shape[1]
        for place in np.ndindex(*(axis.result for axis in axes)):
            for c, *within in np.ndindex(*rhs.shape[1:]):
                at = []
                for axis, p, w in zip(axes, place, within, strict=True):
                    step = axis.kernel - 1 - w if axis.reversal else w
                    padded = p * axis.stride + w * axis.rhs_dilate - axis.low
                    inside = 0 <= padded <= (axis.base - 1) * axis.lhs_dilate
                    if not inside or padded % axis.lhs_dilate:
                        break
                    at.append((padded // axis.lhs_dilate, step))
                else:
                    element = lhs[(from_batch, first + c, *(i for i, _ in at))]
                    result[(n, o, *place)] += element * rhs[(o, c, *(k for _, k in at))]
    return result


_PLAIN = [_Axis(5, 3, 3), _Axis(4, 2, 3)]


@pytest.mark.parametrize("depth", [1, 12, 512])
@pytest.mark.parametrize(
    ("axes", "features", "batches"),
    [
        (_PLAIN, 1, 1),
        ([], 1, 1),
        ([_Axis(7, 3, 4, stride=2, low=1, high=1)], 1, 1),
        ([_Axis(5, 3, 2, low=-1, high=-0)], 1, 1),
        ([_Axis(3, 3, 9, lhs_dilate=3, low=2, high=2)], 1, 1),
        ([_Axis(3, 2, 3, lhs_dilate=3, low=-2, high=-1)], 1, 1),
        ([_Axis(7, 3, 3, rhs_dilate=2)], 1, 1),
        ([_Axis(5, 3, 3, reversal=1), _Axis(4, 2, 3)], 1, 1),
        ([_Axis(3, 2, 2), _Axis(4, 2, 3, reversal=1), _Axis(2, 1, 2)], 1, 1),
        ([_Axis(2, 3, 0)], 1, 1),
        ([_Axis(3, 6, 8, low=5, high=5), _Axis(2, 4, 3, stride=2, low=4, high=2)], 1, 1),
        ([_Axis(4, 7, 17, stride=2, low=13, high=14, lhs_dilate=4, rhs_dilate=1)], 1, 1),
        ([_Axis(3, 4, 3, stride=6, lhs_dilate=4, rhs_dilate=6, low=10, high=12)], 2, 1),
        ([_Axis(3, 4, 4, lhs_dilate=4, rhs_dilate=2, low=-1, high=2)], 1, 1),
        ([_Axis(3, 2, 3, stride=3, lhs_dilate=6, rhs_dilate=6, low=1)], 1, 1),
        ([_Axis(3, 2, 2, stride=2, lhs_dilate=2, rhs_dilate=2, low=1)], 1, 1),
        ([_Axis(1, 2, 7, lhs_dilate=5, low=4, high=3), _Axis(3, 3, 5, lhs_dilate=2, low=2)], 1, 2),
        ([_Axis(0, 2, 3, lhs_dilate=3, low=2, high=2)], 1, 1),
        ([_Axis(2, 5, 4, lhs_dilate=3, rhs_dilate=2, low=9, high=-1, reversal=1)], 1, 1),
        (_PLAIN, 2, 1),
        (_PLAIN, 4, 1),
        (_PLAIN, 1, 2),
    ],
)
def test_is_its_definition(
    monkeypatch: pytest.MonkeyPatch, axes: list[_Axis], features: int, batches: int, depth: int
) -> None:
    """With a small depth, the window is taken in parts."""
    monkeypatch.setattr(convolution, "_WORTHWHILE_DEPTH", depth)
    random = np.random.default_rng(1)
    lhs = random.integers(-4, 4, (4, 4, *(a.base for a in axes))).astype(np.float32)
    rhs = random.integers(-4, 4, (8, 4 // features, *(a.kernel for a in axes))).astype(np.float32)
    spatial = "".join(map(str, range(len(axes))))
    window = ""
    if axes:
        parts: dict[str, list[int] | list[str]] = {
            "size": [a.kernel for a in axes],
            "stride": [a.stride for a in axes],
            "pad": [f"{a.low}_{a.high}" for a in axes],
            "lhs_dilate": [a.lhs_dilate for a in axes],
            "rhs_dilate": [a.rhs_dilate for a in axes],
            "rhs_reversal": [a.reversal for a in axes],
        }
        texts = (f"{name}={'x'.join(map(str, values))}" for name, values in parts.items())
        window = f"window={{{' '.join(texts)}}}, "
    sizes = [
        ",".join(map(str, side))
        for side in (lhs.shape, rhs.shape, (4 // batches, 8, *(a.result for a in axes)))
    ]
    text = f"""HloModule m
ENTRY e {{ p = f32[{sizes[0]}] parameter(0)
 q = f32[{sizes[1]}] parameter(1)
 ROOT c = f32[{sizes[2]}] convolution(p, q), {window}feature_group_count={features},
  dim_labels=bf{spatial}_oi{spatial}->bf{spatial}, batch_group_count={batches} }}"""
    expected = _by_definition(lhs, rhs, axes, features, batches)
    found = run(text, lhs, rhs)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("type", "dtype"),
    [("s8", np.int8), ("bf16", ml_dtypes.bfloat16), ("c64", np.complex64), ("f64", np.float64)],
)
def test_labels_and_types(type: str, dtype: type) -> None:
    random = np.random.default_rng(2)
    lhs = random.integers(-3, 3, (2, 5, 6, 3))  # batch, 0, 1, feature
    rhs = random.integers(-3, 3, (3, 2, 3, 4))  # 1, 0, input, output
    text = f"""HloModule m
ENTRY e {{ p = {type}[2,5,6,3] parameter(0)
 q = {type}[3,2,3,4] parameter(1)
 ROOT c = {type}[4,4,4,2] convolution(p, q), window={{size=2x3}}, dim_labels=b01f_10io->0f1b }}"""
    axes = [_Axis(5, 2, 4), _Axis(6, 3, 4)]
    expected = _by_definition(
        lhs.transpose(0, 3, 1, 2), rhs.transpose(3, 2, 1, 0), axes, 1, 1
    ).transpose(2, 1, 3, 0)
    found = run(text, lhs.astype(dtype), rhs.astype(dtype))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, expected.astype(dtype))


@pytest.mark.parametrize("dilation", [64, 4096])
def test_a_dilated_base_takes_no_more_than_its_elements(dilation: int) -> None:
    """With the zeros between them it would be 4 or 16,000 million elements."""
    result = 31 * dilation + 1
    text = f"""HloModule m
ENTRY e {{ p = f32[1,16,32,32] parameter(0)
 q = f32[16,16,3,3] parameter(1)
 ROOT c = f32[1,16,32,{result // dilation + 1}] convolution(p, q),
  window={{size=3x3 stride={dilation}x{dilation} pad={dilation}_{dilation}x{dilation}_{dilation}
  lhs_dilate={dilation}x{dilation} rhs_dilate={dilation}x{dilation}}},
  dim_labels=bf01_oi01->bf01 }}"""
    lhs = np.ones((1, 16, 32, 32), np.float32)
    rhs = np.ones((16, 16, 3, 3), np.float32)
    plain = text.replace("ROOT c", "ROOT d")
    plain = plain[: plain.index("window=")] + (
        "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01 }"
    )
    np.testing.assert_array_equal(run(text, lhs, rhs), run(plain, lhs, rhs))


def test_a_window_over_a_lot_of_padding_takes_no_more_than_what_it_meets() -> None:
    """All windows at once would be 220 million elements."""
    text = """HloModule m
ENTRY e { p = f32[1,64,3,3] parameter(0)
 q = f32[1,64,60,60] parameter(1)
 ROOT c = f32[1,1,62,62] convolution(p, q), window={size=60x60 pad=59_59x59_59},
  dim_labels=bf01_oi01->bf01 }"""
    found = run(text, np.ones((1, 64, 3, 3), np.float32), np.ones((1, 64, 60, 60), np.float32))
    met = np.minimum(np.arange(62) + 1, 3)
    met = np.minimum(met, met[::-1])
    np.testing.assert_array_equal(found[0, 0], 64 * np.outer(met, met))


@pytest.mark.parametrize(
    ("kind", "result", "operands", "window"),
    [
        ("wgrad", "f32[3,3,3,5]", ("f32[2,4,4,3]", "f32[2,4,4,5]"), "4x4"),
        ("dgrad", "f32[2,4,4,3]", ("f32[2,4,4,5]", "f32[3,3,3,5]"), "3x3"),
    ],
)
def test_gradients_with_labels_of_the_forward_convolution_are_refused(
    kind: str, result: str, operands: tuple[str, str], window: str
) -> None:
    lhs, rhs = operands
    text = f"""HloModule m
ENTRY e {{
  p = {lhs} parameter(0)
  q = {rhs} parameter(1)
  ROOT r = {result} convolution(p, q), window={{size={window} pad=1_1x1_1}},
    dim_labels=b01f_i01o->b01f, convolution_kind={kind}
}}"""
    parameters = parse_module(text).entry.parameters
    arguments = [np.ones(p.shape.dimensions, np.float32) for p in parameters]
    message = rf"%r: convolution_kind={kind} with the dim_labels of the forward convolution, b01f_"
    with pytest.raises(RunError, match=message) as caught:
        run(text, *arguments)
    assert caught.value.span is not None
