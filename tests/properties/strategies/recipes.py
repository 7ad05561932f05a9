"""Instructions of every opcode, as recipes that `every_opcode` puts together.

A recipe is a few lines `label: shape opcode(…)attributes`. In it `<shape>` is any earlier value of
that shape, `#label` an earlier line of the recipe, and `@name` a computation of CALLEES.
"""

from __future__ import annotations

A, S, M, B = "f32[4]{0}", "f32[]", "f32[4,4]{1,0}", "pred[]"
N, U = "s32[4]{0}", "u32[4]{0}"

_UNARY = (
    *("abs", "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "ceil", "copy", "cosh", "cosine"),
    *("erf", "exponential", "exponential-minus-one", "floor", "log", "log-plus-one", "logistic"),
    *("negate", "round-nearest-afz", "round-nearest-even", "rsqrt", "sign", "sine", "sinh"),
    *("sqrt", "tan", "tanh", "bitcast", "opt-barrier"),
)
_BINARY = (
    *("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder"),
    "subtract",
)
_INTEGER = (
    *("and", "or", "xor", "mulhi", "shift-left", "shift-right-arithmetic"),
    "shift-right-logical",
)

RECIPES: tuple[str, ...] = (
    *(f"x: {shape} {opcode}(<{shape}>)" for opcode in _UNARY for shape in (A, S)),
    *(f"x: {A} {opcode}(<{A}>, <{A}>)" for opcode in _BINARY),
    *(f"x: {shape} {opcode}(<{shape}>, <{shape}>)" for opcode in _INTEGER for shape in (N, U)),
    *(f"x: {N} {opcode}(<{N}>)" for opcode in ("not", "popcnt", "count-leading-zeros")),
    f"x: {A} tanh(<{A}>), result_accuracy={{tolerance={{atol=0.1,rtol=0.2,ulps=3}}}}",
    f"x: pred[4]{{0}} is-finite(<{A}>)",
    f"x: pred[4]{{0}} compare(<{A}>, <{A}>), direction=LT, type=TOTALORDER",
    f"x: {B} compare(<{S}>, <{S}>), direction=GE",
    f"x: c64[4]{{0}} complex(<{A}>, <{A}>)\ny: {A} real(#x)\nz: {A} imag(#x)",
    f"x: {N} convert(<{A}>)\ny: {A} bitcast-convert(#x)",
    f"x: bf16[4]{{0}} stochastic-convert(<{A}>, <{U}>)",
    f"x: {A} reduce-precision(<{A}>), exponent_bits=5, mantissa_bits=10",
    f"x: {A} select(<pred[4]{{0}}>, <{A}>, <{A}>)",
    f"x: {A} clamp(<{S}>, <{A}>, <{S}>)",
    f"x: {M} broadcast(<{A}>), dimensions={{1}}",
    f"x: {A} broadcast(<{S}>), dimensions={{}}",
    f"x: f32[16]{{0}} reshape(<{M}>)\ny: {M} reshape(#x)",
    f"x: f32[4,4]{{0,1}} transpose(<{M}>), dimensions={{1,0}}\ny: {M} copy(#x)",
    f"x: f32[4,4]{{1,0:T(8,128)(2,1)S(1)}} copy(<{M}>)\ny: {M} copy(#x)",
    f"x: {M} reverse(<{M}>), dimensions={{0,1}}",
    f"x: f32[8]{{0}} concatenate(<{A}>, <{A}>), dimensions={{0}}",
    f"x: f32[2]{{0}} slice(<{A}>), slice={{[0:4:2]}}",
    f"x: f32[2,4]{{1,0}} dynamic-slice(<{M}>, <s32[]>, <s32[]>), dynamic_slice_sizes={{2,4}}",
    f"x: {M} dynamic-update-slice(<{M}>, <f32[2,4]{{1,0}}>, <s32[]>, <s32[]>)",
    f"x: f32[7]{{0}} pad(<{A}>, <{S}>), padding=1_2\ny: f32[7]{{0}} pad(<{A}>, <{S}>), "
    "padding=0_0_1",
    f"x: {N} iota(), iota_dimension=0\ny: {M} iota(), iota_dimension=1",
    f"x: f32[<=4]{{0}} set-dimension-size(<{A}>, <s32[]>), dimensions={{0}}\n"
    "y: s32[] get-dimension-size(#x), dimensions={0}\n"
    "z: f32[2,<=2]{1,0} dynamic-reshape(#x, <s32[]>, <s32[]>)",
    f"x: ({A}, {S}) tuple(<{A}>, <{S}>)\ny: {A} get-tuple-element(#x), index=0",
    f"x: ((), ({A}, ({S}, {N}))) tuple(<()>, <({A}, ({S}, {N}))>)\n"
    f"y: ({A}, ({S}, {N})) get-tuple-element(#x), index=1",
    # Contractions and linear algebra.
    f"x: {M} dot(<{M}>, <{M}>), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
    f"x: {S} dot(<{A}>, <{A}>), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}, "
    "operand_precision={high,highest}, algorithm=dot_f32_f32_f32",
    f"x: {M} ragged-dot(<{M}>, <f32[2,4,4]{{2,1,0}}>, <s32[2]{{0}}>), lhs_contracting_dims={{1}}, "
    "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
    f"x: {M} scaled-dot(<{M}>, <{M}>, <{M}>, <{M}>), lhs_contracting_dims={{1}}, "
    "rhs_contracting_dims={0}",
    "x: f32[1,4,4,2]{3,2,1,0} convolution(<f32[1,6,6,3]{3,2,1,0}>, <f32[3,3,3,2]{3,2,1,0}>), "
    "window={size=3x3}, dim_labels=b01f_01io->b01f",
    "x: f32[1,6,6,3]{3,2,1,0} convolution(<f32[1,6,6,3]{3,2,1,0}>, <f32[3,3,1,3]{3,2,1,0}>), "
    "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3",
    f"x: {M} cholesky(<{M}>), lower=true",
    f"x: {M} triangular-solve(<{M}>, <{M}>), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    "x: c64[4]{0} fft(<c64[4]{0}>), fft_type=FFT, fft_length={4}",
    # Reductions, sorting, indexing.
    f"x: {S} reduce(<{A}>, <{S}>), dimensions={{0}}, to_apply=@add",
    f"x: ({S}, {S}) reduce(<{A}>, <{A}>, <{S}>, <{S}>), dimensions={{0}}, to_apply=@add2",
    f"x: f32[2]{{0}} reduce-window(<{A}>, <{S}>), window={{size=2 stride=2}}, to_apply=@add",
    f"x: {A} select-and-scatter(<{A}>, <f32[2]{{0}}>, <{S}>), window={{size=2 stride=2}}, "
    "select=@ge, scatter=@add",
    f"x: {A} map(<{A}>, <{A}>), dimensions={{0}}, to_apply=@add",
    f"x: ({A}, {S}) scan(<{A}>, <{S}>), dimensions={{0}}, num_carries=1, to_apply=@step",
    f"x: {A} sort(<{A}>), dimensions={{0}}, is_stable=true, to_apply=@lt",
    "x: (f32[2]{0}, s32[2]{0}) topk(<" + A + ">), k=2, largest=true",
    f"x: f32[3,4]{{1,0}} gather(<{M}>, <s32[3,1]{{1,0}}>), offset_dims={{1}}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
    f"x: {M} scatter(<{M}>, <s32[3,1]{{1,0}}>, <f32[3,4]{{1,0}}>), update_window_dims={{1}}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "unique_indices=true, to_apply=@add",
    f"x: ({M}, {A}, {A}) batch-norm-training(<{M}>, <{A}>, <{A}>), epsilon=0.001, feature_index=1",
    f"x: {M} batch-norm-inference(<{M}>, <{A}>, <{A}>, <{A}>, <{A}>), epsilon=1e-05, "
    "feature_index=1",
    f"x: ({M}, {A}, {A}) batch-norm-grad(<{M}>, <{A}>, <{A}>, <{A}>, <{M}>), epsilon=0.001, "
    "feature_index=1",
    # Random numbers, devices.
    f"x: {A} rng(<{S}>, <{S}>), distribution=rng_uniform",
    "x: (u64[2]{0}, u32[4]{0}) rng-bit-generator(<u64[2]{0}>), algorithm=rng_three_fry",
    "x: u64[2]{0} rng-get-and-update-state(), delta=4096",
    "x: u32[] partition-id()\ny: u32[] replica-id()",
    # Calls.
    f"x: {A} call(<{A}>), to_apply=@negate",
    f'x: {A} call(<{A}>), to_apply=@body, frontend_attributes={{inlineable="false"}}',
    f"x: ({A}, {S}) while(<({A}, {S})>), condition=@small, body=@loop",
    f"x: {A} conditional(<{B}>, <{A}>, <{A}>), true_computation=@negate, false_computation=@body",
    f"x: {A} conditional(<s32[]>, <{A}>, <{A}>, <{A}>), "
    "branch_computations={@negate, @body, @negate}",
    f"x: {A} fusion(<{A}>), kind=kLoop, calls=!negate",
    f"x: {A} fusion(<{A}>), kind=kCustom, output_to_operand_aliasing={{{{}}: (0, {{}})}}, "
    "calls=!negate",
    f'x: {A} custom-call(<{A}>), custom_call_target="f\\"g", api_version=API_VERSION_TYPED_FFI, '
    'backend_config={"a": {"b": "}"}}',
    f'x: {A} custom-call(<{M}>), custom_call_target="h", operand_layout_constraints='
    "{f32[4,4]{1,0}}, custom_call_has_side_effect=true, called_computations={@negate, @add}",
    # Collectives.
    f"x: {A} all-reduce(<{A}>), replica_groups={{{{0,1}},{{2,3}}}}, to_apply=@add",
    f"x: ({A}, {M}) all-reduce(<{A}>, <{M}>), channel_id=1, replica_groups=[2,2]<=[4], "
    "use_global_device_ids=true, to_apply=@add",
    f"x: {A} all-reduce-start(<{A}>), replica_groups={{}}, to_apply=@add\n"
    f"y: {A} all-reduce-done(#x)",
    f"x: f32[8]{{0}} all-gather(<{A}>), channel_id=2, replica_groups=[2,2]<=[2,2]T(1,0), "
    "dimensions={0}, use_global_device_ids=true",
    f"x: ({A}, f32[8]{{0}}) all-gather-start(<{A}>), replica_groups={{{{0,1}}}}, dimensions={{0}}\n"
    "y: f32[8]{0} all-gather-done(#x)",
    f"x: f32[2]{{0}} reduce-scatter(<{A}>), replica_groups={{{{0,1}},{{2,3}}}}, dimensions={{0}}, "
    "to_apply=@add",
    f"x: {A} all-to-all(<{A}>), replica_groups={{{{0,1}}}}, dimensions={{0}}",
    f"x: ({A}, {A}) all-to-all(<{A}>, <{A}>), replica_groups={{{{0,1}}}}",
    f"x: {A} ragged-all-to-all(<{A}>, <{A}>, <{N}>, <{N}>, <{N}>, <{N}>), "
    "replica_groups={{0,1,2,3}}",
    f"x: {A} collective-broadcast(<{A}>), replica_groups={{{{0,1}}}}",
    f"x: {A} collective-permute(<{A}>), channel_id=3, source_target_pairs={{{{0,1}},{{1,0}}}}",
    f"x: ({A}, {A}) collective-permute-start(<{A}>), source_target_pairs={{{{0,1}}}}\n"
    f"y: {A} collective-permute-done(#x)",
    # Asynchronous, and what moves data.
    f"x: (({A}), {A}, s32[]) async-start(<{A}>), calls=!negate\n"
    f"y: (({A}), {A}, s32[]) async-update(#x)\nz: {A} async-done(#y)",
    f"x: ({A}, {A}, u32[]) copy-start(<{A}>), cross_program_prefetch_index=0\ny: {A} copy-done(#x)",
    f"x: f32[4]{{0:S(5)}} copy(<{A}>)\ny: {A} copy(#x)",
    f"x: f32[4,4]{{1,0:S(5)}} copy(<{M}>)\n"
    "y: f32[2,4]{1,0} dynamic-slice(#x, <s32[]>, <s32[]>), dynamic_slice_sizes={2,4}\n"
    "z: f32[4,4]{1,0:S(5)} dynamic-update-slice(#x, #y, <s32[]>, <s32[]>)",
    f'x: {A} fusion(<{A}>), kind=kLoop, calls=!negate, backend_config={{"operation_queue_id":"1"}}',
    f'x: {A} call(<{A}>), to_apply=@body, backend_config={{"device_type":"DEVICE_TYPE_HOST"}}',
    f'x: {A} call(<{A}>), to_apply=@body, frontend_attributes={{_xla_stream_annotation="1"}}',
    f'x: {A} call(<{A}>), to_apply=@negate, frontend_attributes={{_collectives_group=""}}',
    f'x: ({A}, token[]) infeed(<token[]>), infeed_config="a"',
    f'x: token[] outfeed(<{A}>, <token[]>), outfeed_shape={A}, outfeed_config="b"',
    f"x: ({A}, u32[], token[]) send(<{A}>, <token[]>), channel_id=4, is_host_transfer=true\n"
    "y: token[] send-done(#x), channel_id=4, is_host_transfer=true",
    f"x: ({A}, u32[], token[]) recv(<token[]>), channel_id=5\n"
    f"y: ({A}, token[]) recv-done(#x), channel_id=5",
    f"x: token[] after-all(<token[]>)\ny: {A} add-dependency(<{A}>, #x)",
    f'x: {A} domain(<{A}>), domain={{kind="sharding", entry={{replicated}}, '
    "exit={maximal device=1}}",
)

CALLEES = {
    "add": "x: f32[] parameter(0)\ny: f32[] parameter(1)\nz: f32[] add(#x, #y)",
    "add2": "x: f32[] parameter(0)\ny: f32[] parameter(1)\nu: f32[] parameter(2)\n"
    "v: f32[] parameter(3)\na: f32[] add(#x, #u)\nb: f32[] add(#y, #v)\n"
    "t: (f32[], f32[]) tuple(#a, #b)",
    "step": "x: f32[] parameter(0)\ny: f32[] parameter(1)\nz: f32[] add(#x, #y)\n"
    "t: (f32[], f32[]) tuple(#z, #z)",
    "lt": f"x: f32[] parameter(0)\ny: f32[] parameter(1)\nz: {B} compare(#x, #y), direction=LT",
    "ge": f"x: f32[] parameter(0)\ny: f32[] parameter(1)\nz: {B} compare(#x, #y), direction=GE",
    "negate": f"x: {A} parameter(0)\ny: {A} negate(#x)",
    "small": f"p: ({A}, f32[]) parameter(0)\nx: f32[] get-tuple-element(#p), index=1\n"
    f"y: f32[] constant(7)\nz: {B} compare(#x, #y), direction=LT",
    "loop": f"p: ({A}, f32[]) parameter(0)\nx: {A} get-tuple-element(#p), index=0\n"
    "y: f32[] get-tuple-element(#p), index=1\nc: f32[] constant(1)\ns: f32[] add(#y, #c)\n"
    f"t: ({A}, f32[]) tuple(#x, #s)",
}
"""Computations by name; "body" is one that is drawn, and what follows `!` is called once."""

LITERALS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("s1", "s2"), ("0", "-1")),
    **dict.fromkeys(("u1", "u2"), ("0", "1")),
    **dict.fromkeys(("s4", "s8", "s16", "s32"), ("0", "-7", "7")),
    **dict.fromkeys(("u4", "u8", "u16", "u32"), ("0", "15")),
    "s64": ("-9223372036854775808", "9223372036854775807"),
    "u64": ("18446744073709551615",),
    "pred": ("true", "false", "1"),
    **dict.fromkeys(("f16", "bf16", "f32", "f64"), ("0", "1", "-1.5", "nan", "-inf", "3e-05")),
    **dict.fromkeys(("f8e3m4", "f8e4m3", "f8e5m2"), ("0", "1", "-1.5", "nan", "inf")),
    **dict.fromkeys(("f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz"), ("0", "1", "-1.5")),
    **dict.fromkeys(("f4e2m1fn", "f6e2m3fn", "f6e3m2fn"), ("0", "1", "-1.5")),
    "f8e8m0fnu": ("1", "2", "0.25"),
    **dict.fromkeys(("c64", "c128"), ("(0, 1)", "(-1.5, nan)", "(inf, 2)")),
}
"""Scalars of each element type that has literals."""
