"""The attributes of HLO text in an HloInstructionProto: which field each stands in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.opcode_attributes import allowed_attributes, canonical_value
from hloopt.ir.attributes.values import (
    format_frontend_attributes,
    format_int_lists,
    format_metadata,
    parse_bool,
    parse_frontend_attributes,
    parse_int_lists,
    parse_metadata,
    parse_names,
    parse_slices,
)
from hloopt.ir.attributes.values.strings import parse_string_or_dictionary, quote_unless_dictionary
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.opcode import Opcode
from hloopt.proto import codecs as kind
from hloopt.proto import structures as structure
from hloopt.proto.codecs import Codec
from hloopt.proto.groups import read_replica_groups, write_replica_groups
from hloopt.proto.metadata import read_metadata, write_metadata
from hloopt.proto.schema import enum_names, enum_numbers
from hloopt.proto.shardings import read_sharding, write_sharding


def read_attributes(opcode: Opcode, proto: Any) -> dict[str, str]:
    """The attributes of an instruction, references aside, as XLA prints them.

    Raises HloSyntaxError.
    """
    found: dict[str, str] = {}
    for name, codec in _codecs(opcode):
        text = codec.read(proto)
        if text is not None and name not in _AS_IT_IS:
            text = canonical_value(opcode, name, text)
        if text is not None:
            found[name] = text
    return found


def write_attributes(opcode: Opcode, attributes: dict[str, str], proto: Any) -> None:
    """Set what `attributes` say, and what XLA sets whether there is a text or not.

    Raises HloSyntaxError.
    """
    values = {**_SET_ALWAYS.get(opcode, {}), **attributes}
    for name, codec in _codecs(opcode):
        if name in values:
            try:
                codec.write(proto, values[name])
            except (ValueError, OverflowError) as error:  # a number or a string that does not fit
                raise HloSyntaxError(f"attribute '{name}': {error}") from None


_AS_IT_IS = frozenset(("metadata", "backend_config", "sharding"))
"""Attributes whose codecs give canonical text already, or keep more than XLA prints."""

_CODECS_OF: dict[Opcode, tuple[tuple[str, Codec], ...]] = {}


def _codecs(opcode: Opcode) -> tuple[tuple[str, Codec], ...]:
    found = _CODECS_OF.get(opcode)
    if found is None:
        names = [name for name in allowed_attributes(opcode) if name not in _WITHOUT_FIELD]
        found = tuple((n, codec) for n in names if (codec := _codec(opcode, n)) is not None)
        _CODECS_OF[opcode] = found
    return found


def _codec(opcode: Opcode, name: str) -> Codec | None:
    own = _OF_OPCODE.get((opcode, name))
    return own or _BY_NAME.get(name)


# -- attributes of more than one number or word ----------------------------------------------------


def _write_sharding(proto: Any, text: str) -> None:
    leaves = None
    if enum_names("PrimitiveType")[proto.shape.element_type] == "TUPLE":
        leaves = sum(1 for _ in _leaves(proto.shape))
    write_sharding(text, proto.sharding, leaves=leaves)


def _leaves(proto: Any) -> Iterator[Any]:
    stack = [proto]
    while stack:
        shape = stack.pop()
        if enum_names("PrimitiveType")[shape.element_type] == "TUPLE":
            stack += shape.tuple_shapes
        else:
            yield shape


def _read_metadata(proto: Any) -> str | None:
    return format_metadata(read_metadata(proto.metadata)) if proto.HasField("metadata") else None


def _read_backend_config(proto: Any) -> str | None:
    data = proto.backend_config
    return quote_unless_dictionary(kind.decoded(data)) if data else None


def _write_backend_config(proto: Any, text: str) -> None:
    proto.backend_config = kind.encoded(parse_string_or_dictionary(text))


def _read_frontend_attributes(proto: Any) -> str | None:
    found = proto.frontend_attributes.map
    return format_frontend_attributes(dict(found)) if found else None


def _write_frontend_attributes(proto: Any, text: str) -> None:
    proto.frontend_attributes.map.update(parse_frontend_attributes(text))


def _read_slices(proto: Any) -> str:
    parts = (f"[{s.start}:{s.limit}:{s.stride}]" for s in proto.slice_dimensions)
    return f"{{{', '.join(parts)}}}"


def _write_slices(proto: Any, text: str) -> None:
    for part in parse_slices(text):
        proto.slice_dimensions.add(start=part.start, limit=part.limit, stride=part.stride)


def _read_pairs(proto: Any) -> str:
    return format_int_lists((pair.source, pair.target) for pair in proto.source_target_pairs)


def _write_pairs(proto: Any, text: str) -> None:
    for source, target in parse_int_lists(text):
        proto.source_target_pairs.add(source=source, target=target)


def _write_slice_sizes(proto: Any, text: str) -> None:
    for sizes in parse_int_lists(text):
        proto.dynamic_slice_sizes.extend(sizes)


def _read_precisions(proto: Any) -> str | None:
    names = enum_names("PrecisionConfig.Precision")
    found = [names.get(n, "").lower() for n in proto.precision_config.operand_precision]
    return f"{{{','.join(found)}}}" if found else None


def _write_precisions(proto: Any, text: str) -> None:
    numbers = enum_numbers("PrecisionConfig.Precision")
    proto.precision_config.operand_precision.extend(
        numbers[name.upper()] for name in parse_names(text)
    )


def _read_replication(proto: Any) -> str | None:
    if not proto.HasField("parameter_replication"):
        return None
    flags = proto.parameter_replication.replicated_at_leaf_buffers
    return f"{{{','.join(str(flag).lower() for flag in flags)}}}"


def _write_replication(proto: Any, text: str) -> None:
    flags = [parse_bool(word) for word in compact(text)[1:-1].split(",") if word]
    proto.parameter_replication.replicated_at_leaf_buffers.extend(flags)


def _dot(field: str) -> Codec:
    return kind.integers(f"dot_dimension_numbers.{field}")


def _ragged(field: str) -> Codec:
    return kind.integers(f"ragged_dot_dimension_numbers.{field}")


# -- the table ------------------------------------------------------------------------------------

_BY_NAME: dict[str, Codec] = {
    "algorithm": kind.enum("precision_config.algorithm", "PrecisionConfig.Algorithm", "ALG_"),
    "api_version": kind.enum("custom_call_api_version", "CustomCallApiVersion", unset=0),
    "async_execution_thread": kind.some_string("async_execution_thread"),
    "backend_config": Codec(_read_backend_config, _write_backend_config),
    "batch_group_count": kind.integer("batch_group_count"),
    "channel_id": kind.integer_unless_zero("channel_id"),
    "collapsed_slice_dims": kind.integers("gather_dimension_numbers.collapsed_slice_dims"),
    "constrain_layout": kind.flag_if_true("constrain_layout"),
    "convolution_kind": kind.lower(kind.enum("conv_kind", "ConvolutionKind", "CONVOLUTION_KIND_")),
    "cross_program_prefetch_index": kind.optional_integer("cross_program_prefetch_index"),
    "custom_call_has_side_effect": kind.flag_if_true("custom_call_has_side_effect"),
    "custom_call_target": kind.string("custom_call_target"),
    "delta": kind.integer("delta"),
    "dim_labels": Codec(structure.read_dim_labels, structure.write_dim_labels),
    "dimensions": kind.integers("dimensions"),
    "direction": kind.word("comparison_direction"),
    "distribution": kind.lower(kind.enum("distribution", "RandomDistribution", unset=0)),
    "domain": Codec(structure.read_domain, structure.write_domain),
    "dynamic_slice_sizes": kind.integers("dynamic_slice_sizes"),
    "epsilon": Codec(
        lambda proto: f"{proto.epsilon:.9g}",
        lambda proto, text: setattr(proto, "epsilon", float(compact(text))),
    ),
    "exponent_bits": kind.integer("exponent_bits"),
    "feature_group_count": kind.integer("feature_group_count"),
    "feature_index": kind.integer("feature_index"),
    "fft_length": kind.integers("fft_length"),
    "fft_type": kind.enum("fft_type", "FftType"),
    "frontend_attributes": Codec(_read_frontend_attributes, _write_frontend_attributes),
    "index": kind.integer("tuple_index"),
    "index_vector_dim": kind.integer("gather_dimension_numbers.index_vector_dim"),
    "indices_are_sorted": kind.flag_if_true("indices_are_sorted"),
    "inferred_dimension": kind.first_integer("dimensions"),
    "infeed_config": kind.some_bytes("infeed_config"),
    "input_batching_dims": kind.integers("scatter_dimension_numbers.input_batching_dims"),
    "inserted_window_dims": kind.integers("scatter_dimension_numbers.inserted_window_dims"),
    "iota_dimension": kind.first_integer("dimensions"),
    "is_associative": kind.lower(kind.enum("is_associative", "TriState", "TRI_STATE_", unset=0)),
    "is_composite": kind.flag_if_true("is_composite"),
    "is_host_transfer": kind.flag_if_true("is_host_transfer"),
    "is_reverse": kind.flag_if_true("is_reverse"),
    "is_stable": kind.flag_if_true("is_stable"),
    "k": kind.integer("k"),
    "kind": kind.word("fusion_kind"),
    "largest": kind.flag("largest"),
    "left_side": kind.flag("triangular_solve_options.left_side"),
    "lhs_batch_dims": _dot("lhs_batch_dimensions"),
    "lhs_contracting_dims": _dot("lhs_contracting_dimensions"),
    "lhs_ragged_dims": _ragged("lhs_ragged_dimensions"),
    "literal": Codec(structure.read_typed_literal, structure.write_typed_literal),
    "lower": kind.flag("triangular_solve_options.lower"),
    "mantissa_bits": kind.integer("mantissa_bits"),
    "metadata": Codec(
        _read_metadata,
        lambda proto, text: write_metadata(parse_metadata(text), proto.metadata),
    ),
    "num_carries": kind.integer("num_carries"),
    "offset_dims": kind.integers("gather_dimension_numbers.offset_dims"),
    "operand_batching_dims": kind.integers("gather_dimension_numbers.operand_batching_dims"),
    "operand_layout_constraints": Codec(structure.read_constraints, structure.write_constraints),
    "operand_precision": Codec(_read_precisions, _write_precisions),
    "origin": Codec(structure.read_origin, structure.write_origin),
    "outfeed_config": kind.some_bytes("outfeed_config"),
    "outfeed_shape": Codec(structure.read_outfeed_shape, structure.write_outfeed_shape),
    "output_to_operand_aliasing": Codec(structure.read_aliasing, structure.write_aliasing),
    "padding": Codec(structure.read_padding, structure.write_padding),
    "padding_type": kind.enum("padding_type", "PaddingType", unset=0),
    "parameter_replication": Codec(_read_replication, _write_replication),
    "replica_groups": Codec(read_replica_groups, write_replica_groups),
    "result_accuracy": Codec(structure.read_accuracy, structure.write_accuracy),
    "rhs_batch_dims": _dot("rhs_batch_dimensions"),
    "rhs_contracting_dims": _dot("rhs_contracting_dimensions"),
    "rhs_group_dims": _ragged("rhs_group_dimensions"),
    "scatter_dims_to_operand_dims": kind.integers(
        "scatter_dimension_numbers.scatter_dims_to_operand_dims"
    ),
    "scatter_indices_batching_dims": kind.integers(
        "scatter_dimension_numbers.scatter_indices_batching_dims"
    ),
    "schedule": kind.enum("custom_call_schedule", "CustomCallSchedule"),
    "sharding": Codec(
        lambda proto: read_sharding(proto.sharding) if proto.HasField("sharding") else None,
        _write_sharding,
    ),
    "slice": Codec(_read_slices, _write_slices),
    "slice_sizes": kind.integers("gather_slice_sizes"),
    "source_target_pairs": Codec(_read_pairs, _write_pairs),
    "sparsity_config": Codec(structure.read_sparsity, structure.write_sparsity),
    "start_index_map": kind.integers("gather_dimension_numbers.start_index_map"),
    "start_indices_batching_dims": kind.integers(
        "gather_dimension_numbers.start_indices_batching_dims"
    ),
    "statistics": Codec(structure.read_statistics, structure.write_statistics),
    "transpose_a": kind.enum(
        "triangular_solve_options.transpose_a", "TriangularSolveOptions.Transpose", unset=0
    ),
    "type": kind.word("comparison_type"),
    "unique_indices": kind.flag_if_true("unique_indices"),
    "unit_diagonal": kind.flag("triangular_solve_options.unit_diagonal"),
    "update_window_dims": kind.integers("scatter_dimension_numbers.update_window_dims"),
    "use_global_device_ids": kind.flag_if_true("use_global_device_ids"),
    "window": Codec(structure.read_window, structure.write_window),
}

_RAGGED_DOT = {
    f"{side}_{role}_dims": _ragged(f"dot_dimension_numbers.{side}_{role}_dimensions")
    for side in ("lhs", "rhs")
    for role in ("batch", "contracting")
}
_NONE = Codec(lambda proto: None, lambda proto, text: None)
_PERMUTE_SLICES = Codec(lambda proto: None, _write_slice_sizes)  # read with the operands' shapes

_OF_OPCODE: dict[tuple[Opcode, str], Codec] = {
    **{(Opcode.RAGGED_DOT, name): codec for name, codec in _RAGGED_DOT.items()},
    (Opcode.ALL_TO_ALL, "dimensions"): kind.some_integers("dimensions"),
    (Opcode.ASYNC_DONE, "async_execution_thread"): _NONE,
    (Opcode.ASYNC_UPDATE, "async_execution_thread"): _NONE,
    (Opcode.CHOLESKY, "lower"): kind.flag("cholesky_options.lower"),
    (Opcode.COLLECTIVE_PERMUTE, "slice_sizes"): _PERMUTE_SLICES,
    (Opcode.COLLECTIVE_PERMUTE_START, "slice_sizes"): _PERMUTE_SLICES,
    (Opcode.RAGGED_ALL_TO_ALL, "dimensions"): _NONE,
    (Opcode.RNG_BIT_GENERATOR, "algorithm"): kind.lower(
        kind.enum("rng_algorithm", "RandomAlgorithm")
    ),
    (Opcode.SCATTER, "index_vector_dim"): kind.integer(
        "scatter_dimension_numbers.index_vector_dim"
    ),
}
"""Attributes that stand in another field than those of the same name elsewhere."""

_WITHOUT_FIELD = frozenset(("mode", "has_dynamic_root", "order"))
"""Attributes that no message has: a mode is read and never printed, an order is in the type."""

_GROUP_COUNTS = {"feature_group_count": "1", "batch_group_count": "1"}
_DOT_DIMENSIONS = {"lhs_contracting_dims": "{}"}
_SET_ALWAYS: dict[Opcode, dict[str, str]] = {
    Opcode.CONVOLUTION: {**_GROUP_COUNTS, "window": "{}"},
    Opcode.CUSTOM_CALL: {**_GROUP_COUNTS, "api_version": "API_VERSION_ORIGINAL"},
    Opcode.REDUCE_WINDOW: {"window": "{}"},
    Opcode.SELECT_AND_SCATTER: {"window": "{}"},
    Opcode.DOT: _DOT_DIMENSIONS,
    Opcode.RAGGED_DOT: _DOT_DIMENSIONS,
    Opcode.SCALED_DOT: _DOT_DIMENSIONS,
    Opcode.CHOLESKY: {"lower": "false"},
    Opcode.TRIANGULAR_SOLVE: {"lower": "false"},
    Opcode.TOPK: {"largest": "true"},
    Opcode.SCAN: {"is_associative": "false"},
    **{
        opcode: {"replica_groups": "{}"}
        for opcode in Opcode
        if "replica_groups" in allowed_attributes(opcode)
    },
}
"""Fields that XLA's messages have even where the text does not say it."""
