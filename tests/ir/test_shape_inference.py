"""Shape inference: one table of shapes, one of refusals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.ir.signatures import ADD, function

from hloopt.diagnostics import HloError
from hloopt.ir.attributes.text import split_attributes
from hloopt.ir.opcode import OPCODES
from hloopt.ir.shape_inference import infer_shape
from hloopt.ir.shapes.shape_parser import parse_shape

GREATER = "(f32[], f32[]) -> pred[]"


def infer(opcode: str, operands: str, attributes: str = "", called: Sequence[str] = ()) -> str:
    return infer_shape(
        OPCODES[opcode],
        parse_shape(f"({operands})").elements,
        split_attributes(attributes),
        [function(signature) for signature in called],
    ).text


@pytest.mark.parametrize(
    ("opcode", "operands", "attributes", "called", "result"),
    [
        ("negate", "f32[2,3]{0,1:T(8,128)S(5)}", "", [], "f32[2,3]{0,1:T(8,128)S(5)}"),
        ("abs", "c64[2]{0:S(1)}", "", [], "f32[2]{0:S(1)}"),
        ("abs", "s32[2]", "", [], "s32[2]{0}"),
        ("imag", "c128[]", "", [], "f64[]"),
        ("is-finite", "f4e2m1fn[2]{0:E(4)}", "", [], "pred[2]{0}"),
        ("add", "bf16[2,3]{0,1}, f32[2,3]", "", [], "f32[2,3]{0,1}"),
        ("add", "f16[2], bf16[2]", "", [], "bf16[2]{0}"),
        ("add", "f32[2,3]{0,1}, f32[]", "", [], "f32[2,3]{1,0}"),
        ("add", "f32[2,1], f32[1,3]", "", [], "f32[2,3]{1,0}"),
        ("add", "f32[2,3]{0,1}, f32[2,<=3]", "", [], "f32[2,<=3]{0,1}"),
        ("add", "f32[?,1], f32[4,?]", "", [], "f32[4,?]{1,0}"),
        ("add", "f32[?,3]{0,1:S(1)}, f32[?,3]{0,1}", "", [], "f32[?,3]{1,0}"),
        ("add", "f32[<=1,2]{0,1}, f32[1,1]", "", [], "f32[1,2]{1,0}"),
        ("add", "f32[1,2]{0,1}, f32[<=1,2]", "", [], "f32[<=1,2]{0,1}"),
        ("add", "s4[2]{0:E(4)S(1)}, s4[2]", "", [], "s4[2]{0:E(4)S(1)}"),
        ("add", "f32[2]{0:E(32)S(1)}, f32[2]", "", [], "f32[2]{0:S(1)}"),
        ("compare", "s4[2,3]{0,1:E(4)}, s4[2,3]{1,0:E(4)}", "direction=EQ", [], "pred[2,3]{0,1}"),
        ("complex", "f64[2], f64[]", "", [], "c128[2]{0}"),
        ("select", "pred[2]{0:T(8)}, s4[2]{0:E(4)}, s4[2]", "", [], "s4[2]{0:T(8)E(4)}"),
        ("select", "pred[], f32[2,3]{0,1}, f32[2,3]", "", [], "f32[2,3]{0,1}"),
        ("select", "pred[?], f32[2], f32[2]", "", [], "f32[?]{0}"),
        ("select", "pred[2], f32[?], f32[?]", "", [], "f32[?]{0}"),
        ("select", "pred[<=2], f32[?], f32[2]", "", [], "f32[2]{0}"),
        ("select", "pred[<=2], f32[2], f32[2]", "", [], "f32[<=2]{0}"),
        ("clamp", "f32[], bf16[2]{0:S(1)}, f32[2]", "", [], "bf16[2]{0:S(1)}"),
        ("copy", "(f32[2]{0:S(1)}, token[])", "", [], "(f32[2]{0:S(1)}, token[])"),
        ("after-all", "token[], token[]", "", [], "token[]"),
        ("partition-id", "", "", [], "u32[]"),
        ("tuple", "f32[2], token[]", "", [], "(f32[2]{0}, token[])"),
        ("get-tuple-element", "(f32[2], s32[])", "index=1", [], "s32[]"),
        ("call", "f32[2]", "", ["(f32[2]) -> s32[3]{0:S(1)}"], "s32[3]{0:S(1)}"),
        (
            "while",
            "(s32[], f32[2])",
            "",
            ["((s32[], f32[2]{0:S(1)})) -> (s32[], f32[2])", "((s32[], f32[2])) -> pred[]"],
            "(s32[], f32[2]{0})",
        ),
        (
            "conditional",
            "pred[], f32[2], f32[3]",
            "",
            ["(f32[2]) -> (s32[4], (f32[1]))", "(f32[3]) -> (s32[<=4], (f32[1]))"],
            "(s32[<=4]{0}, (f32[1]{0}))",
        ),
        ("broadcast", "f32[]", "", [], "f32[]"),
        ("transpose", "f32[2,3,4]{1,2,0}", "dimensions={1,2,0}", [], "f32[3,4,2]{0,1,2}"),
        ("reverse", "f32[2,3]{0,1}", "dimensions={1}", [], "f32[2,3]{0,1}"),
        ("concatenate", "f32[<=2,?], f32[4,3]", "dimensions={0}", [], "f32[<=6,3]{1,0}"),
        ("concatenate", "bf16[2], f64[3], f32[4]", "dimensions={0}", [], "f32[9]{0}"),
        ("pad", "bf16[4,2]{0,1}, f32[]", "padding=1_-2x0_1_3", [], "f32[3,6]{1,0}"),
        ("sort", "f32[4]{0:S(1)}, s32[4]", "dimensions={0}", [], "(f32[4]{0:S(1)}, s32[4]{0})"),
        ("sort", "f32[?], s32[4]", "dimensions={0}", [], "(f32[?]{0}, s32[4]{0})"),
        ("reduce", "bf16[2,3,4]{0,1,2}, f32[]", "dimensions={1}", [ADD], "f32[2,4]{1,0}"),
        (
            *("reduce", "f32[?,3], f32[2,3], f32[], f32[]", "dimensions={1}"),
            *(["(f32[], f32[], f32[], f32[]) -> (f32[], f32[])"], "(f32[?]{0}, f32[?]{0})"),
        ),
        ("map", "f32[], f32[2]", "dimensions={0}", [ADD], "f32[2]{0}"),
        ("map", "f32[2]{0:S(1)}, f32[2]", "dimensions={0}", [ADD], "f32[2]{0}"),
        (
            "reduce-window",
            "f32[8,<=9], f32[]",
            "window={size=2x3 stride=2x2 pad=0_0x1_1}",
            [ADD],
            "f32[4,<=5]{1,0}",
        ),
        (
            "select-and-scatter",
            "f32[8]{0:S(1)}, f32[4], f32[]",
            "window={size=2 stride=2}",
            [GREATER, ADD],
            "f32[8]{0:S(1)}",
        ),
        (
            "dot",
            "bf16[5,2,3], f32[5,3,4]",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
            [],
            "f32[5,2,4]{2,1,0}",
        ),
        (
            "ragged-dot",
            "f32[6,5], f32[5,7], s32[3]",
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
            [],
            "f32[3,6,7]{2,1,0}",
        ),
        (
            "convolution",
            "f32[4,9,6], f32[3,3,8]",
            "window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->fb0, feature_group_count=2",
            [],
            "f32[8,4,5]{2,1,0}",
        ),
        (
            *("convolution", "f32[1,9,6], f32[<=3,6,8]"),
            *("window={size=3}, dim_labels=b0f_0io->b0f", [], "f32[1,<=7,8]{2,1,0}"),
        ),
        (
            *(
                "convolution",
                "f32[1,8], (f32[2,1], s32[2,1])",
                "dim_labels=bf_io->bf, sparsity_config={rhs={sparsity=1x4}}",
            ),
            *([], "f32[1,1]{1,0}"),
        ),
        (
            *("ragged-dot", "f32[6,5], f32[5,7], s32[<=3]"),
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
            *([], "f32[<=3,6,7]{2,1,0}"),
        ),
        (
            "gather",
            "f32[8,<=6], s32[5,1]",
            "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, "
            "index_vector_dim=1, slice_sizes={1,6}",
            [],
            "f32[<=6,5]{1,0}",
        ),
        (
            "scatter",
            "f32[8,6]{0,1}, s32[5,1], f32[5,6]",
            "update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
            [ADD],
            "f32[8,6]{0,1}",
        ),
        ("fft", "f32[4,<=9]{0,1}", "fft_type=RFFT, fft_length={9}", [], "c64[4,<=5]{0,1}"),
        ("fft", "f32[4]{0:E(32)S(1)}", "fft_type=RFFT, fft_length={4}", [], "c64[3]{0:S(1)}"),
        ("fft", "c64[4,5]", "fft_type=IRFFT, fft_length={9}", [], "f32[4,9]{1,0}"),
        ("cholesky", "f32[2,3,3]", "lower=true", [], "f32[2,3,3]{2,1,0}"),
        (
            "triangular-solve",
            "f32[3,3], f32[2,3]",
            "transpose_a=NO_TRANSPOSE",
            [],
            "f32[2,3]{1,0}",
        ),
        (
            "batch-norm-training",
            "f32[8,4]{0,1}, f32[4], f32[4]",
            "epsilon=0.1, feature_index=1",
            [],
            "(f32[8,4]{0,1}, f32[4]{0}, f32[4]{0})",
        ),
        ("get-dimension-size", "f32[<=8]", "dimensions={0}", [], "s32[]"),
        ("set-dimension-size", "f32[8]{0:S(1)}, s32[]", "dimensions={0}", [], "f32[<=8]{0:S(1)}"),
        ("set-dimension-size", "b(f32[8]), s32[]", "dimensions={0}", [], "b(f32[<=8]{0})"),
        ("topk", "bf16[<=8,9]", "k=2", [], "(bf16[<=8,2]{1,0}, s32[<=8,2]{1,0})"),
        (
            "scan",
            "f32[7,2], s32[3]",
            "dimensions={0}, num_carries=1",
            ["(f32[2], s32[3]) -> (f32[2], s32[3])"],
            "(f32[7,2]{1,0}, s32[3]{0})",
        ),
        (
            *("scan", "f32[<=7,2], s32[3]", "dimensions={0}, num_carries=1"),
            *(["(f32[2], s32[3]) -> (f32[<=2], s32[3])"], "(f32[7,2]{1,0}, s32[3]{0})"),
        ),
        ("add-dependency", "f32[2]{0:S(1)}, f32[]", "", [], "f32[2]{0:S(1)}"),
    ],
)
def test_a_shape_left_out_follows_from_the_operands(
    opcode: str, operands: str, attributes: str, called: list[str], result: str
) -> None:
    assert infer(opcode, operands, attributes, called) == result


@pytest.mark.parametrize(
    ("opcode", "operands", "attributes", "called", "message"),
    [
        ("iota", "", "iota_dimension=0", [], "cannot infer shape for opcode: iota"),
        ("negate", "pred[2]", "", [], "integral, floating or complex for negate"),
        ("negate", "b(f32[2])", "", [], "Expected array argument"),
        ("add", "f32[2], f32[3]", "", [], "Binary op with incompatible shapes"),
        ("add", "f32[2], f32[3,2]", "", [], "Shapes must be equal rank"),
        ("add", "f32[2], s32[2]", "", [], "different element types"),
        ("add", "f32[2]", "", [], "add expects 2 operands"),
        ("subtract", "pred[], pred[]", "", [], "arithmetic type"),
        ("get-tuple-element", "(f32[])", "index=1", [], "out of tuple bounds"),
        ("call", "f32[2]", "", ["(f32[3]) -> f32[]"], "parameter must match argument"),
        ("transpose", "f32[2,3]", "dimensions={0,0}", [], "not a permutation"),
        ("transpose", "f32[2,3]", "", [], "attribute dimensions is expected but not seen"),
        ("pad", "f32[2], f32[]", "padding=0_-3", [], "negative size"),
        ("reduce", "f32[2], f32[]", "dimensions={1}", [ADD], "out-of-bounds dimension 1"),
        ("reduce", "f32[2], f32[]", "dimensions={0}", [GREATER], "parameter shape differs"),
        ("reduce-window", "f32[2], f32[]", "window={size=2x2}", [ADD], "Window has dimension 2"),
        ("cholesky", "f32[2,3]", "", [], "must have compatible size"),
        ("topk", "f32[3]", "k=4", [], "larger than the last dimension"),
        ("opt-barrier", "f32[3]", "", [], "cannot infer shape for opcode: opt-barrier"),
        ("broadcast", "f32[?]", "dimensions={2}", [], "unbounded"),
        ("broadcast", "f32[2]", "", [], "attribute dimensions is expected"),
        ("clamp", "f32[2], f32[?], f32[3]", "", [], "Clamp with incompatible shapes"),
        ("call", "f32[2]", "", ["(b(f32[2])) -> f32[]"], "parameter must match argument"),
        ("add-dependency", "f32[2]", "", [], "expects 2 operands"),
        ("get-dimension-size", "f32[3000000000]", "dimensions={0}", [], "largest s32"),
        (
            "reduce",
            "s32[2], f32[]",
            "dimensions={0}",
            ["(f32[], s32[]) -> f32[]"],
            "must match the",
        ),
        ("map", "f32[2], f32[1]", "dimensions={0}", [ADD], "the same shape"),
        ("fft", "c64[?,3]", "fft_type=IRFFT, fft_length={4,4}", [], "match fft_length"),
        ("scan", "f32[3]", "dimensions={0}, num_carries=0", [ADD], "number of parameters"),
        (
            *("triangular-solve", "f32[?,3,3], f32[2,3,4]"),
            *("left_side=true, transpose_a=TRANSPOSE", [], "leading batch dimensions"),
        ),
        (
            *("convolution", "f32[1,8], f32[8,?]", "dim_labels=bf_io->bf", []),
            "Dynamic output feature dim",
        ),
        ("convolution", "f32[1,8], f32[?,1]", "dim_labels=bf_io->bf", [], "LHS feature dimension"),
        ("convolution", "f32[1,8], (f32[8,1])", "dim_labels=bf_io->bf", [], "must have 2 elements"),
        (
            *("convolution", "f32[1,8], f32[6,1]"),
            *(
                "dim_labels=bf_io->bf, sparsity_config={rhs={sparsity=3x4}}",
                [],
                "Only 1:N sparsity",
            ),
        ),
        (
            *("scatter", "f32[?], s32[5,1], f32[5,6]"),
            "update_window_dims={1}, inserted_window_dims={}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
            *([ADD], "must not exceed the bounds"),
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    opcode: str, operands: str, attributes: str, called: list[str], message: str
) -> None:
    with pytest.raises(HloError, match=message):
        infer(opcode, operands, attributes, called)


def test_nested_results_of_branches_merge_without_recursion() -> None:
    depth = 1500
    nested = "(" * depth + "f32[2]" + ")" * depth
    dynamic = nested.replace("[2]", "[<=2]")
    branches = [function(f"(f32[]) -> {shape}") for shape in (nested, dynamic)]
    operands = parse_shape("(pred[], f32[], f32[])").elements
    result = infer_shape(OPCODES["conditional"], operands, {}, branches)
    assert result is parse_shape(dynamic)


def test_every_rule_that_is_named_exists() -> None:
    from hloopt.ir import shape_inference

    for opcode in shape_inference._RULES_BY_NAME:
        assert callable(shape_inference._find_rule(opcode)), opcode
    for opcode in shape_inference._STATED_RULES_BY_NAME:
        assert callable(shape_inference._find_stated_rule(opcode)), opcode
