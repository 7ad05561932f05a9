"""Shapes that are stated, against operands, attributes and called computations."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.ir.signatures import ADD, function

from hloopt.diagnostics import HloError
from hloopt.ir import Opcode, parse_shape
from hloopt.ir.attributes.text import split_attributes
from hloopt.ir.opcode import OPCODES
from hloopt.ir.shape_inference import check_shape, infer_stated_shape

LESS = "(f32[], f32[]) -> pred[]"
STEP = "(f32[2], s32[2]) -> (f32[2], s32[2])"

Question = tuple[str, str, str, str, list[str]]

DECIDED: list[Question] = [
    ("add", "f32[2]{0:S(1)}", "f32[2], f32[2]", "", []),
    ("dot", "f32[]", "bf16[2], bf16[2]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}", []),
    ("convert", "s8[2]", "f32[2]", "", []),
    ("bitcast-convert", "u8[2,4]", "f32[2]", "", []),
    ("broadcast", "f32[3,2]", "f32[2]", "dimensions={1}", []),
    ("reshape", "f32[3,2]", "f32[6]", "", []),
    ("slice", "f32[2]", "f32[6]", "slice={[1:4:2]}", []),
    ("dynamic-slice", "f32[2,6]", "f32[8,6], s32[], s32[]", "dynamic_slice_sizes={2,6}", []),
    ("dynamic-update-slice", "f32[8]", "f32[8], f32[3], s32[]", "", []),
    ("all-reduce", "f32[8]", "f32[8]", "replica_groups={}", [ADD]),
    ("all-gather", "f32[4,8]", "f32[2,8]", "dimensions={0}, replica_groups={{0,1}}", []),
    ("all-gather", "f32[8]", "f32[2]", "dimensions={0}, replica_groups={}", []),
    (
        *("all-gather-start", "(f32[2], f32[4])", "f32[2]"),
        *("dimensions={0}, replica_groups={{0,1}}", []),
    ),
    ("all-gather-done", "f32[4]", "(f32[2], f32[4])", "", []),
    ("reduce-scatter", "f32[4]", "f32[8]", "dimensions={0}, replica_groups={{0,1}}", [ADD]),
    ("all-to-all", "(f32[4], f32[4])", "f32[4], f32[4]", "replica_groups={{0,1}}", []),
    ("collective-permute", "f32[8]", "f32[8]", "source_target_pairs={{0,1}}", []),
    ("copy-start", "(f32[2]{0:S(5)}, f32[2], u32[])", "f32[2]", "", []),
    (
        *("convolution", "f32[2,9,5]", "f32[2,9,8], f32[8,3,5]"),
        *("window={size=3 pad=1_1}, dim_labels=b0f_i0o->b0f, convolution_kind=dgrad", []),
    ),
    (
        *("convolution", "f32[2,9,5]", "f32[2,9,8], f32[8,3,5]"),
        *("window={size=3 pad=1_1}, dim_labels=b0f_o0i->b0f, convolution_kind=dgrad", []),
    ),
]
"""Arrays and tuples that operands and attributes decide."""

FITTING: list[Question] = [
    *DECIDED,
    ("custom-call", "f32[7]", "f32[2]", "", []),
    ("send", "(f32[2], u32[], token[])", "f32[2], token[]", "channel_id=1", []),
    ("send-done", "token[]", "(f32[2], u32[], token[])", "channel_id=1", []),
    ("recv", "(f32[2], u32[], token[])", "token[]", "channel_id=1", []),
    ("recv-done", "(f32[2], token[])", "(f32[2], u32[], token[])", "channel_id=1", []),
    ("infeed", "((f32[2], s32[]), token[])", "token[]", "", []),
    ("outfeed", "token[]", "f32[2], token[]", "outfeed_shape=f32[2]{0:S(1)}", []),
    ("outfeed", "token[]", "f32[2], token[]", "", []),
    ("bitcast", "f32[3,2]", "f32[6]", "", []),
    ("dynamic-reshape", "f32[<=3,2]", "f32[6], s32[], s32[]", "", []),
    ("rng", "f32[2,3]", "f32[], f32[]", "distribution=rng_uniform", []),
    ("rng-bit-generator", "(u64[2], u32[8])", "u64[2]", "algorithm=rng_default", []),
    ("rng-bit-generator", "u32[8]", "u64[2]", "algorithm=rng_default", []),
    ("rng-get-and-update-state", "u64[2]", "", "delta=1", []),
    ("reduce-precision", "f32[2]", "f32[2]", "exponent_bits=5, mantissa_bits=0", []),
    ("sort", "f32[2,3]", "f32[2,3]", "dimensions={1}", [LESS]),
    ("scan", "(f32[3,2], s32[2])", "f32[3,2], s32[2]", "dimensions={0}, num_carries=1", [STEP]),
    ("dynamic-update-slice", "f32[8]", "f32[8], f32[3], s64[1]", "", []),
    ("add-dependency", "f32[2]", "f32[2], token[]", "", []),
    (
        *("reduce-scatter", "f32[4]", "f32[8]"),
        *("dimensions={0}, replica_groups={{0}}", [ADD]),
    ),
    ("all-gather", "f32[8]", "f32[4]", "dimensions={0}, replica_groups={{0}}", []),
    ("all-to-all", "f32[?]", "f32[?]", "dimensions={0}, replica_groups={{0,1}}", []),
]

MISFITS: list[tuple[str, str, str, str, list[str], str]] = [
    ("send", "(f32[3], u32[], token[])", "f32[2], token[]", "", [], r"equal to \(f32\[2\], u32"),
    ("send", "(f32[2], u32[], token[])", "f32[2]", "", [], "expects 2 operands"),
    ("recv", "f32[2]", "token[]", "", [], "a tuple of data and a token"),
    ("recv-done", "(f32[2], token[])", "f32[2]", "", [], "must be a recv"),
    ("recv-done", "(f32[3], token[])", "(f32[2], u32[], token[])", "", [], "equal to"),
    ("infeed", "(f32[2], token[])", "f32[2]", "", [], "operand 0 to be token-shaped"),
    ("infeed", "(f32[2], f32[])", "token[]", "", [], "equal to"),
    ("outfeed", "token[]", "f32[2], token[]", "outfeed_shape=f32[3]", [], "outfeed shape to be"),
    ("outfeed", "token[]", "f32[2], f32[]", "", [], "operand 1 to be token-shaped"),
    ("bitcast", "f32[2]", "", "", [], "expects 1 operands"),
    ("dynamic-reshape", "f32[<=3,2]", "f32[6], s32[]", "", [], "expects 3 operands"),
    ("dynamic-reshape", "f32[<=4,2]", "f32[6], s32[], s32[]", "", [], "mismatched element counts"),
    ("dynamic-reshape", "f32[<=3,2]", "f32[6], s32[], s64[]", "", [], "must be s32"),
    ("rng", "f32[2]", "f32[], f32[2]", "", [], "Expected scalar types"),
    ("rng", "s32[2]", "f32[], f32[]", "", [], "equal to f32"),
    ("rng-bit-generator", "(u64[3], u32[8])", "u64[2]", "", [], "state shape to match"),
    ("rng-bit-generator", "(u64[2], u32[], u32[])", "u64[2]", "", [], "tuple shape with 2"),
    ("rng-get-and-update-state", "u64[1]", "", "delta=1", [], r"equal to u64\[2\]"),
    ("reduce-precision", "s32[]", "s32[]", "exponent_bits=5, mantissa_bits=0", [], "floating"),
    ("reduce-precision", "f32[]", "f32[]", "exponent_bits=0, mantissa_bits=0", [], "exponent_bits"),
    ("reduce-precision", "f32[]", "f32[]", "exponent_bits=1, mantissa_bits=-1", [], "mantissa"),
    ("stochastic-convert", "s8[4]", "f32[<=4], u32[4]", "", [], "differ in size"),
    ("add", "f32[4]", "f32[4], f32[]", "", [], "Implicit broadcast is not allowed"),
    ("compare", "pred[4]", "f32[1], f32[4]", "direction=EQ", [], "Implicit broadcast"),
    ("sort", "f32[3]", "f32[3]", "dimensions={1}", [LESS], "sort_dimension 1"),
    ("sort", "(f32[3])", "(f32[3])", "dimensions={0}", [LESS], "Expected array argument"),
    ("sort", "s32[3]", "s32[3]", "dimensions={0}", [LESS], "0-th parameter"),
    ("sort", "f32[3]", "f32[3]", "dimensions={0}", [ADD], "scalar predicate shape"),
    ("sort", "(f32[3], f32[3])", "f32[3], f32[3]", "dimensions={0}", [LESS], "4 parameters"),
    (
        *("scan", "(f32[3,2], s32[2])", "f32[3,2], s32[3]", "dimensions={0}, num_carries=1"),
        *([STEP], "Shapes of operand 1 and to_apply"),
    ),
    (
        *("scan", "(f32[3,2], s32[2])", "f32[2,3], s32[2]", "dimensions={0}, num_carries=1"),
        *([STEP], "Shapes of operand 0 and to_apply"),
    ),
    (
        *("scan", "(f32[3,2], s32[2])", "f32[3,2], s32[4]", "dimensions={0}, num_carries=1"),
        *(["(f32[2], s32[4]) -> (f32[2], s32[2])"], "Shapes of parameter 1 and root"),
    ),
    ("dynamic-update-slice", "f32[8]", "f32[8], s32[3], s32[]", "", [], "element type"),
    (
        *("dynamic-slice", "f32[1,1]", "f32[8,6], s32[], s64[]"),
        *("dynamic_slice_sizes={1,1}", [], "all have the same shape"),
    ),
    ("add-dependency", "f32[2]", "f32[2], f32[]", "", [], "waits for a token"),
    ("all-gather", "f32[9]", "f32[4]", "dimensions={0}, replica_groups={{0}}", [], "equal to"),
    ("all-to-all", "f32[4]", "f32[<=4]", "dimensions={0}, replica_groups={{0,1}}", [], "bounded"),
]


def check(opcode: str, stated: str, operands: str, attributes: str, called: Sequence[str]) -> None:
    check_shape(
        OPCODES[opcode],
        parse_shape(stated),
        parse_shape(f"({operands})").elements,
        split_attributes(attributes),
        [function(signature) for signature in called],
    )


@pytest.mark.parametrize("question", FITTING, ids=lambda question: question[0])
def test_a_stated_shape_that_fits_passes(question: Question) -> None:
    check(*question)


@pytest.mark.parametrize(
    ("opcode", "stated", "operands", "attributes", "called", "message"), MISFITS
)
def test_a_stated_shape_that_does_not_fit_is_refused(
    opcode: str, stated: str, operands: str, attributes: str, called: list[str], message: str
) -> None:
    with pytest.raises(HloError, match=message):
        check(opcode, stated, operands, attributes, called)


@pytest.mark.parametrize(("opcode", "stated", "operands", "attributes", "called"), DECIDED)
def test_a_stated_shape_of_other_sizes_is_refused(
    opcode: str, stated: str, operands: str, attributes: str, called: list[str]
) -> None:
    with pytest.raises(HloError):
        check(opcode, "f32[7,7,7]", operands, attributes, called)


def test_only_the_gradient_of_the_data_may_swap_the_features_of_the_kernel() -> None:
    question = ("convolution", "f32[2,9,5]", "f32[2,9,8], f32[8,3,5]")
    attributes = "window={size=3 pad=1_1}, dim_labels=b0f_o0i->b0f, convolution_kind=wgrad"
    with pytest.raises(HloError, match=r"LHS feature dimension \(value 8\)"):
        check(*question, attributes, [])


def test_precision_may_differ_only_on_request() -> None:
    operands = parse_shape("(bf16[2], bf16[2])").elements
    check_shape(OPCODES["add"], parse_shape("f32[2]"), operands, {}, any_precision=True)
    with pytest.raises(HloError, match="Expected instruction to have shape equal to bf16"):
        check_shape(OPCODES["add"], parse_shape("f32[2]"), operands, {})


def test_what_operands_leave_open_is_taken_from_the_stated_shape() -> None:
    operands = parse_shape("(f32[<=2,3])").elements
    inferred = infer_stated_shape(OPCODES["convert"], parse_shape("s8[7]"), operands, {})
    assert inferred is parse_shape("s8[<=2,3]")


def test_every_opcode_with_operands_has_a_rule() -> None:
    from hloopt.ir.shape_inference import _find_stated_rule

    without = {opcode for opcode in Opcode if not _find_stated_rule(opcode)}
    # Of these the literal, the signature of the module, the target and the wrapped computation
    # decide.
    assert without == {
        *(Opcode.CONSTANT, Opcode.PARAMETER, Opcode.CUSTOM_CALL),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
    }
