"""The custom calls for block-scaled tensors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.block_scaled import (
    DTYPES,
    FORMATS,
    as_type,
    error_of,
    numbers_of,
    product,
    random_codes,
    random_tensor,
)
from tests.interpreter.running import run

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.values import Array

NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()} | {
    np.dtype(np.float32): "f32",
    np.dtype(ml_dtypes.bfloat16): "bf16",
}


def call(target: str, result: str, *operands: Array, attributes: str = "") -> str:
    """A module that calls a target with operands such as these."""
    lines = [
        f"p{number} = {NAMES[array.dtype]}[{','.join(map(str, array.shape))}] parameter({number})"
        for number, array in enumerate(operands)
    ]
    names = ", ".join(f"p{number}" for number in range(len(operands)))
    root = f'ROOT r = {result} custom-call({names}), custom_call_target="{target}"{attributes}'
    return "\n".join(["ENTRY e {", *lines, root, "}"])


def dot(result: str, *operands: Array, block: int | None = None) -> Array:
    config = f'{{"block_scaled_dot_backend_config":{{"block_size":{block}}}}}'
    attributes = "" if block is None else f", backend_config={config}"
    text = call("__op$block_scaled_dot", result, *operands, attributes=attributes)
    return np.asarray(run(text, *operands))


def random() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("type_name", DTYPES)
def test_types_are_those_of_the_standard(type_name: str) -> None:
    codes = random_codes(random(), type_name, (500,))
    assert (as_type(codes, type_name).astype(np.float64) == numbers_of(codes, type_name)).all()


@pytest.mark.parametrize("rhs", FORMATS)
@pytest.mark.parametrize("lhs", FORMATS)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_products_are_those_of_the_numbers(lhs: str, rhs: str, batch: tuple[int, ...]) -> None:
    a = random_tensor(random(), *FORMATS[lhs][:2], (*batch, 5, 64), FORMATS[lhs][2])
    b = random_tensor(random(), *FORMATS[rhs][:2], (*batch, 7, 64), FORMATS[rhs][2])
    sizes = ",".join(map(str, (*batch, 5, 7)))
    found = dot(f"f32[{sizes}]", a.values, b.values, a.scales, b.scales)
    assert error_of(found, a.whole, b.whole) < 1e-6


def test_spare_scales_are_left_out() -> None:
    a = random_tensor(random(), "f8e4m3fn", "f8e8m0fnu", (5, 96), 32, spare=(3, 1))
    b = random_tensor(random(), "f8e5m2", "f8e8m0fnu", (7, 96), 32, spare=(0, 5))
    found = dot("f32[5,7]", a.values, b.values, a.scales, b.scales, block=32)
    assert error_of(found, a.whole, b.whole) < 1e-6


def test_one_side_may_have_no_scales() -> None:
    a = random_tensor(random(), "f4e2m1fn", "f8e8m0fnu", (5, 64), 32)
    b = random().standard_normal((7, 64)).astype(np.float32)
    found = dot("f32[5,7]", a.values, b, a.scales)
    assert error_of(found, a.whole, b.astype(np.float64)) < 1e-6


def test_a_global_scale_is_for_all() -> None:
    a = random_tensor(random(), "f4e2m1fn", "f8e4m3fn", (5, 64), 16)
    b = random_tensor(random(), "f4e2m1fn", "f8e4m3fn", (7, 64), 16)
    scale = np.array(0.375, np.float32)
    found = dot("f32[5,7]", a.values, b.values, a.scales, b.scales, scale)
    assert error_of(found, a.whole, 0.375 * b.whole) < 1e-6


def test_nothing_times_nothing_is_zero() -> None:
    values, scales = np.zeros((4, 0), DTYPES["f8e4m3fn"]), np.zeros((4, 0), DTYPES["f8e8m0fnu"])
    assert (dot("f32[4,4]", values, values, scales, scales) == 0).all()


def swizzled(scales: Array) -> Array:
    """Scales of whole tiles in the order in which NVIDIA's manuals number them: in a tile of 128
    rows and 4 columns, row 32·i + j comes behind row 32·(i-1) + j."""
    *batch, rows, columns = scales.shape
    result = np.empty((*batch, rows * columns), scales.dtype)
    for row in range(rows):
        for column in range(columns):
            tile = row // 128 * (columns // 4) + column // 4
            place = 16 * (row % 32) + 4 * (row % 128 // 32) + column % 4
            result[..., 512 * tile + place] = scales[..., row, column]
    return result.reshape(scales.shape)


@pytest.mark.parametrize(("kind", "depth"), [("f8e4m3fn", 256), ("f4e2m1fn", 64)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_cudnn_reads_scales_by_tiles(kind: str, depth: int, batch: tuple[int, ...]) -> None:
    scales, block = ("f8e8m0fnu", 32) if kind == "f8e4m3fn" else ("f8e4m3fn", 16)
    a = random_tensor(random(), kind, scales, (*batch, 256, depth), block)
    b = random_tensor(random(), kind, scales, (*batch, 128, depth), block, spare=(128, 4))
    sizes = ",".join(map(str, (*batch, 256, 128)))
    operands = [a.values, b.values, swizzled(a.scales), swizzled(b.scales), np.float32(2)]
    arrays = [np.asarray(operand) for operand in operands]
    text = call("__cudnn$blockScaledDot", f"(f32[{sizes}], u8[3])", *arrays)
    found, workspace = run(text, *arrays)
    assert error_of(found, a.whole, 2 * b.whole) < 1e-6
    assert workspace.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("kind", "power"), [("f8e4m3fn", 8), ("f8e5m2", 15), ("f4e2m1fn", 2)])
def test_the_largest_of_a_block_becomes_the_largest_power_of_two(kind: str, power: int) -> None:
    numbers = np.array([[1, -0.5, 0.25, 0], [3, -4, 0.5, 1]], np.float32)
    text = call("__op$quantize", f"({kind}[2,4], f8e8m0fnu[2,2])", numbers)
    values, scales = run(text, numbers)
    assert scales.astype(np.float64).tolist() == [
        [2.0**-power, 2.0 ** (-2 - power)],
        [2.0 ** (2 - power), 2.0**-power],
    ]
    again = values.astype(np.float64) * np.repeat(scales.astype(np.float64), 2, -1)
    assert again.tolist() == numbers.tolist()
    text = call("__op$dequantize", "bf16[2,4]", values, scales)
    assert run(text, values, scales).astype(np.float32).tolist() == numbers.tolist()


def test_quantizing_rounds_in_the_type_of_the_array() -> None:
    numbers = np.array([[1.0, 0.3333]], np.float32).astype(ml_dtypes.bfloat16)
    text = call("__op$quantize", "(f8e4m3fn[1,2], f8e4m3fn[1,1])", numbers)
    values, scales = run(text, numbers)
    scale = (numbers[0, :1] / ml_dtypes.bfloat16(256)).astype(DTYPES["f8e4m3fn"])
    assert scales.tolist() == [scale.tolist()]
    shares = numbers / scale.astype(ml_dtypes.bfloat16)
    assert values.tolist() == shares.astype(DTYPES["f8e4m3fn"]).tolist()


def test_a_block_of_zeros_has_no_scale() -> None:
    numbers = np.zeros((1, 4), np.float32)
    values, scales = run(call("__op$quantize", "(f8e4m3fn[1,4], f8e8m0fnu[1,1])", numbers), numbers)
    assert np.isnan(values.astype(np.float32)).all()
    assert np.isnan(scales.astype(np.float32)).all()


E4, E8 = DTYPES["f8e4m3fn"], DTYPES["f8e8m0fnu"]


@pytest.mark.parametrize(
    ("target", "result", "operands", "reason"),
    [
        ("__op$quantize", "f32[4]", [np.zeros(4, np.float32)], "Incorrect output shape"),
        (
            "__op$dequantize",
            "f32[4,6]",
            [np.zeros((4, 6), E4), np.ones((4, 4), E8)],
            r"f8e8m0fnu\[4,4\]\{1,0\} does not divide f8e4m3fn\[4,6\]\{1,0\} into blocks",
        ),
        (
            "__op$block_scaled_dot",
            "f32[4,4]",
            [np.zeros((4, 6), E4), np.zeros((4, 6), E4), np.ones((4, 4), E8)],
            "6 values in a row are not divided into 4 blocks",
        ),
        (
            "__cudnn$blockScaledDot",
            "(f32[4,4], u8[0])",
            [*[np.zeros((4, 64), E4)] * 2, *[np.ones((4, 2), E8)] * 2],
            r"the scales f8e8m0fnu\[4,2\]\{1,0\} are not in whole tiles",
        ),
        (
            "__cudnn$blockScaledDot",
            "(f32[128,128], u8[0])",
            [*[np.zeros((128, 256), E4)] * 2, *[np.ones((128, 4), E8)] * 2],
            "are not enough for the values",
        ),
        (
            "__cudnn$blockScaledDot",
            "(f32[128,128], u8[0])",
            [*[np.zeros((128, 256), np.float32)] * 2, *[np.ones((128, 8), E8)] * 2],
            "are not a side that cuDNN takes",
        ),
        (
            "__cudnn$blockScaledDot",
            "f32[128,128]",
            [*[np.zeros((128, 256), E4)] * 2, *[np.ones((128, 8), E8)] * 2],
            "it does not have four or five operands and two arrays as results",
        ),
        (
            "__cudnn$blockScaledDot",
            "(f32[128,64], u8[0])",
            [*[np.zeros((128, 256), E4)] * 2, *[np.ones((128, 8), E8)] * 2],
            r"the product is f32\[128,128\], not f32\[128,64\]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    target: str, result: str, operands: list[Array], reason: str
) -> None:
    with pytest.raises(RunError, match=reason):
        run(call(target, result, *operands), *operands)


def test_a_product_rounds_once_in_a_narrow_type() -> None:
    a = random_tensor(random(), "f8e4m3fn", "f8e8m0fnu", (5, 64), 32)
    found = dot("bf16[5,5]", a.values, a.values, a.scales, a.scales)
    wide = product(a.whole, a.whole).astype(np.float32).astype(ml_dtypes.bfloat16)
    assert (found == wide).mean() > 0.9
