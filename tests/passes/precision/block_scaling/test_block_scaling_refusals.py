"""Calls for block-scaled tensors that do not fit end the pass."""

from __future__ import annotations

import re

import pytest
from tests.passes.precision.block_scaling.programs import PASS, dequantized, product, quantized

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.options import OptionError
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

E4, E8 = "f8e4m3fn", "f8e8m0fnu"


def refusal(text: str, version: tuple[int, ...] = ()) -> str:
    module = parse_module(text)
    with pytest.raises(PassRefused) as refused:
        create_pass(PASS, {"cudnn_version": version}).run(module, PassContext(PASS))
    assert refused.value.span is not None
    return refused.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (quantized("f32[4,64]", f"{E4}[4,64]"), "Incorrect output shape for quantize op"),
        (quantized("f32[4,64]", f"({E4}[4,64])"), "Incorrect output shape for quantize op"),
        (
            quantized("f32[4,64]", f"({E4}[4,32], {E8}[4,2])"),
            "Incorrect output shape for quantize op",
        ),
        (
            quantized("f32[4,64]", f"({E4}[4,64], ({E8}[4,2]))"),
            "Incorrect output shape for quantize op",
        ),
        (
            quantized("f32[4,64]", f"({E4}[4,64], {E8}[5,2])"),
            "Output and scale shape dimensions do not match",
        ),
        (
            quantized("f32[4,64]", f"({E4}[4,64], {E8}[4,3])"),
            f"{E8}[4,3]{{1,0}} does not divide {E4}[4,64]{{1,0}} into blocks",
        ),
        (
            quantized("f32[4,0]", f"({E4}[4,0], {E8}[4,0])"),
            f"{E8}[4,0]{{1,0}} does not divide {E4}[4,0]{{1,0}} into blocks",
        ),
        (
            quantized("f32[]", f"({E4}[], {E8}[])"),
            f"{E8}[] does not divide {E4}[] into blocks",
        ),
        (
            quantized("s32[4,64]", f"({E4}[4,64], {E8}[4,2])"),
            f"s32 does not hold the largest power of two of {E4}",
        ),
        (
            quantized("f32[4,64]", f"(s8[4,64], {E8}[4,2])"),
            "f32 does not hold the largest power of two of s8",
        ),
        (
            quantized("f16[4,64]", f"(bf16[4,64], {E8}[4,2])"),
            "f16 does not hold the largest power of two of bf16",
        ),
        (
            quantized("f32[4,64]", f"({E4}[4,64], {E8}[4,2])").replace("(p)", "(p, p)"),
            "Incorrect number of operands for quantize op",
        ),
        (
            dequantized(f"{E4}[4,64]", f"{E8}[4,2]", "f32[4,64]").replace("(v, s)", "(v)"),
            "Incorrect number of operands for dequantize op",
        ),
        (
            dequantized(f"{E4}[4,64]", f"{E8}[4,2]", "f32[4,32]"),
            "Incorrect output shape for dequantize op",
        ),
        (
            dequantized(f"{E4}[4,64]", f"{E8}[4,2]", "(f32[4,64])"),
            "Incorrect output shape for dequantize op",
        ),
        (
            dequantized(f"{E4}[4,64]", f"{E8}[2,2]", "f32[4,64]"),
            "Input and scale shape dimensions do not match",
        ),
        (
            dequantized(f"{E4}[4,64]", f"{E8}[4]", "f32[4,64]"),
            "Input and scale shape dimensions do not match",
        ),
    ],
)
def test_arrays_and_tensors_have_to_fit(text: str, reason: str) -> None:
    assert refusal(text).partition(": ")[2] == reason


PLAIN = (f"{E4}[4,64]", f"{E4}[5,64]", f"{E8}[4,2] {E8}[5,2]", "f32[4,5]")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({2: ""}, "Incorrect number of operands for block scaled dot op"),
        ({2: f"{PLAIN[2]} f32[] f32[]"}, "Incorrect number of operands for block scaled dot op"),
        ({3: "f32[5,4]"}, "Incorrect output shape for block scaled dot op"),
        ({3: "f32[4,5]{0,1}"}, "Incorrect output shape for block scaled dot op"),
        ({3: "(f32[4,5])"}, "Incorrect output shape for block scaled dot op"),
        (
            {1: f"{E4}[5,32]"},
            f"Cannot infer shape for dot operation: {E4}[4,64] <dot> {E4}[5,32]. "
            "Contracting dimension sizes are not compatible.",
        ),
        (
            {2: f"{PLAIN[2]} f32[1]"},
            "Global scale shape must be a scalar with the result's type",
        ),
        (
            {2: f"{PLAIN[2]} bf16[]"},
            "Global scale shape must be a scalar with the result's type",
        ),
        (
            {2: f"{E8}[1,4,2] {E8}[5,2]"},
            f"the scales {E8}[1,4,2]{{2,1,0}} have another rank than the values {E4}[4,64]{{1,0}}",
        ),
        (
            {2: f"{E8}[4,2] {E8}[4,2]"},
            f"the scales {E8}[4,2]{{1,0}} are not enough for the values {E4}[5,64]{{1,0}}",
        ),
        (
            {2: f"{E8}[4,3] {E8}[5,2]"},
            "64 values in a row are not divided into 3 blocks",
        ),
    ],
)
@pytest.mark.parametrize("version", [(), (9, 10)])
def test_the_parts_of_a_product_have_to_fit(
    changes: dict[int, str], reason: str, version: tuple[int, ...]
) -> None:
    lhs, rhs, scales, result = (changes.get(n, part) for n, part in enumerate(PLAIN))
    assert refusal(product(lhs, rhs, scales, result), version) == f"%product: {reason}"


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (0, "it states a block size of 0"),
        (-1, "it states a block size of -1"),
        (
            16,
            f"the scales {E8}[4,2]{{1,0}} are not enough for the values {E4}[4,64]{{1,0}}",
        ),
    ],
)
def test_a_stated_block_size_has_to_fit(block: int, reason: str) -> None:
    assert refusal(product(*PLAIN, block=block)) == f"%product: {reason}"


def test_batches_have_to_be_equal() -> None:
    text = product(f"{E4}[2,4,64]", f"{E4}[2,5,64]", f"{E8}[3,4,2] {E8}[2,5,2]", "f32[2,4,5]")
    assert re.search(r"\[3,4,2\].* are not enough for the values .*\[2,4,64\]", refusal(text))


@pytest.mark.parametrize("version", [[9], [9, 10, 2]])
def test_a_version_is_two_numbers(version: list[int]) -> None:
    with pytest.raises(
        OptionError, match=r"option 'cudnn_version' takes two numbers, such as \[9, 10\], or none"
    ):
        create_pass(PASS, {"cudnn_version": version})
