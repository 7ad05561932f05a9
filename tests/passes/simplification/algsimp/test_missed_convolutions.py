"""The reasons for which rules of algsimp leave convolutions alone."""

from __future__ import annotations

import pytest
from tests.passes.simplification.algsimp.programs import missed

_IMAGE = "p = f32[1,4,4,2] parameter(0) "
_PADDED_KERNEL = (
    "p = f32[1,9,9,2] parameter(0) z = f32[] constant(0) k = f32[3,3,2,2] parameter(1) "
    "d = f32[%s] pad(k, z), padding=%s "
    "ROOT r = f32[%s] convolution(p, d), window={%s}, dim_labels=b01f_01io->b01f"
)
_MEETS = "interior padding meets padding or base dilation of the window"
CONVOLUTIONS = [
    (
        "%d pads batches or features",
        f"{_IMAGE}z = f32[] constant(0) k = f32[3,3,2,2] parameter(1) "
        "d = f32[2,4,4,2] pad(p, z), padding=0_1x0_0x0_0x0_0 "
        "ROOT r = f32[2,2,2,2] convolution(d, k), window={size=3x3}, dim_labels=b01f_01io->b01f",
    ),
    (
        _MEETS,
        f"{_IMAGE}z = f32[] constant(0) k = f32[3,3,2,2] parameter(1) "
        "d = f32[1,7,4,2] pad(p, z), padding=0_0x0_0_1x0_0x0_0 ROOT r = f32[1,6,2,2] "
        "convolution(d, k), window={size=3x3 pad=1_0x0_0}, dim_labels=b01f_01io->b01f",
    ),
    (
        "padding meets base dilation of the window",
        f"{_IMAGE}z = f32[] constant(0) k = f32[3,3,2,2] parameter(1) "
        "d = f32[1,5,4,2] pad(p, z), padding=0_0x1_0x0_0x0_0 ROOT r = f32[1,7,2,2] "
        "convolution(d, k), window={size=3x3 lhs_dilate=2x1}, dim_labels=b01f_01io->b01f",
    ),
    (
        "%d pads features",
        _PADDED_KERNEL % ("3,3,2,3", "0_0x0_0x0_0x0_1", "1,7,7,3", "size=3x3"),
    ),
    ("%d pads edges", _PADDED_KERNEL % ("4,3,2,2", "0_1x0_0x0_0x0_0", "1,6,7,2", "size=4x3")),
    (
        "interior padding meets window dilation",
        _PADDED_KERNEL % ("5,3,2,2", "0_0_1x0_0x0_0x0_0", "1,1,7,2", "size=5x3 rhs_dilate=2x1"),
    ),
    (
        "its window has strides, padding or dilation",
        "p = f32[1,4,4,2] parameter(0) k = f32[1,1,1,2] parameter(1) ROOT r = f32[1,2,2,2] "
        "convolution(p, k), window={size=1x1 stride=2x2}, dim_labels=b01f_01io->b01f, "
        "feature_group_count=2",
    ),
    (
        "a kernel is larger than 1 and slides",
        "p = f32[1,4,4,2] parameter(0) k = f32[2,2,1,2] parameter(1) ROOT r = f32[1,3,3,2] "
        "convolution(p, k), window={size=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=2",
    ),
]
_ONE = (
    "p = f32[1,4,4,2]{%s} parameter(0) k = f32[1,1,2,3]{%s} parameter(1) ROOT r = "
    "f32[1,4,4,3]{%s} convolution(p, k), window={size=1x1}, dim_labels=b01f_01io->b01f"
)
_LAID_OUT: dict[str, object] = {"is_layout_sensitive": True}
WITH_OPTIONS: list[tuple[str, str, dict[str, object]]] = [
    (
        "the device cannot run it with exchanged operands",
        "p = f32[1,2,2,2] parameter(0) k = f32[3,3,2,3] parameter(1) ROOT r = f32[1,2,2,3] "
        "convolution(p, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        {"conv_is_lowerable": lambda convolution: False},
    ),
    (
        "the layouts of image and result differ",
        _ONE % ("3,2,1,0", "3,2,1,0", "3,1,2,0"),
        _LAID_OUT,
    ),
    ("features are not minor-most", _ONE % ("2,3,1,0", "3,2,1,0", "2,3,1,0"), _LAID_OUT),
    (
        "the input features of the kernel are not more major than the output ones",
        _ONE % ("3,2,1,0", "2,3,1,0", "3,2,1,0"),
        _LAID_OUT,
    ),
]


@pytest.mark.parametrize(("reason", "body"), CONVOLUTIONS)
def test_a_reason_to_stay(reason: str, body: str) -> None:
    assert reason in missed(body, {})


@pytest.mark.parametrize(("reason", "body", "options"), WITH_OPTIONS)
def test_a_reason_of_an_option(reason: str, body: str, options: dict[str, object]) -> None:
    assert reason in missed(body, options)
