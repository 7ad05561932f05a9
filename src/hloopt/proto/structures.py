"""Attributes that are messages of their own: windows, labels, aliases, origins and the like."""

from __future__ import annotations

from typing import Any, Union

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.annotations import domain as canonical_domain
from hloopt.ir.attributes.annotations import origin as canonical_origin
from hloopt.ir.attributes.annotations import (
    original_arrays,
    result_accuracy,
    sparsity_config,
    statistics,
)
from hloopt.ir.attributes.shapes import parse_shapes, typed_literal_parts
from hloopt.ir.attributes.values import (
    format_ints,
    parse_dim_labels,
    parse_output_to_operand_aliasing,
    parse_padding,
    parse_window,
    quote_string,
)
from hloopt.ir.attributes.values.strings import dictionary_end
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.shapes.shape import Shape, format_shape, tuple_shape
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.patterns import pattern
from hloopt.proto.literals import read_literal, write_literal
from hloopt.proto.shapes import ShapeReader, write_shape
from hloopt.proto.shardings import read_sharding, write_sharding

_WINDOW_FIELDS = {
    "size": "size",
    "stride": "stride",
    "lhs_dilate": "base_dilation",
    "rhs_dilate": "window_dilation",
}


def read_window(proto: Any) -> str | None:
    if not proto.HasField("window"):
        return None
    if not proto.window.dimensions:
        return "{}" if proto.opcode == "custom-call" else None  # elsewhere it says nothing
    rows = proto.window.dimensions
    parts = [
        f"{name}={'x'.join(str(getattr(row, field)) for row in rows)}"
        for name, field in _WINDOW_FIELDS.items()
    ]
    parts.append(f"pad={'x'.join(f'{row.padding_low}_{row.padding_high}' for row in rows)}")
    parts.append(f"rhs_reversal={'x'.join(str(int(row.window_reversal)) for row in rows)}")
    return f"{{{' '.join(parts)}}}"


def write_window(proto: Any, text: str) -> None:
    proto.window.SetInParent()
    for dimension in parse_window(text).dimensions:
        proto.window.dimensions.add(
            size=dimension.size,
            stride=dimension.stride,
            padding_low=dimension.pad_low,
            padding_high=dimension.pad_high,
            window_dilation=dimension.rhs_dilate,
            base_dilation=dimension.lhs_dilate,
            window_reversal=bool(dimension.reversal),
        )


def read_padding(proto: Any) -> str:
    return "x".join(
        f"{pad.edge_padding_low}_{pad.edge_padding_high}_{pad.interior_padding}"
        for pad in proto.padding_config.dimensions
    )


def write_padding(proto: Any, text: str) -> None:
    for pad in parse_padding(text):
        proto.padding_config.dimensions.add(
            edge_padding_low=pad.low, edge_padding_high=pad.high, interior_padding=pad.interior
        )


_LABELS = (
    ("input", (("b", "input_batch"), ("f", "input_feature"))),
    ("kernel", (("i", "kernel_input_feature"), ("o", "kernel_output_feature"))),
    ("output", (("b", "output_batch"), ("f", "output_feature"))),
)
_MOST_DIMENSIONS = 64


def read_dim_labels(proto: Any) -> str | None:
    if not proto.HasField("convolution_dimension_numbers"):
        return None
    numbers = proto.convolution_dimension_numbers
    parts: list[str] = []
    for part, letters in _LABELS:
        places = {getattr(numbers, f"{field}_dimension"): letter for letter, field in letters}
        for label, place in enumerate(getattr(numbers, f"{part}_spatial_dimensions")):
            places[place] = str(label)
        if not all(0 <= place < _MOST_DIMENSIONS for place in places):
            raise HloSyntaxError(f"the {part} of a convolution has the dimensions {list(places)}")
        parts.append("".join(places.get(place, "?") for place in range(max(places) + 1)))
    return f"{parts[0]}_{parts[1]}->{parts[2]}"


def write_dim_labels(proto: Any, text: str) -> None:
    labels = parse_dim_labels(text)
    numbers = proto.convolution_dimension_numbers
    numbers.SetInParent()
    for part, letters in _LABELS:
        written: str = getattr(labels, part)
        for letter, field in letters:
            setattr(numbers, f"{field}_dimension", written.index(letter))
        spatial = [written.index(digit) for digit in sorted(filter(str.isdigit, written))]
        getattr(numbers, f"{part}_spatial_dimensions").extend(spatial)


