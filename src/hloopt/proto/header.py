"""The attributes of a module's header, and its stack-frame tables, as fields of HloModuleProto."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.text import STRING
from hloopt.ir.attributes.values import (
    format_frontend_attributes,
    format_ints,
    parse_aliasing,
    parse_buffer_donor,
    parse_frontend_attributes,
    parse_string,
    quote_string,
)
from hloopt.ir.module import Module
from hloopt.ir.shapes.entry_layout import format_entry_layout, parse_entry_layout
from hloopt.ir.sources.stack_frames import Location, StackFrames
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern
from hloopt.proto.schema import enum_names, enum_numbers
from hloopt.proto.shapes import ShapeReader, write_shape
from hloopt.proto.structures import format_original_array
from hloopt.text.header import entry_layout

_WITHOUT_FIELD = (
    *("replica_count", "num_partitions", "alias_passthrough_params", "debug_attributes"),
    *(f"allow_spmd_sharding_propagation_to_{what}" for what in ("parameters", "output")),
)


def left_out(module: Module) -> list[str]:
    """The attributes of a header that HloModuleProto does not hold, `name=value`.

    XLA keeps them in the configuration of a module, which it does not dump.
    """
    found = ((name, module.attributes.get(name)) for name in _WITHOUT_FIELD)
    return [f"{name}={value}" for name, value in found if value is not None]


def read_header(
    proto: Any, module: Module, shapes: ShapeReader, read_module: Callable[[Any], Module]
) -> None:
    """Set attributes and tables of `module` from an HloModuleProto.

    `read_module` is for the modules in a table. Raises HloSyntaxError.
    """
    attributes = module.attributes
    if proto.HasField("schedule"):
        attributes["is_scheduled"] = "true"
    if proto.input_output_alias.entries:
        attributes["input_output_alias"] = _read_aliases(proto.input_output_alias.entries)
    if proto.buffer_donor.entries:
        donors = (
            f"({donor.parameter_number}, {format_ints(donor.parameter_shape_index)})"
            for donor in proto.buffer_donor.entries
        )
        attributes["buffer_donor"] = f"{{ {', '.join(donors)} }}"
    if proto.HasField("host_program_shape"):
        found = proto.host_program_shape
        attributes["entry_computation_layout"] = format_entry_layout(
            [shapes.read(parameter) for parameter in found.parameters], shapes.read(found.result)
        )
    if proto.frontend_attributes.map:
        found = format_frontend_attributes(dict(proto.frontend_attributes.map))
        attributes["frontend_attributes"] = found
    if proto.original_value_recovery_table.entries:
        entries = proto.original_value_recovery_table.entries
        attributes["origin_recovery_table"] = _read_recovery(entries, read_module)
    if proto.stack_frame_index.stack_frames:
        module.stack_frames = _read_frames(proto.stack_frame_index).format()


def _read_aliases(entries: Any) -> str:
    kinds = enum_names("Kind")
    parts = [
        f"{format_ints(entry.output_shape_index)}: ({entry.parameter_number}, "
        f"{format_ints(entry.parameter_shape_index)}, "
        f"{'must-alias' if kinds.get(entry.kind) == 'MUST_ALIAS' else 'may-alias'})"
        for entry in entries
    ]
    return f"{{ {', '.join(parts)} }}"


def _read_frames(proto: Any) -> StackFrames:
    return StackFrames(
        [quote_string(name) for name in proto.file_names],
        [quote_string(name) for name in proto.function_names],
        [
            Location(
                *(at.file_name_id, at.function_name_id),
                *(at.line, at.end_line, at.column, at.end_column),
            )
            for at in proto.file_locations
        ],
        [(frame.file_location_id, frame.parent_frame_id) for frame in proto.stack_frames],
    )


def _read_recovery(entries: Any, read_module: Callable[[Any], Module]) -> str:
    """The table as XLA prints it: modules stand indented in quotes."""
    from hloopt.text import PrintOptions, print_module

    options = PrintOptions.default()._replace(print_large_constants=True)
    lines = ["{"]
    for entry in entries:
        old = format_original_array(entry.old_original_array)
        new = format_original_array(entry.new_original_array)
        lines.append(f"  {old} : {new}")
        if entry.HasField("recovery_module"):
            text = print_module(read_module(entry.recovery_module), options)
            lines[-1] += ","
            escaped = text.replace("\\", "\\\\").replace('"', '\\"').splitlines()
            lines += ['  "', *(f"    {line}" if line else "" for line in escaped), "", '  "']
    return "\n".join([*lines, "}"])


# -- writing --------------------------------------------------------------------------------------


def write_header(module: Module, proto: Any, write_module: Callable[[Module, Any], None]) -> None:
    """Set the fields that stand in the header's text.

    `write_module` is for the modules in a table. Raises HloSyntaxError.
    """
    attributes = module.attributes
    kinds = enum_numbers("Kind")
    proto.input_output_alias.SetInParent()
    for alias in parse_aliasing(attributes.get("input_output_alias", "{}")):
        proto.input_output_alias.entries.add(
            output_shape_index=alias.output_index,
            parameter_number=alias.parameter,
            parameter_shape_index=alias.parameter_index,
            kind=kinds[alias.kind.upper().replace("-", "_")],
        )
    proto.buffer_donor.SetInParent()
    for parameter, index in parse_buffer_donor(attributes.get("buffer_donor", "{}")):
        proto.buffer_donor.entries.add(parameter_number=parameter, parameter_shape_index=index)
    parameters, result = parse_entry_layout(
        attributes.get("entry_computation_layout") or entry_layout(module)
    )
    for number, shape in enumerate(parameters):
        write_shape(shape, proto.host_program_shape.parameters.add())
        # XLA's names, whatever the parameters of the entry are called.
        proto.host_program_shape.parameter_names.append(f"p{number}")
    write_shape(result, proto.host_program_shape.result)
    if "frontend_attributes" in attributes:
        found = parse_frontend_attributes(attributes["frontend_attributes"])
        proto.frontend_attributes.map.update(found)
    if "origin_recovery_table" in attributes:
        table = attributes["origin_recovery_table"]
        _write_recovery(table, proto.original_value_recovery_table, write_module)
    if module.stack_frames:
        _write_frames(StackFrames.parse(module.stack_frames), proto.stack_frame_index)


def _write_frames(tables: StackFrames, proto: Any) -> None:
    proto.file_names.extend(map(parse_string, tables.files))
    proto.function_names.extend(map(parse_string, tables.functions))
    for at in tables.locations:
        proto.file_locations.add(
            file_name_id=at.file,
            function_name_id=at.function,
            line=at.line,
            end_line=at.end_line,
            column=at.column,
            end_column=at.end_column,
        )
    for location, parent in tables.frames:
        proto.stack_frames.add(file_location_id=location, parent_frame_id=parent)


_ARRAY = rf"\{{({STRING})\s*(?:\{{([\d,\s]*)\}})?\s*\}}"
_RECOVERY = pattern(rf"{_ARRAY}\s*:\s*{_ARRAY}\s*(?:,\s*({STRING})\s*)?", re.S)


def _write_recovery(text: str, proto: Any, write_module: Callable[[Module, Any], None]) -> None:
    from hloopt.text import parse_module

    position = skip_trivia(text, 1)
    seen: set[tuple[str, str]] = set()  # of entries for the same array the first one counts
    while entry := _RECOVERY.match(text, position):
        position = skip_trivia(text, entry.end())
        if (entry[1], entry[2]) in seen:
            continue
        seen.add((entry[1], entry[2]))
        target = proto.entries.add()
        arrays = (entry[1], entry[2]), (entry[3], entry[4])
        for (name, index), array in zip(
            arrays, (target.old_original_array, target.new_original_array), strict=True
        ):
            array.instruction_name = parse_string(name)
            array.shape_index.extend(int(i) for i in (index or "").split(",") if i.strip())
        if entry[5]:
            write_module(parse_module(parse_string(entry[5])), target.recovery_module)
    if text[position:] != "}":
        raise HloSyntaxError(
            f"expected an origin_recovery_table, found '{text[position : position + 40]}'"
        )
