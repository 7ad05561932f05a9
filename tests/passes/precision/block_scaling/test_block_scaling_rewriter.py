"""Corners of expanding the calls for block-scaled tensors."""

from __future__ import annotations

import re

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, shown

from hloopt.diagnostics import PassRefused
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Computation, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.options import OptionError
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

PASS = "block-scaling-rewriter"
CUDNN = "__cudnn$blockScaledDot"


def product(
    lhs: str, rhs: str, scales: str, result: str, *, block: int | None = None, more: str = ""
) -> str:
    """A module with one product; shapes of the scales and of what follows are apart by blanks."""
    shapes = [lhs, rhs, *scales.split()]
    lines = [f"p{n} = {shape} parameter({n})" for n, shape in enumerate(shapes)]
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    config = f'{{"block_scaled_dot_backend_config":{{"block_size":{block}}}}}'
    attributes = 'custom_call_target="__op$block_scaled_dot"'
    attributes += f", backend_config={config}" if block is not None else ""
    root = f"ROOT product = {result} custom-call({names}), {attributes}{more}"
    return "\n".join(["HloModule m", "ENTRY e {", *lines, root, "}"])


def quantized(source: str, result: str) -> str:
    return (
        f"HloModule m\nENTRY e {{\np = {source} parameter(0)\n"
        f'ROOT q = {result} custom-call(p), custom_call_target="__op$quantize" }}'
    )


def dequantized(values: str, scales: str, result: str) -> str:
    return (
        f"HloModule m\nENTRY e {{\nv = {values} parameter(0)\ns = {scales} parameter(1)\n"
        f'ROOT d = {result} custom-call(v, s), custom_call_target="__op$dequantize" }}'
    )


def expanded(text: str, version: tuple[int, ...] = ()) -> Computation:
    """The computation that the call in a module becomes, which computes the same."""
    module = run_checked(PASS, text, cudnn_version=version)
    assert Reference(parse_module(text), RunSettings(seeds=1)).compare(module) is None
    return module.entry.root.called[0]


def opcodes(computation: Computation) -> list[str]:
    return [i.opcode.value for i in computation.instructions if i.opcode is not Opcode.PARAMETER]


def shapes_of(computation: Computation, opcode: Opcode) -> list[str]:
    return [i.shape.text for i in computation.instructions if i.opcode is opcode]


def is_left_to_cudnn(text: str, version: tuple[int, ...] = (9, 10)) -> bool:
    return "custom-call" in opcodes(expanded(text, version))


# -- the general forms ----------------------------------------------------------------------------


def test_a_call_takes_the_place_with_all_that_was_said_of_it() -> None:
    more = ', sharding={replicated}, metadata={op_name="f"}, frontend_attributes={a="b"}'
    text = product("bf16[4,8]", "bf16[4,8]", "bf16[4,2]", "f32[4,4]", more=more)
    call = run_checked(PASS, text).entry.root
    assert call.opcode is Opcode.CALL
    assert call.called[0].name == "product"
    assert [operand.name for operand in call.operands] == ["p0", "p1", "p2"]
    wanted = {"sharding": "{replicated}", "frontend_attributes": '{a="b"}'}
    assert wanted.items() <= call.attributes.items()
    assert 'op_name="f"' in call.attributes["metadata"]
    names = [parameter.name for parameter in call.called[0].parameters]
    assert names == ["lhs", "rhs", "lhs_scale"]


def test_the_steps_of_a_quantization() -> None:
    body = expanded(quantized("bf16[3,64]", "(f8e5m2[3,64], f8e8m0fnu[3,2])"))
    assert shown(body) == [
        "input = bf16[3,64] parameter(0)",
        "reshape = bf16[3,2,32] reshape(input)",
        "constant = bf16[] constant(0)",
        "reduce = bf16[3,2] reduce(reshape, constant), dimensions={2}, to_apply=amax",
        "constant.1 = bf16[] constant(3.277e+04)",
        "broadcast = bf16[3,2] broadcast(constant.1), dimensions={}",
        "divide = bf16[3,2] divide(reduce, broadcast)",
        "convert = f8e8m0fnu[3,2] convert(divide)",
        "convert.1 = bf16[3,2] convert(convert)",
        "broadcast.1 = bf16[3,2,32] broadcast(convert.1), dimensions={0,1}",
        "reshape.1 = bf16[3,64] reshape(broadcast.1)",
        "divide.1 = bf16[3,64] divide(input, reshape.1)",
        "convert.2 = f8e5m2[3,64] convert(divide.1)",
        "ROOT tuple = (f8e5m2[3,64], f8e8m0fnu[3,2]) tuple(convert.2, convert)",
    ]


