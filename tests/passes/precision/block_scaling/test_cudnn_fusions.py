"""Scaled-dots that cuDNN computes, and the scales of their fusions."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent

from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Module, Opcode
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.passes.precision.block_scaling.cudnn_fusions import (
    cudnn_add_scale_swizzle,
    cudnn_supports_scaled_dot,
)
from hloopt.text import parse_module
from hloopt.verifier import verify_module

MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
BATCHES = (
    "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}"
)
PLAIN = "f8e4m3fn[4,64] f8e4m3fn[5,64] f8e8m0fnu[4,2] f8e8m0fnu[5,2]"


def computation(
    shapes: str, attributes: str = MATRICES, operands: str = "p0, p1, p2, p3", more: str = ""
) -> str:
    """The body of a computation with one scaled-dot; what it gives has the sizes 4 by 5."""
    lines = [f"p{n} = {shape} parameter({n})" for n, shape in enumerate(shapes.split())]
    result = _result(shapes)
    dot = f"dot = {result} scaled-dot({operands}), {attributes}"
    return "\n".join([*lines, dot, more or f"ROOT r = {result} copy(dot)"])


def _result(shapes: str) -> str:
    lhs, rhs = (parse_shape(text).dimensions for text in shapes.split()[:2])
    if lhs[:1] == (64,):
        return "f32[4,5]"
    if lhs[1:] == (2, 64):  # a batch in the middle
        return "f32[2,4,5]"
    return f"f32[{','.join(map(str, (*lhs[:-1], rhs[-2])))}]"


@pytest.mark.parametrize(
    ("shapes", "attributes", "operands", "more", "answer"),
    [
        (PLAIN, MATRICES, "p0, p1, p2, p3", "", True),
        (PLAIN.replace("8e4m3fn[5", "8e5m2[5"), MATRICES, "p0, p1, p2, p3", "", True),
        (PLAIN.replace("8e4m3fn", "8e5m2"), MATRICES, "p0, p1, p2, p3", "", False),
        (PLAIN.replace(",2]", ",4]"), MATRICES, "p0, p1, p2, p3", "", False),
        (PLAIN.replace("fnu[4,2]", "fnu[2,2]"), MATRICES, "p0, p1, p2, p3", "", False),
        (PLAIN.replace("5", "4"), MATRICES, "p1, p0, p2, p3", "", False),
        (PLAIN.replace("5", "4"), MATRICES, "p0, p1, p3, p2", "", False),
        (PLAIN, MATRICES, "p0, p1, p2, p3", "ROOT r = f8e8m0fnu[4,2] copy(p2)", False),
        (
            "f8e4m3fn[64,4] f8e4m3fn[5,64] f8e8m0fnu[64,4] f8e8m0fnu[5,2]",
            "lhs_contracting_dims={0}, rhs_contracting_dims={1}",
            *("p0, p1, p2, p3", "", False),
        ),
        (
            "f8e4m3fn[2,4,64] f8e4m3fn[2,5,64] f8e8m0fnu[2,4,2] f8e8m0fnu[2,5,2]",
            *(BATCHES, "p0, p1, p2, p3", "", True),
        ),
        (
            "f8e4m3fn[4,2,64] f8e4m3fn[5,2,64] f8e8m0fnu[4,2,2] f8e8m0fnu[5,2,2]",
            BATCHES.replace("batch_dims={0}", "batch_dims={1}"),
            *("p0, p1, p2, p3", "", False),
        ),
        ("bf16[4,64] f8e4m3fn[5,64] bf16[] f8e8m0fnu[5,2]", MATRICES, "p0, p1, p2, p3", "", False),
    ],
)
def test_cudnn_takes_first_parameters_with_blocks_in_rows(
    shapes: str, attributes: str, operands: str, more: str, answer: bool
) -> None:
    text = computation(shapes, attributes, operands, more)
    module = parse_module(f"ENTRY e {{ {text} }}")
    assert cudnn_supports_scaled_dot(module["dot"]) is answer


def test_operands_that_are_computed_are_not_for_cudnn() -> None:
    text = computation(PLAIN, operands="c, p1, p2, p3").replace(
        "dot = ", "c = f8e4m3fn[4,64] copy(p0)\ndot = "
    )
    assert not cudnn_supports_scaled_dot(parse_module(f"ENTRY e {{ {text} }}")["dot"])


def fused(shapes: str, attributes: str = MATRICES, header: str = "") -> Module:
    lines = [f"q{n} = {shape} parameter({n})" for n, shape in enumerate(shapes.split())]
    body = computation(shapes, attributes)
    result = _result(shapes)
    return parse_module(
        f"HloModule m{header}\nf {{ {body} }}\nENTRY e {{\n"
        + "\n".join(lines)
        + f"\nROOT fusion = {result} fusion(q0, q1, q2, q3), kind=kCustom, calls=f }}"
    )


def test_scales_are_swizzled_before_the_fusion() -> None:
    module = fused(PLAIN)
    cudnn_add_scale_swizzle(module.entry.root)
    assert verify_module(module) == []
    assert_consistent(module)
    assert shown(module.computations["q2_swizzle"]) == [
        "values = f8e4m3fn[4,64] parameter(0)",
        "scales = f8e8m0fnu[4,2] parameter(1)",
        f"constant = f8e8m0fnu[] constant({2.0**-127!r})",
        "pad = f8e8m0fnu[128,4] pad(scales, constant), padding=0_124x0_2",
        "bitcast = f8e8m0fnu[1,1,4,32,1,4] bitcast(pad)",
        "transpose = f8e8m0fnu[1,1,1,32,4,4] transpose(bitcast), dimensions={0,1,4,3,2,5}",
        "bitcast.1 = f8e8m0fnu[128,4] bitcast(transpose)",
        "ROOT tuple = (f8e4m3fn[4,64], f8e8m0fnu[128,4]) tuple(values, bitcast.1)",
    ]
    transpose = next(module.instructions(Opcode.TRANSPOSE))
    assert transpose.shape.text == "f8e8m0fnu[1,1,1,32,4,4]{5,4,3,2,1,0}"
    assert shown(module.computations["f"])[2:] == [
        "p2 = f8e8m0fnu[128,4] parameter(2)",
        "slice = f8e8m0fnu[4,4] slice(p2), slice={[0:4], [0:4]}",
        "p3 = f8e8m0fnu[128,4] parameter(3)",
        "slice.1 = f8e8m0fnu[5,4] slice(p3), slice={[0:5], [0:4]}",
        f"dot = f32[4,5] scaled-dot(p0, p1, slice, slice.1), {MATRICES}",
        "ROOT r = f32[4,5] copy(dot)",
    ]
    reads = [operand.attributes["index"] for operand in module.entry.root.operands]
    assert reads == ["0", "0", "1", "1"]
    assert [operand.operands[0].name for operand in module.entry.root.operands] == [
        *("call", "call.1", "call", "call.1")
    ]


def test_scales_of_whole_tiles_are_neither_padded_nor_sliced() -> None:
    whole = "f8e4m3fn[2,128,128] f8e4m3fn[2,256,128] f8e8m0fnu[2,128,4] f8e8m0fnu[2,256,4]"
    module = fused(whole, BATCHES)
    cudnn_add_scale_swizzle(module.entry.root)
    assert verify_module(module) == []
    assert not list(module.instructions(Opcode.PAD))
    assert not list(module.instructions(Opcode.SLICE))


def test_a_schedule_stays_complete() -> None:
    module = fused(PLAIN, header=", is_scheduled=true")
    cudnn_add_scale_swizzle(module.entry.root)
    assert verify_module(module) == []
    assert module.entry.root is list(module.entry.instructions)[-1]


def test_a_second_caller_keeps_its_fused_computation() -> None:
    whole = fused(PLAIN)
    entry = whole.entry
    entry.add_clone(entry.root, entry.root.operands)
    before = shown(whole.computations["f"])
    cudnn_add_scale_swizzle(entry.root)
    assert shown(whole.computations["f"]) == before
    assert entry.root.called[0].name != "f"


def test_other_fusions_are_refused() -> None:
    module = fused(PLAIN.replace("8e4m3fn", "8e5m2"))
    version = module.version
    with pytest.raises(HloVerifyError, match="%fusion has no scaled-dot that cuDNN can compute"):
        cudnn_add_scale_swizzle(module.entry.root)
    assert module.version == version