def read_sparsity(proto: Any) -> str | None:
    sides = [
        f"{side}={{sparsity={one.num_non_zero}x{one.block_size} "
        f"dimension={one.dimension} stride={one.stride}}}"
        for side in ("lhs", "rhs")
        if proto.sparsity_config.HasField(side)
        for one in (getattr(proto.sparsity_config, side),)
    ]
    return f"{{{' '.join(sides)}}}" if sides else None


_SPARSITY = pattern(r"(lhs|rhs)=\{sparsity=(\d+)x(\d+) dimension=(\d+) stride=(\d+)\}")


def write_sparsity(proto: Any, text: str) -> None:
    for side, kept, block, dimension, stride in _SPARSITY.findall(sparsity_config(text) or ""):
        one = getattr(proto.sparsity_config, side)
        one.num_non_zero, one.block_size = int(kept), int(block)
        one.dimension, one.stride = int(dimension), int(stride)


def read_aliasing(proto: Any) -> str | None:
    entries = [
        f"{format_ints(alias.output_shape_index)}: "
        f"({alias.operand_index}, {format_ints(alias.operand_shape_index)})"
        for alias in proto.output_operand_aliasing
    ]
    return f"{{{', '.join(entries)}}}" if entries else None


def write_aliasing(proto: Any, text: str) -> None:
    for alias in parse_output_to_operand_aliasing(text):
        proto.output_operand_aliasing.add(
            output_shape_index=alias.output_index,
            operand_index=alias.parameter,
            operand_shape_index=alias.parameter_index,
        )


_DOMAIN_FIELDS = {"entry": "domain_exit_sharding", "exit": "domain_entry_sharding"}
"""XLA's text and message call the two sides the opposite."""


def read_domain(proto: Any) -> str:
    sides = [f"{side}={read_sharding(getattr(proto, f))}" for side, f in _DOMAIN_FIELDS.items()]
    return f'{{kind="sharding", {", ".join(sides)}}}'


def write_domain(proto: Any, text: str) -> None:
    dense = canonical_domain(text)
    for side, field in _DOMAIN_FIELDS.items():
        start = dense.index(f"{side}={{") + len(side) + 1
        end = dictionary_end(dense, start)
        write_sharding(dense[start:end], getattr(proto, field))


def read_accuracy(proto: Any) -> str | None:
    found = proto.result_accuracy
    if found.WhichOneof("specs") == "tolerance":
        tolerance = found.tolerance
        atol, rtol = (f"{value:.17g}" for value in (tolerance.atol, tolerance.rtol))
        return f"{{tolerance={{atol={atol},rtol={rtol},ulps={tolerance.ulps}}}}}"
    return "{mode=highest}" if found.mode else None


_TOLERANCE = pattern(r"\{tolerance=\{atol=([^,]+),rtol=([^,]+),ulps=([^}]+)\}\}")


def write_accuracy(proto: Any, text: str) -> None:
    canonical = result_accuracy(text)
    tolerance = _TOLERANCE.fullmatch(canonical or "")
    if tolerance:
        target = proto.result_accuracy.tolerance
        target.atol, target.rtol = float(tolerance[1]), float(tolerance[2])
        target.ulps = int(tolerance[3])
    elif canonical:
        proto.result_accuracy.mode = 1


def read_statistics(proto: Any) -> str | None:
    found = proto.statistics_viz
    if not found.statistics:
        return None
    values = [f"{one.stat_name}={one.stat_val:.17g}" for one in found.statistics]
    return f"{{{','.join([f'visualizing_index={found.stat_index_to_visualize}', *values])}}}"


def write_statistics(proto: Any, text: str) -> None:
    index, *values = (statistics(text) or "{visualizing_index=0}")[1:-1].split(",")
    proto.statistics_viz.stat_index_to_visualize = int(index.partition("=")[2])
    for value in values:
        name, _, number = value.partition("=")
        proto.statistics_viz.statistics.add(stat_name=name, stat_val=float(number))