@pytest.mark.parametrize(
    ("kind", "power"),
    [
        ("f8e4m3fn", "256"),
        ("f8e5m2", "32768"),
        ("f4e2m1fn", "4"),
        ("f8e3m4", "8"),
        ("f16", "32768"),
    ],
)
def test_the_largest_power_of_two_depends_on_the_type(kind: str, power: str) -> None:
    body = expanded(quantized("f32[3,4]", f"({kind}[3,4], f32[3,1])"))
    constants = [i.payload for i in body.instructions if i.opcode is Opcode.CONSTANT]
    assert constants == ["0", power]


@pytest.mark.parametrize("sizes", ["64", "2,64", "2,3,64", "0,64"])
def test_any_rank_is_dequantized(sizes: str) -> None:
    scales = sizes.replace("64", "2")
    body = expanded(dequantized(f"f8e4m3fn[{sizes}]", f"f8e8m0fnu[{scales}]", f"bf16[{sizes}]"))
    assert opcodes(body) == ["convert", "convert", "broadcast", "reshape", "multiply"]


@pytest.mark.parametrize(
    ("layout", "broadcast"),
    [
        ("{2,1,0}", "{3,2,1,0}"),
        ("{2,0,1}", "{3,0,2,1}"),
        ("{0,1,2}", "{0,1,3,2}"),
        ("{1,0,2}", "{1,0,3,2}"),
        ("{0,2,1}", "{0,3,2,1}"),
        ("{1,2,0}", "{2,3,1,0}"),
    ],
)
def test_scales_are_spread_in_their_own_layout(layout: str, broadcast: str) -> None:
    body = expanded(
        dequantized(f"f8e4m3fn[4,2,64]{layout}", f"f8e8m0fnu[4,2,2]{layout}", "f32[4,2,64]")
    )
    assert shapes_of(body, Opcode.BROADCAST) == [f"f32[4,2,2,32]{broadcast}"]
    assert shapes_of(body, Opcode.RESHAPE) == [f"f32[4,2,64]{layout}"]
    assert shapes_of(body, Opcode.MULTIPLY) == [f"f32[4,2,64]{layout}"]


def test_what_is_converted_is_packed_no_more() -> None:
    body = expanded(dequantized("f4e2m1fn[4,64]{1,0:E(4)}", "f8e8m0fnu[4,2]", "f32[4,64]"))
    assert shapes_of(body, Opcode.CONVERT) == ["f32[4,64]{1,0}", "f32[4,2]{1,0}"]


@pytest.mark.parametrize(
    ("scales", "block", "sliced"),
    [
        ("f8e8m0fnu[4,3] f8e8m0fnu[5,3]", None, []),
        ("f8e8m0fnu[4,3] f8e8m0fnu[5,3]", 32, []),
        ("f8e8m0fnu[6,3] f8e8m0fnu[5,3]", None, ["f8e8m0fnu[4,3]{1,0}"]),
        ("f8e8m0fnu[4,4] f8e8m0fnu[7,5]", 32, ["f8e8m0fnu[4,3]{1,0}", "f8e8m0fnu[5,3]{1,0}"]),
        ("f8e8m0fnu[4,2] f8e8m0fnu[5,2]", 64, ["f8e8m0fnu[4,2]{1,0}", "f8e8m0fnu[5,2]{1,0}"]),
        ("f8e8m0fnu[4,3] f8e8m0fnu[5,3]", 48, ["f8e8m0fnu[4,2]{1,0}", "f8e8m0fnu[5,2]{1,0}"]),
        ("f8e8m0fnu[4,4] f8e8m0fnu[5,4]", None, []),
    ],
)
def test_spare_scales_are_sliced_off(scales: str, block: int | None, sliced: list[str]) -> None:
    text = product("f8e4m3fn[4,96]", "f8e4m3fn[5,96]", scales, "f32[4,5]", block=block)
    assert shapes_of(expanded(text), Opcode.SLICE) == sliced


