"""Products of block-scaled tensors that are left to cuDNN."""

from __future__ import annotations

import pytest
from tests.passes.precision.block_scaling.programs import expanded, opcodes, product, shapes_of

from hloopt.diagnostics import PassRefused
from hloopt.ir import Opcode


def is_left_to_cudnn(text: str, version: tuple[int, ...] = (9, 10)) -> bool:
    return "custom-call" in opcodes(expanded(text, version))


MX = "f8e8m0fnu[128,4] f8e8m0fnu[128,4]"
NV = "f8e4m3fn[128,8] f8e4m3fn[128,8]"


@pytest.mark.parametrize(
    ("lhs", "rhs", "scales", "is_known"),
    [
        ("f8e4m3fn[128,128]", "f8e4m3fn[128,128]", MX, True),
        ("f8e4m3fn[128,128]", "f8e5m2[128,128]", MX, True),
        ("f8e5m2[128,128]", "f8e4m3fn[128,128]", MX, True),
        ("f8e5m2[128,128]", "f8e5m2[128,128]", MX, False),
        ("f4e2m1fn[128,128]", "f4e2m1fn[128,128]", NV, True),
        ("f4e2m1fn[128,128]", "f4e2m1fn[128,128]", MX, False),
        ("f4e2m1fn[128,128]", "f4e2m1fn[128,128]", MX.replace("f8e8m0fnu", "f8e4m3fn"), False),
        ("f8e4m3fn[128,128]", "f8e4m3fn[128,128]", NV, False),
        ("f8e4m3fn[128,128]", "f8e4m3fn[128,128]", MX.replace(",4]", ",8]"), False),
        ("f4e2m1fn[128,128]", "f8e4m3fn[128,128]", f"{NV.split()[0]} {MX.split()[0]}", False),
        ("f8e4m3fn[128,128]", "f8e4m3fn[128,128]", MX.split()[0], False),
        ("f8e4m3fn[128,128]{0,1}", "f8e4m3fn[128,128]", MX, False),
        ("f8e4m3fn[128,128]", "f8e4m3fn[128,128]{0,1}", MX, False),
        ("f8e4m3fn[128,128]", "f8e4m3fn[128,128]", "f8e8m0fnu[128,4]{0,1} f8e8m0fnu[128,4]", False),
        ("f8e4m3fn[128,128]{1,0:S(5)}", "f8e4m3fn[128,128]", MX, True),
    ],
)
def test_cudnn_knows_some_pairs_of_types_in_default_layouts(
    lhs: str, rhs: str, scales: str, is_known: bool
) -> None:
    text = product(lhs, rhs, scales, "f32[128,128]")
    assert is_left_to_cudnn(text) is is_known
    assert not is_left_to_cudnn(text, (9, 9))
    assert not is_left_to_cudnn(text, ())


@pytest.mark.parametrize("version", [(9, 10), (9, 13), (10, 0)])
def test_newer_versions_are_good_for_all_that_older_ones_are(version: tuple[int, ...]) -> None:
    assert is_left_to_cudnn(
        product("f8e4m3fn[128,128]", "f8e4m3fn[128,128]", MX, "f32[128,128]"), version
    )


@pytest.mark.parametrize(
    ("depth", "block", "is_known"), [(96, 32, True), (96, None, False), (80, 32, False)]
)
def test_cudnn_needs_whole_blocks_of_its_size(
    depth: int, block: int | None, is_known: bool
) -> None:
    side = f"f8e4m3fn[128,{depth}]"
    if depth == 80:  # three blocks, the last of them half, are none of cuDNN's and none of XLA's
        with pytest.raises(PassRefused, match="80 values in a row are not divided into 3 blocks"):
            expanded(product(side, side, MX, "f32[128,128]", block=block), (9, 10))
        return
    assert is_left_to_cudnn(product(side, side, MX, "f32[128,128]", block=block)) is is_known


@pytest.mark.parametrize(
    ("rows", "scales", "block", "pads", "slices"),
    [
        (128, "f8e8m0fnu[128,4]", None, [], []),
        (256, "f8e8m0fnu[256,4]", None, [], []),
        (100, "f8e8m0fnu[100,4]", None, ["0_28x0_0", "0_28x0_0"], ["f32[100,128]{1,0}"]),
        (100, "f8e8m0fnu[128,4]", None, ["0_28x0_0"], ["f32[100,128]{1,0}"]),
        (100, "f8e8m0fnu[110,4]", None, ["0_28x0_0", "0_18x0_0"], ["f32[100,128]{1,0}"]),
        (100, "f8e8m0fnu[300,4]", None, ["0_28x0_0", "0_-172x0_0"], ["f32[100,128]{1,0}"]),
        (128, "f8e8m0fnu[128,5]", 32, ["0_0x0_3"], []),
        (128, "f8e8m0fnu[256,4]", None, [], []),
        (128, "f8e8m0fnu[128,8]", 32, [], []),
        (0, "f8e8m0fnu[0,4]", None, [], []),
    ],
)
def test_sides_are_padded_to_whole_tiles(
    rows: int, scales: str, block: int | None, pads: list[str], slices: list[str]
) -> None:
    text = product(
        f"f8e4m3fn[{rows},128]",
        "f8e4m3fn[128,128]",
        f"{scales} f8e8m0fnu[128,4]",
        f"f32[{rows},128]",
        block=block,
    )
    body = expanded(text, (9, 10))
    found = [i.attributes["padding"] for i in body.instructions if i.opcode is Opcode.PAD]
    assert found == pads
    assert shapes_of(body, Opcode.SLICE) == slices


def test_zeros_of_scales_are_their_smallest_value() -> None:
    text = product("f8e4m3fn[1,32]", "f8e4m3fn[1,32]", "f8e8m0fnu[1,1] f8e8m0fnu[1,1]", "f32[1,1]")
    body = expanded(text, (9, 10))
    constants = [
        str(i).partition(" = ")[2] for i in body.instructions if i.opcode is Opcode.CONSTANT
    ]
    assert set(constants) == {
        "f8e4m3fn[] constant(0)",
        f"f8e8m0fnu[] constant({2.0**-127!r})",
    }


def test_scales_are_swizzled_tile_by_tile() -> None:
    side, scales = "f4e2m1fn[3,256,128]", "f8e4m3fn[3,256,8]"
    body = expanded(product(side, side, f"{scales} {scales}", "f32[3,256,256]"), (9, 10))
    assert shapes_of(body, Opcode.RESHAPE)[:2] == [
        "f8e4m3fn[3,2,4,32,2,4]{5,4,3,2,1,0}",
        "f8e4m3fn[3,256,8]{2,1,0}",
    ]
    assert shapes_of(body, Opcode.TRANSPOSE) == 2 * ["f8e4m3fn[3,2,2,32,4,4]{5,2,3,4,1,0}"]


@pytest.mark.parametrize(("version", "steps"), [((9, 12), 2), ((9, 13), 0)])
def test_a_global_scale_is_for_cudnn_from_9_13_on(version: tuple[int, ...], steps: int) -> None:
    side = "f4e2m1fn[100,128]"
    scales = "f8e4m3fn[100,8] f8e4m3fn[100,8] bf16[]"
    body = expanded(product(side, side, scales, "bf16[100,100]"), version)
    (call,) = (i for i in body.instructions if i.opcode is Opcode.CUSTOM_CALL)
    assert len(call.operands) == (4 if steps else 5)
    after = opcodes(body)[opcodes(body).index("custom-call") :]
    scaling = ["broadcast", "multiply"] if steps else []
    assert after == ["custom-call", "get-tuple-element", *scaling, "slice"]