# -- shapes and literals --------------------------------------------------------------------------


def read_constraints(proto: Any) -> str | None:
    if not proto.constrain_layout:
        return None
    shapes = ShapeReader()
    texts = [format_shape(shapes.read(shape)) for shape in proto.operand_shapes_with_layout]
    return f"{{{', '.join(texts)}}}"


def write_constraints(proto: Any, text: str) -> None:
    proto.constrain_layout = True
    for shape in parse_shapes(text):
        write_shape(shape, proto.operand_shapes_with_layout.add())


def read_outfeed_shape(proto: Any) -> str | None:
    return ShapeReader().read(proto.outfeed_shape).text if proto.HasField("outfeed_shape") else None


def write_outfeed_shape(proto: Any, text: str) -> None:
    write_shape(parse_shape(text), proto.outfeed_shape)


def read_typed_literal(proto: Any) -> str | None:
    """`s32[2]{0} {1, 2}`, or a tuple of such."""
    if not proto.HasField("literal"):
        return None
    return _typed(proto.literal, ShapeReader())


def _typed(literal: Any, shapes: ShapeReader) -> str:
    shape = shapes.read(literal.shape)
    if shape.is_tuple:
        return f"( {', '.join(_typed(part, shapes) for part in literal.tuple_literals)} )"
    return f"{shape.text} {read_literal(literal, shape, shapes)}"


def write_typed_literal(proto: Any, text: str) -> None:
    shape, values = _split_typed(text)
    write_literal(values, shape, proto.literal)


def _split_typed(text: str) -> tuple[Shape, str]:
    """Shape and plain literal of a text that gives a shape in front of each array."""
    stack: list[tuple[list[Shape], list[str]]] = [([], [])]
    for part in typed_literal_parts(text):
        if part == "(":
            stack.append(([], []))
        elif part == ")":
            shapes, values = stack.pop()
            stack[-1][0].append(tuple_shape(shapes))
            stack[-1][1].append(f"({', '.join(values)})")
        elif not isinstance(part, str):
            shape, literal = part
            stack[-1][0].append(shape)
            stack[-1][1].append(canonical_literal(literal, shape))
    ((shape,), (literal,)) = stack[0]
    return shape, literal


# -- original values ------------------------------------------------------------------------------


def read_origin(proto: Any) -> str | None:
    """`{({"v1"}, {"v2" {0,1}})}`: the leaves of the message put into the tree they imply."""
    if not proto.HasField("original_value"):
        return None
    if proto.original_value.is_synthetic_call:
        return "{[synthetic_call]}"
    root: _Node = {}
    for element in proto.original_value.elements:
        index = [0, *element.shape_index]
        path, last = index[:-1], index[-1]
        if len(path) > _DEEPEST:
            raise HloSyntaxError("an original value is nested too deeply")
        node = root
        for i in path:
            below = node.setdefault(i, {})
            if isinstance(below, str):
                raise HloSyntaxError("an original value has elements below an array")
            node = below
        known = element.HasField("original_array")
        node[last] = format_original_array(element.original_array) if known else "{}"
    return f"{{{_tree(root.get(0, {}))}}}"


_Node = dict[int, Union["_Node", str]]
_DEEPEST = 100


def format_original_array(proto: Any) -> str:
    """`{"name" {0,1}}`."""
    index = ",".join(map(str, proto.shape_index))
    return f"{{{quote_string(proto.instruction_name)}{f' {{{index}}}' if index else ''}}}"


def _tree(node: _Node | str) -> str:
    if isinstance(node, str):
        return node
    if sorted(node) != list(range(len(node))):
        raise HloSyntaxError("an original value has a gap")
    return f"({', '.join(_tree(node[i]) for i in range(len(node)))})"


def write_origin(proto: Any, text: str) -> None:
    canonical = canonical_origin(text)
    proto.original_value.SetInParent()
    if canonical == "{[synthetic_call]}":
        proto.original_value.is_synthetic_call = True
        return
    for leaf in original_arrays(canonical):
        element = proto.original_value.elements.add(shape_index=leaf.leaf_index)
        if leaf.name is not None:
            element.original_array.instruction_name = leaf.name
            element.original_array.shape_index.extend(leaf.array_index)