@pytest.mark.parametrize(
    ("batch", "numbers"),
    [
        ("", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        (
            "3,",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
            "rhs_contracting_dims={2}",
        ),
    ],
)
def test_the_last_dimension_is_contracted_and_the_first_of_three_paired(
    batch: str, numbers: str
) -> None:
    scales = f"bf16[{batch}4,2] bf16[{batch}5,8] bf16[]"
    text = product(f"bf16[{batch}4,8]", f"f16[{batch}5,8]", scales, f"bf16[{batch}4,5]")
    body = expanded(text)
    (dot,) = (line for line in shown(body) if " dot(" in line)
    assert dot.endswith(numbers)
    assert opcodes(body)[-2:] == ["broadcast", "multiply"]


def test_a_side_without_scales_takes_part_as_it_is() -> None:
    text = product("f8e4m3fn[4,64]", "bf16[5,64]{0,1}", "f8e8m0fnu[4,2]", "f32[4,5]")
    (dot,) = (i for i in expanded(text).instructions if i.opcode is Opcode.DOT)
    assert dot.operands[1].opcode is Opcode.PARAMETER


# -- for cuDNN ------------------------------------------------------------------------------------

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


# -- where ----------------------------------------------------------------------------------------

TARGET = 'custom_call_target="__op$dequantize"'
BODY = f"x = bf16[4,4] parameter(0)\n ROOT d = bf16[4,4] custom-call(x, x), {TARGET}"


def test_calls_in_fusions_stay() -> None:
    text = f"""HloModule m
    f {{ {BODY} }}
    ENTRY e {{ p = bf16[4,4] parameter(0)
      ROOT r = bf16[4,4] fusion(p), kind=kLoop, calls=f }}"""
    assert reasons_to_stay(PASS, text) == []


def test_calls_in_other_computations_are_expanded() -> None:
    text = f"""HloModule m
    f {{ {BODY} }}
    g {{ y = bf16[4,4] parameter(0)
      s = ((bf16[4,4], bf16[4,4]), bf16[4,4], u32[]) custom-call-start(y, y), {TARGET}
      ROOT n = bf16[4,4] custom-call-done(s) }}
    ENTRY e {{ p = bf16[4,4] parameter(0)
      c = pred[] parameter(1)
      ROOT r = bf16[4,4] conditional(c, p, p), true_computation=f, false_computation=g }}"""
    module = run_checked(PASS, text)
    assert [i.opcode for i in module.instructions(Opcode.CUSTOM_CALL)] == []
    assert len(list(module.instructions(Opcode.CALL))) == 2
    assert Reference(parse_module(text), RunSettings(seeds=1)).compare(module) is None


def test_schedules_and_control_dependencies_are_kept() -> None:
    text = f"""HloModule m, is_scheduled=true
    ENTRY e {{ p = bf16[4,4] parameter(0)
      n = bf16[4,4] negate(p)
      d = bf16[4,4] custom-call(p, p), {TARGET}, control-predecessors={{n}}
      ROOT a = bf16[4,4] add(d, n), control-predecessors={{d}} }}"""
    module = run_checked(PASS, text)
    assert shown(module.entry)[2:] == [
        "call = bf16[4,4] call(p, p), to_apply=d, control-predecessors={n}",
        "ROOT a = bf16[4,4] add(call, n), control-predecessors={call}",
    ]


def test_a_dynamic_dimension_is_a_reason_to_stay() -> None:
    text = dequantized("f8e4m3fn[<=4,64]", "f8e8m0fnu[<=4,2]", "f32[<=4,64]")
    assert reasons_to_stay(PASS, text) == ["it has a dynamic dimension"]


def test_other_targets_stay() -> None:
    text = product("bf16[4,8]", "bf16[4,8]", "bf16[4,2]", "f32[4,4]")
    assert reasons_to_stay(PASS, text.replace("__op$block_scaled_dot", "other")) == []


# -- what does not fit ----------------------------------------------------------------------------

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
    name = "q" if "quantize op" in reason or '__op$quantize"' in text else "d"
    assert refusal(text).removeprefix(f"%{name}: ").removeprefix("%d: ") == reason


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
    with pytest.raises(OptionError, match="takes two numbers"):
        create_pass(PASS, {"cudnn_version": version})


def test_many_calls_are_expanded_once_each() -> None:
    lines = [
        f'd{n} = bf16[4,4] custom-call(d{n - 1}, d{n - 1}), custom_call_target="__op$dequantize"'
        for n in range(1, 9)
    ]
    text = "\n".join(
        [
            "HloModule m",
            "ENTRY e {",
            "d0 = bf16[4,4] parameter(0)",
            *lines[:-1],
            f"ROOT {lines[-1]}",
        ]
    )
    module: Module = run_checked(PASS, text + "\n}")
    assert len(module.computations) == 9
