"""The attributes of each opcode, in the order XLA prints them."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.ir.attributes import formats as kind
from hloopt.ir.attributes import shapes as shaped
from hloopt.ir.attributes.formats import Canonical
from hloopt.ir.instruction import COMPUTATION_LISTS
from hloopt.ir.opcode import Opcode


class Attribute(NamedTuple):
    """An attribute of an opcode.

    `canonical` turns its text into what XLA prints, None where XLA leaves it out. `is_reference`
    says that it names computations or instructions. `implied` is the text XLA prints where the
    attribute is absent.
    """

    name: str
    canonical: Canonical
    is_required: bool = False
    is_reference: bool = False
    implied: str | None = None


def _later(home: str, function: str) -> Canonical:
    """A function of this package that is imported when it is called: most modules never need it."""

    def call(text: str) -> str | None:
        from importlib import import_module

        found: Canonical = getattr(import_module(f"{__package__}.{home}"), function)
        return found(text)

    return call


def _required(name: str, canonical: Canonical) -> Attribute:
    return Attribute(name, canonical, is_required=True)


def _always(name: str, canonical: Canonical, implied: str) -> Attribute:
    return Attribute(name, canonical, implied=implied)


def _calls(name: str, *, required: bool = True) -> Attribute:
    canonical = kind.names if name in COMPUTATION_LISTS else kind.name
    return Attribute(name, canonical, required, is_reference=True)


_dot_algorithm = kind.one_of(
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    any_case=True,
    unset="unset",
)

_RESULT_ACCURACY = Attribute("result_accuracy", _later("annotations", "result_accuracy"))
_BEFORE_ACCURACY = (
    Attribute("sharding", _later("values.sharding_text", "canonical_sharding")),
    Attribute("frontend_attributes", kind.frontend_attributes),
    Attribute("control-predecessors", kind.names, is_reference=True),
    Attribute("statistics", _later("annotations", "statistics")),
)
_AFTER_ACCURACY = (
    Attribute("origin", _later("annotations", "origin")),
    Attribute("metadata", _later("values.metadata", "canonical_metadata")),
    Attribute("backend_config", kind.backend_config),
)

_CHANNEL_ID = Attribute("channel_id", kind.integer)
_GROUPS = _always("replica_groups", kind.replica_groups, "{}")
_CONSTRAIN_LAYOUT = Attribute("constrain_layout", kind.true_only)
_GLOBAL_IDS = Attribute("use_global_device_ids", kind.true_only)
_IGNORED_MODE = Attribute("mode", kind.ignored_collective_mode)
_COLLECTIVE = (_CHANNEL_ID, _GROUPS, _CONSTRAIN_LAYOUT)
_TO_APPLY = _calls("to_apply")
_DIMENSION = _required("dimensions", kind.one_integer)
_DIMENSIONS = _required("dimensions", kind.integers)
_PRECISION = Attribute("operand_precision", kind.precisions)
_ALGORITHM = Attribute("algorithm", _dot_algorithm)
_WINDOW = Attribute("window", kind.window)
_GROUP_COUNTS = (
    Attribute("feature_group_count", kind.integer_unless(1)),
    Attribute("batch_group_count", kind.integer_unless(1)),
)
_DOT_DIMENSIONS = (
    Attribute("lhs_batch_dims", kind.some_integers),
    _always("lhs_contracting_dims", kind.integers, "{}"),
    Attribute("rhs_batch_dims", kind.some_integers),
    _always("rhs_contracting_dims", kind.integers, "{}"),
)
_ALIASING = Attribute("output_to_operand_aliasing", kind.operand_aliasing)
_BATCH_NORM = (_required("epsilon", kind.real), _required("feature_index", kind.integer))
_HOST_TRANSFER = (_CHANNEL_ID, Attribute("is_host_transfer", kind.true_only))
_ALL_REDUCE = (*_COLLECTIVE, _GLOBAL_IDS, _IGNORED_MODE, _TO_APPLY)
_ALL_GATHER = (*_COLLECTIVE, _DIMENSION, _GLOBAL_IDS)
_PERMUTE = (
    _CHANNEL_ID,
    _required("source_target_pairs", kind.pairs),
    Attribute("slice_sizes", kind.some_integer_lists),
)
_THREAD = Attribute("async_execution_thread", kind.string_unless("main"))
_ASYNC_REST = (
    Attribute("async_execution_thread", kind.ignored_string),
    _calls("calls", required=False),
)

_OWN: dict[Opcode, tuple[Attribute, ...]] = {
    Opcode.COMPARE: (
        _required("direction", kind.one_of("EQ", "NE", "GE", "GT", "LE", "LT")),
        Attribute("type", kind.one_of("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")),
        Attribute("order", kind.one_of("PARTIAL", "TOTAL")),  # for type, in XLA 0.12
    ),
    Opcode.PARAMETER: (Attribute("parameter_replication", kind.booleans),),
    Opcode.IOTA: (_required("iota_dimension", kind.integer),),
    Opcode.GET_TUPLE_ELEMENT: (_required("index", kind.integer),),
    Opcode.BROADCAST: (_always("dimensions", kind.integers, "{}"),),
    Opcode.RESHAPE: (Attribute("inferred_dimension", kind.integer_unless(-1)),),
    Opcode.TRANSPOSE: (_DIMENSIONS,),
    Opcode.REVERSE: (_DIMENSIONS,),
    Opcode.CONCATENATE: (_DIMENSION,),
    Opcode.SLICE: (_required("slice", kind.slices),),
    Opcode.DYNAMIC_SLICE: (_required("dynamic_slice_sizes", kind.integers),),
    Opcode.PAD: (_required("padding", kind.padding),),
    Opcode.REDUCE: (_DIMENSIONS, _TO_APPLY),
    Opcode.REDUCE_WINDOW: (_WINDOW, _TO_APPLY),
    Opcode.SELECT_AND_SCATTER: (_WINDOW, _calls("select"), _calls("scatter")),
    Opcode.MAP: (Attribute("dimensions", kind.integers), _TO_APPLY),
    Opcode.SCAN: (
        _DIMENSION,
        _required("num_carries", kind.integer),
        Attribute("is_reverse", kind.true_only),
        _always("is_associative", kind.boolean, "false"),
        _TO_APPLY,
    ),
    Opcode.SORT: (_DIMENSION, Attribute("is_stable", kind.true_only), _TO_APPLY),
    Opcode.TOPK: (
        _required("k", kind.integer),
        _always("largest", kind.boolean, "true"),
        Attribute("is_stable", kind.boolean),
    ),
    Opcode.DOT: (*_DOT_DIMENSIONS, _PRECISION, _ALGORITHM),
    Opcode.RAGGED_DOT: (
        *_DOT_DIMENSIONS,
        Attribute("lhs_ragged_dims", kind.some_integers),
        Attribute("rhs_group_dims", kind.some_integers),
        _PRECISION,
    ),
    Opcode.SCALED_DOT: (*_DOT_DIMENSIONS, _PRECISION, _ALGORITHM),
    Opcode.CONVOLUTION: (
        _WINDOW,
        _required("dim_labels", kind.dim_labels),
        *_GROUP_COUNTS,
        Attribute("convolution_kind", kind.one_of("fprop", "wgrad", "dgrad", unset="unset")),
        _PRECISION,
        _ALGORITHM,
        Attribute("sparsity_config", _later("annotations", "sparsity_config")),
    ),
    Opcode.FFT: (
        _required("fft_type", kind.one_of("FFT", "IFFT", "RFFT", "IRFFT")),
        _required("fft_length", kind.integers),
    ),
    Opcode.CHOLESKY: (Attribute("lower", kind.true_only),),
    Opcode.TRIANGULAR_SOLVE: (
        Attribute("left_side", kind.true_only),
        Attribute("lower", kind.true_only),
        Attribute("unit_diagonal", kind.true_only),
        Attribute(
            "transpose_a",
            kind.one_of("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", unset="TRANSPOSE_INVALID"),
        ),
    ),
    Opcode.GATHER: (
        _required("offset_dims", kind.integers),
        _required("collapsed_slice_dims", kind.integers),
        _required("start_index_map", kind.integers),
        Attribute("operand_batching_dims", kind.some_integers),
        Attribute("start_indices_batching_dims", kind.some_integers),
        _required("index_vector_dim", kind.integer),
        _required("slice_sizes", kind.integers),
        Attribute("indices_are_sorted", kind.true_only),
    ),
    Opcode.SCATTER: (
        _required("update_window_dims", kind.integers),
        _required("inserted_window_dims", kind.integers),
        _required("scatter_dims_to_operand_dims", kind.integers),
        Attribute("input_batching_dims", kind.some_integers),
        Attribute("scatter_indices_batching_dims", kind.some_integers),
        _required("index_vector_dim", kind.integer),
        Attribute("indices_are_sorted", kind.true_only),
        Attribute("unique_indices", kind.true_only),
        _TO_APPLY,
    ),
    Opcode.GET_DIMENSION_SIZE: (_DIMENSION,),
    Opcode.SET_DIMENSION_SIZE: (_DIMENSION,),
    Opcode.BATCH_NORM_TRAINING: _BATCH_NORM,
    Opcode.BATCH_NORM_INFERENCE: _BATCH_NORM,
    Opcode.BATCH_NORM_GRAD: _BATCH_NORM,
    Opcode.REDUCE_PRECISION: (
        _required("exponent_bits", kind.integer),
        _required("mantissa_bits", kind.integer),
    ),
    Opcode.RNG: (
        _required("distribution", kind.one_of("rng_uniform", "rng_normal", any_case=True)),
    ),
    Opcode.RNG_BIT_GENERATOR: (
        _required(
            "algorithm",
            kind.one_of("rng_default", "rng_three_fry", "rng_philox", any_case=True),
        ),
    ),
    Opcode.RNG_GET_AND_UPDATE_STATE: (_required("delta", kind.integer),),
    Opcode.WHILE: (_calls("condition"), _calls("body")),
    Opcode.CALL: (_TO_APPLY, Attribute("is_composite", kind.true_only)),
    Opcode.CONDITIONAL: (
        _calls("true_computation", required=False),
        _calls("false_computation", required=False),
        _calls("branch_computations", required=False),
    ),
    Opcode.FUSION: (
        _required("kind", kind.one_of("kLoop", "kInput", "kOutput", "kCustom")),
        _ALIASING,
        _calls("calls"),
    ),
    Opcode.CUSTOM_CALL: (
        Attribute("window", kind.stated_window),
        Attribute("dim_labels", kind.dim_labels),
        *_GROUP_COUNTS,
        _PRECISION,
        Attribute(
            "padding_type", kind.one_of("PADDING_VALID", "PADDING_SAME", unset="PADDING_INVALID")
        ),
        _required("custom_call_target", kind.string),
        Attribute("operand_layout_constraints", shaped.shapes),
        Attribute("custom_call_has_side_effect", kind.true_only),
        Attribute("literal", shaped.literal),
        _ALIASING,
        Attribute(
            "schedule",
            kind.one_of(
                *("SCHEDULE_LATEST", "SCHEDULE_EARLIEST"), any_case=True, unset="schedule_none"
            ),
        ),
        Attribute(
            "api_version",
            kind.one_of(
                "API_VERSION_STATUS_RETURNING",
                "API_VERSION_STATUS_RETURNING_UNIFIED",
                "API_VERSION_TYPED_FFI",
                any_case=True,
                unset="api_version_original",
            ),
        ),
        _calls("called_computations", required=False),
        _calls("to_apply", required=False),
    ),
    Opcode.DOMAIN: (_required("domain", _later("annotations", "domain")),),
    Opcode.INFEED: (Attribute("infeed_config", kind.string_unless("")),),
    Opcode.OUTFEED: (
        Attribute("outfeed_shape", shaped.shape),
        Attribute("outfeed_config", kind.string_unless("")),
    ),
    Opcode.SEND: _HOST_TRANSFER,
    Opcode.RECV: _HOST_TRANSFER,
    Opcode.SEND_DONE: _HOST_TRANSFER,
    Opcode.RECV_DONE: _HOST_TRANSFER,
    Opcode.COPY_START: (Attribute("cross_program_prefetch_index", kind.integer),),
    Opcode.ALL_REDUCE: _ALL_REDUCE,
    Opcode.ALL_REDUCE_START: _ALL_REDUCE,
    Opcode.REDUCE_SCATTER: (*_COLLECTIVE, _GLOBAL_IDS, _IGNORED_MODE, _DIMENSION, _TO_APPLY),
    Opcode.ALL_GATHER: _ALL_GATHER,
    Opcode.ALL_GATHER_START: _ALL_GATHER,
    Opcode.ALL_TO_ALL: (*_COLLECTIVE, Attribute("dimensions", kind.one_integer)),
    Opcode.RAGGED_ALL_TO_ALL: (
        _CHANNEL_ID,
        _GROUPS,
        Attribute("dimensions", kind.ignored_dimensions),
    ),
    Opcode.COLLECTIVE_BROADCAST: (
        _CHANNEL_ID,
        _GROUPS,
        Attribute("has_dynamic_root", kind.boolean),
    ),
    Opcode.COLLECTIVE_PERMUTE: _PERMUTE,
    Opcode.COLLECTIVE_PERMUTE_START: _PERMUTE,
    Opcode.ASYNC_START: (_THREAD, _ALIASING, _calls("calls")),
    Opcode.ASYNC_UPDATE: _ASYNC_REST,
    Opcode.ASYNC_DONE: _ASYNC_REST,
}

_WITH_RESULT_ACCURACY = frozenset(
    (
        *(Opcode.ACOS, Opcode.ACOSH, Opcode.ASIN, Opcode.ASINH, Opcode.ATANH, Opcode.CBRT),
        *(Opcode.COSINE, Opcode.COSH, Opcode.ERF, Opcode.EXPONENTIAL),
        *(Opcode.EXPONENTIAL_MINUS_ONE, Opcode.LOG, Opcode.LOG_PLUS_ONE, Opcode.LOGISTIC),
        *(Opcode.RSQRT, Opcode.SINE, Opcode.SINH, Opcode.SQRT, Opcode.TAN, Opcode.TANH),
    )
)
_ALTERNATIVES = {
    Opcode.CONDITIONAL: (
        frozenset(("branch_computations", "true_computation")),
        frozenset(("branch_computations", "false_computation")),
    )
}


def attributes_of(opcode: Opcode) -> tuple[Attribute, ...]:
    """The attributes of an opcode in printing order."""
    accuracy = (_RESULT_ACCURACY,) if opcode in _WITH_RESULT_ACCURACY else ()
    return (*_OWN.get(opcode, ()), *_BEFORE_ACCURACY, *accuracy, *_AFTER_ACCURACY)


def required_alternatives(opcode: Opcode) -> tuple[frozenset[str], ...]:
    """Sets of attributes of each of which one must be there."""
    return _ALTERNATIVES.get(opcode, ())
