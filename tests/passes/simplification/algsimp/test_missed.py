"""The reasons for which rules of algsimp leave alone what their patterns fit."""

from __future__ import annotations

import pytest
from tests.passes.simplification.algsimp.programs import missed

from hloopt.diagnostics import PipelineError
from hloopt.pass_framework.registry import create_pass

_P = "p = f32[4] parameter(0) "
_Q = "q = f32[4] parameter(1) "
_S = "s = s32[4] parameter(0) "
_C = "c = c64[4] parameter(0) "
_FAST = "it would ignore NaN, infinity and rounding: enable_fast_math is off"
_NEGATIVE = "%p may be negative"

ARITHMETIC = [
    (
        "it would ignore rounding: enable_fast_math is off",
        f"{_P}{_Q}d = f32[4] subtract(q, p) ROOT r = f32[4] add(p, d)",
    ),
    (
        "%k is not a power of two",
        f"{_P}{_Q}k = f32[4] parameter(2) a = f32[4] multiply(p, k) b = f32[4] multiply(q, k) "
        "ROOT r = f32[4] add(a, b)",
    ),
    (
        "%a may be NaN, which is not at least 0",
        f"{_P}a = f32[4] abs(p) z = f32[] constant(0) b = f32[4] broadcast(z), dimensions={{}} "
        "ROOT r = pred[4] compare(a, b), direction=GE",
    ),
    (
        "it orders -0 and NaN, too",
        f"{_P}a = f32[4] abs(p) z = f32[] constant(0) b = f32[4] broadcast(z), dimensions={{}} "
        "ROOT r = pred[4] compare(a, b), direction=LT, type=TOTALORDER",
    ),
    ("it divides by 0", "p = f32[] parameter(0) z = f32[] constant(0) ROOT r = f32[] divide(p, z)"),
    (
        "1 / 3e+38 is out of range",
        "p = f32[] parameter(0) z = f32[] constant(3e38) ROOT r = f32[] divide(p, z)",
    ),
    (
        "%i plus 5 may overflow",
        "i = s8[126] iota(), iota_dimension=0 k = s8[] constant(5) "
        "b = s8[126] broadcast(k), dimensions={} a = s8[126] add(i, b) "
        "ROOT r = s8[126] remainder(a, b)",
    ),
    (_FAST, f"{_P}e = f32[4] exponential(p) ROOT r = f32[4] log(e)"),
    (_FAST, f"{_P}m = f32[4] multiply(p, p) ROOT r = f32[4] sqrt(m)"),
    (_FAST, f"{_P}ROOT r = f32[4] subtract(p, p)"),
    (_FAST, f"{_P}{_Q}d = f32[4] subtract(p, q) ROOT r = f32[4] subtract(p, d)"),
    (_FAST, f"{_P}{_Q}d = f32[4] add(p, q) ROOT r = f32[4] subtract(p, d)"),
    (_FAST, f"{_P}{_Q}d = f32[4] add(q, p) ROOT r = f32[4] subtract(d, p)"),
    (
        "powers of complex numbers have branches",
        f"{_C}d = c64[4] parameter(1) e = c64[4] exponential(c) ROOT r = c64[4] power(e, d)",
    ),
    (
        _NEGATIVE,
        "p = f32[] parameter(0) h = f32[] constant(0.5) ROOT r = f32[] power(p, h)",
    ),
    (
        _NEGATIVE,
        "p = f32[] parameter(0) k = f32[] constant(-2) w = f32[] power(p, k) "
        "ROOT r = f32[] rsqrt(w)",
    ),
    (
        _NEGATIVE,
        "p = f32[] parameter(0) k = f32[] constant(1) w = f32[] divide(k, p) "
        "ROOT r = f32[] rsqrt(w)",
    ),
    (_NEGATIVE, f"{_P}q = f32[4] sqrt(p) ROOT r = f32[4] multiply(q, q)"),
    (_NEGATIVE, f"{_P}q = f32[4] rsqrt(p) ROOT r = f32[4] multiply(q, q)"),
    (
        "the square of a complex number has two roots",
        f"{_C}m = c64[4] multiply(c, c) ROOT r = c64[4] sqrt(m)",
    ),
    (
        "3.0 is not less than 2.0",
        "p = f32[] parameter(0) h = f32[] constant(2) l = f32[] constant(3) "
        "m = f32[] minimum(p, h) ROOT r = f32[] maximum(m, l)",
    ),
    (
        "its bounds are not constants",
        "p = f32[] parameter(0) l = f32[] parameter(1) h = f32[] parameter(2) "
        "c = f32[] clamp(l, p, h) ROOT r = f32[] maximum(l, c)",
    ),
    (
        "3.0 is more than 2.0",
        "p = f32[] parameter(0) l = f32[] constant(3) h = f32[] constant(2) "
        "c = f32[] clamp(l, p, h) ROOT r = f32[] maximum(l, c)",
    ),
    (
        "it would ignore NaN and infinity: enable_fast_math is off",
        "p = f32[] parameter(0) z = f32[] constant(0) ROOT r = f32[] multiply(p, z)",
    ),
    ("%c is complex", f"{_C}a = f32[4] abs(c) ROOT r = f32[4] multiply(a, a)"),
]
_NAN = {"minmax_propagate_nan": False}
WITH_OPTIONS = [
    (
        "a maximum or minimum of NaN may be a number: minmax_propagate_nan is off",
        f"{_P}{_Q}m = f32[4] maximum(p, q) ROOT r = pred[4] compare(m, p), direction=GT",
        _NAN,
    ),
    (
        "it would keep NaN: minmax_propagate_nan is off",
        "p = f32[] parameter(0) l = f32[] constant(-inf) ROOT r = f32[] maximum(p, l)",
        _NAN,
    ),
    (
        "%f is not along the output features",
        "i = f32[5,3,3,1] parameter(0) "
        "k = f32[2,2,1,2] constant({{{{1,2}},{{3,4}}},{{{5,6}},{{7,8}}}}) "
        "v = f32[5,2,2,2] convolution(i, k), window={size=2x2}, dim_labels=b01f_01io->b01f "
        "b = f32[5,2,2,2] parameter(1) a = f32[5,2,2,2] add(v, b) f = f32[2] constant({1, 3}) "
        "w = f32[5,2,2,2] broadcast(f), dimensions={2} ROOT r = f32[5,2,2,2] multiply(a, w)",
        {"enable_conv_add_multiply_reorder": True},
    ),
    (
        "elements of s4[5,2]{1,0:E(8)} are not packed",
        "p = s4[5,2]{1,0:E(8)} parameter(0) ROOT r = s8[5]{0} bitcast-convert(p)",
        {"is_layout_sensitive": True, "rewrite_no_op_bitcast_convert_to_bitcast": True},
    ),
    (
        "one of the copies goes to the host, or comes from there",
        "p = f32[4]{0} parameter(0) h = f32[4]{0:S(5)} copy(p) ROOT r = f32[4]{0} copy(h)",
        {"is_layout_sensitive": True},
    ),
    (
        "the copies are between memory spaces",
        "p = f32[4]{0} parameter(0) h = f32[4]{0:S(1)} copy(p) ROOT r = f32[4]{0:S(2)} copy(h)",
        {"is_layout_sensitive": True},
    ),
    (
        "the outer reshape does more than merging dimensions",
        "p = f32[200] parameter(0) a = f32[10,20] reshape(p) "
        "t = f32[20,10] transpose(a), dimensions={1,0} ROOT r = f32[5,4,10] reshape(t)",
        {"enable_hoist_transpose_of_reshape": True},
    ),
    (
        "it merges dimensions that are apart before the transpose",
        "p = f32[10,6,4] parameter(0) a = f32[10,2,3,4] reshape(p) "
        "t = f32[10,3,2,4] transpose(a), dimensions={0,2,1,3} ROOT r = f32[30,2,4] reshape(t)",
        {"enable_hoist_transpose_of_reshape": True},
    ),
    (
        "the pieces differ in size",
        "p = f32[4,2] parameter(0) q = f32[3,2] parameter(1) z = f32[] constant(0) "
        "j = f32[7,2] concatenate(p, q), dimensions={0} "
        "ROOT r = f32[2] reduce(j, z), dimensions={0}, to_apply=add",
        {"enable_unconditional_reduce_of_concat_replacement": False},
    ),
    (
        "%k is to stay on the right",
        "p = f32[2,3] parameter(0) a = f32[2,3] add(p, p) k = f32[3,4] parameter(1) "
        "d = f32[2,4] dot(a, k), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
        "ROOT r = f32[4,2] transpose(d), dimensions={1,0}",
        {"enable_move_dot_param_to_rhs": True},
    ),
    (
        "%d has negative padding",
        "p = f32[9] parameter(0) z = f32[] constant(0) d = f32[9] pad(p, z), padding=1_-1 "
        "n = f32[9] negate(d) w = f32[8] reduce-window(d, z), window={size=2}, to_apply=add "
        "ROOT r = (f32[9], f32[8]) tuple(n, w)",
        {"enable_negative_padding_replacement": False},
    ),
    (
        "it keeps results only up to 'rounding'",
        "p = f32[] parameter(0) c = f32[] constant(3) ROOT r = f32[] divide(p, c)",
        {"preserve": "bits"},
    ),
]
_SUM = "dimensions={0}, to_apply=add"
REST = [
    (
        "its computation is more than one operation on parameters",
        f"{_P}ROOT r = f32[4] map(p), dimensions={{0}}, to_apply=twice",
    ),
    (
        "it is used as a whole",
        f"{_P}{_Q}t = (f32[4], f32[4]) tuple(p, q) b = (f32[4], f32[4]) opt-barrier(t) "
        "x = f32[4] get-tuple-element(b), index=0 "
        "ROOT r = (f32[4], (f32[4], f32[4])) tuple(x, b)",
    ),
    (
        "it is no sum, minimum or maximum",
        "c = f32[] constant(3) b = f32[4] broadcast(c), dimensions={} "
        "ROOT r = f32[4] all-reduce(b), replica_groups={{0,1}}, to_apply=mul",
    ),
    (
        "the size of its groups is not known",
        "c = f32[] constant(3) b = f32[4] broadcast(c), dimensions={} "
        "ROOT r = f32[4] all-reduce(b), replica_groups={}, to_apply=add",
    ),
    (
        "bf16 does not hold all values of f32",
        f"{_P}h = bf16[4] convert(p) ROOT r = f32[4] convert(h)",
    ),
    (
        "a quotient of signed integers may not fit the narrow type",
        "p = s8[] parameter(0) q = s8[] parameter(1) a = s32[] convert(p) b = s32[] convert(q) "
        "d = s32[] divide(a, b) ROOT r = s8[] convert(d)",
    ),
    (
        "there are control dependencies",
        "p = f32[10,20] parameter(0) b = f32[200] bitcast(p) n = f32[200] negate(b), "
        "control-predecessors={b} ROOT r = f32[20,10] bitcast(n)",
    ),
    (
        "%n changes the layout",
        "p = f32[10,20]{1,0} parameter(0) b = f32[10,20]{0,1} bitcast(p) "
        "n = f32[10,20]{1,0} negate(b) ROOT r = f32[20,10]{1,0} bitcast(n)",
    ),
    (
        "it has control predecessors",
        "p = f32[4] parameter(0) n = f32[4] negate(p) b = f32[1,4] bitcast(p) "
        "ROOT r = f32[4,1] bitcast(b), control-predecessors={n}",
    ),
    (
        "it is the root of the entry and has a sharding",
        f"{_P}ROOT r = f32[4] copy(p), sharding={{replicated}}",
    ),
    (
        "%o does not hold all offsets",
        "i = s32[300] iota(), iota_dimension=0 o = u8[] parameter(0) "
        "ROOT r = s32[1] dynamic-slice(i, o), dynamic_slice_sizes={1}",
    ),
    (
        "the offsets have different types",
        "x = f32[9] parameter(0) i = s32[] parameter(1) j = u32[] parameter(2) "
        "d = f32[5] dynamic-slice(x, i), dynamic_slice_sizes={5} "
        "ROOT r = f32[2] dynamic-slice(d, j), dynamic_slice_sizes={2}",
    ),
    (
        "the offsets have different types",
        "x = f32[9] parameter(0) i = s32[] parameter(1) j = u32[] parameter(2) "
        "c = f32[2] parameter(3) d = f32[5] dynamic-slice(x, i), dynamic_slice_sizes={5} "
        "u = f32[5] dynamic-update-slice(d, c, j) ROOT r = f32[9] dynamic-update-slice(x, u, i)",
    ),
    (
        "%h moves the update to the host",
        "z = f32[] constant(0) b = f32[9] broadcast(z), dimensions={} p = f32[2] parameter(0) "
        'h = f32[2] custom-call(p), custom_call_target="MoveToHost" i = s32[] constant(1) '
        "ROOT r = f32[9] dynamic-update-slice(b, h, i)",
    ),
    (
        "bf16 does not hold all numbers up to the size",
        "i = bf16[600] iota(), iota_dimension=0 ROOT r = bf16[30,20] reshape(i)",
    ),
    (
        "it splits a dimension into more than 5 parts",
        "p = f32[8,14,14,96] parameter(0) a = f32[8,14,14,6,16] reshape(p) "
        "t = f32[8,14,6,14,16] transpose(a), dimensions={0,1,3,2,4} "
        "ROOT r = f32[8,84,14,16] reshape(t)",
    ),
    (
        "it takes elements of %p and padding",
        f"{_P}z = f32[] constant(0) d = f32[8] pad(p, z), padding=2_2 "
        "ROOT r = f32[4] slice(d), slice={[1:5]}",
    ),
    (
        "there are strides",
        f"{_P}a = f32[2] slice(p), slice={{[0:4:2]}} ROOT r = f32[1] slice(a), slice={{[1:2]}}",
    ),
    (
        "the part is no range of the first dimension of %p",
        "p = f32[4,3] parameter(0) a = f32[12] reshape(p) ROOT r = f32[4] slice(a), slice={[4:8]}",
    ),
    (
        "its reducer may not ignore the initial value",
        "p = f32[4,1] parameter(0) z = f32[] constant(5) "
        "ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add",
    ),
    (
        "its reducer may not ignore the initial value",
        "p = f32[] parameter(0) z = f32[] constant(5) "
        "ROOT r = f32[] reduce-window(p, z), window={}, to_apply=add",
    ),
    (
        "the reducers differ",
        "p = f32[4,5] parameter(0) z = f32[] constant(0) a = f32[5] reduce(p, z), "
        f"{_SUM} ROOT r = f32[] reduce(a, z), dimensions={{0}}, to_apply=max",
    ),
    (
        "70000.0 is out of the range of f16",
        "p = f16[] parameter(0) b = f16[70000] broadcast(p), dimensions={} z = f16[] constant(0) "
        "ROOT r = f16[] reduce(b, z), dimensions={0}, to_apply=add_f16",
    ),
    (
        "%v is not known to be the initial value",
        f"{_P}v = f32[] parameter(1) z = f32[] constant(0) d = f32[6] pad(p, v), padding=1_1 "
        "ROOT r = f32[5] reduce-window(d, z), window={size=2}, to_apply=add",
    ),
    (
        "%v is not known to be the initial value",
        f"{_P}v = f32[] constant(0) z = f32[] constant(-0) d = f32[6] pad(p, v), padding=1_1 "
        "ROOT r = f32[5] reduce-window(d, z), window={size=2}, to_apply=add",
    ),
    (
        "%z is combined once for each padded element",
        f"{_P}z = f32[] constant(5) d = f32[6] pad(p, z), padding=1_1 "
        "ROOT r = f32[5] reduce-window(d, z), window={size=2}, to_apply=add",
    ),
    (
        "there are interior padding and base dilation",
        f"{_P}z = f32[] constant(0) d = f32[7] pad(p, z), padding=0_0_1 "
        "ROOT r = f32[12] reduce-window(d, z), window={size=2 lhs_dilate=2}, to_apply=add",
    ),
    (
        "%d adds too little",
        "p = f16[99] parameter(0) z = f16[] constant(0) d = f16[101] pad(p, z), padding=1_1 "
        "y = f32[] constant(0) c = f32[101] convert(d) "
        "ROOT r = f32[100] reduce-window(c, y), window={size=2}, to_apply=add",
    ),
    (
        "its algorithm is dot_tf32_tf32_f32",
        "a = f32[4] parameter(0) b = f32[4] parameter(1) "
        "ROOT r = f32[4,4] dot(a, b), algorithm=dot_tf32_tf32_f32",
    ),
    (
        "its algorithm is dot_tf32_tf32_f32",
        "a = f32[4] parameter(0) b = f32[4] parameter(1) "
        "ROOT r = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
        "algorithm=dot_tf32_tf32_f32",
    ),
    (
        "%t moves other dimensions",
        "p = f32[3,2,2] parameter(0) t = f32[2,3,2] transpose(p), dimensions={1,0,2} "
        "x = f32[2,6] reshape(t) c = f32[6,2] constant({{1,2},{3,4},{5,6},{7,8},{9,1},{2,3}}) "
        "ROOT r = f32[2,2] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    (
        "%d does not span the contracting dimension",
        "c = f32[3,2] constant({{1,2},{3,4},{5,6}}) i = s32[] parameter(0) j = s32[] parameter(1) "
        "d = f32[2,2] dynamic-slice(c, i, j), dynamic_slice_sizes={2,2} "
        "k = f32[2,2] constant({{1,2},{3,5}}) "
        "ROOT r = f32[2,2] dot(d, k), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    ),
    (
        "%d is no vector",
        "c = f32[2,3] constant({{1,2,3},{4,5,6}}) i = s32[] parameter(0) j = s32[] parameter(1) "
        "d = f32[2,2] dynamic-slice(c, i, j), dynamic_slice_sizes={2,2} "
        "k = f32[2,2] constant({{1,2},{3,5}}) "
        "ROOT r = f32[2,2] dot(d, k), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    ),
    (
        "%i is negative",
        "p = f32[4] parameter(0) i = s32[] constant(-1) "
        "ROOT r = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}",
    ),
    (
        "their indices differ in more than one dimension, or are all of batches",
        "p = f32[90] parameter(0) i = s32[2,4,1] parameter(1) u = f32[2,4] parameter(2) "
        "j = s32[3,5,1] parameter(3) v = f32[3,5] parameter(4) "
        "a = f32[90] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=add "
        "b = f32[90] scatter(p, j, v), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=add "
        "ROOT r = f32[90] add(a, b)",
    ),
    (
        "the transposes move batch dimensions behind others",
        "a = f32[3,2,4] parameter(0) b = f32[4,2,5] parameter(1) "
        "x = f32[2,3,4] transpose(a), dimensions={1,0,2} "
        "y = f32[2,4,5] transpose(b), dimensions={1,0,2} ROOT r = f32[2,3,5] dot(x, y), "
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={1}",
    ),
    (
        "it has control dependencies, which a new instruction does not get",
        "p = f32[] parameter(0) n = f32[] negate(p) "
        "ROOT r = f32[] power(p, n), control-predecessors={n}".replace("n), ", "k), ").replace(
            "ROOT", "k = f32[] constant(2) ROOT"
        ),
    ),
    (
        "the layout of %p differs, and a user depends on it",
        "p = f32[2,3]{1,0} parameter(0) c = f32[2,3]{0,1} copy(p) ROOT r = f32[6]{0} bitcast(c)",
    ),
]


@pytest.mark.parametrize(("reason", "body"), [*ARITHMETIC, *REST])
def test_a_reason_to_stay(reason: str, body: str) -> None:
    assert reason in missed(body, {})


@pytest.mark.parametrize(("reason", "body", "options"), WITH_OPTIONS)
def test_a_reason_of_an_option(reason: str, body: str, options: dict[str, object]) -> None:
    assert reason in missed(body, options)


def test_a_rule_that_is_not_there_cannot_be_left_out() -> None:
    with pytest.raises(PipelineError, match="algsimp has no rule 'add-zeros'") as error:
        create_pass("algsimp", {"disable_rules": ["add-zeros"]})
    assert error.value.help == "did you mean 'add-zero'?"
