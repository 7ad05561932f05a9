"""The line that begins a module, and the stack-frame tables behind it."""

from __future__ import annotations

from hloopt.ir.module import Module
from hloopt.ir.shape import Shape, format_shape
from hloopt.text.print_options import PrintOptions

HEADER_ATTRIBUTES = (
    *("is_scheduled", "input_output_alias", "buffer_donor", "alias_passthrough_params"),
    *("entry_computation_layout", "allow_spmd_sharding_propagation_to_parameters"),
    *("allow_spmd_sharding_propagation_to_output", "replica_count", "num_partitions"),
    *("frontend_attributes", "origin_recovery_table", "debug_attributes"),
)
"""The attributes a module's header may have, in printing order."""

_DEFAULTS = {
    "is_scheduled": "false",
    "alias_passthrough_params": "false",
    "replica_count": "1",
    "num_partitions": "1",
    "allow_spmd_sharding_propagation_to_parameters": "{false}",
    "allow_spmd_sharding_propagation_to_output": "{false}",
}


def format_header(module: Module, options: PrintOptions) -> str:
    """The header and the tables, without a line end."""
    if options.keep_text and module.header_text is not None:
        header = module.header_text
    else:
        header = _written_anew(module, options)
    if module.stack_frames and options.print_metadata:
        header += "\n\n" + module.stack_frames
        if not options.keep_text:
            header += "\n"
    return header


def _written_anew(module: Module, options: PrintOptions) -> str:
    values = dict(module.attributes)
    if not options.keep_text:
        values.setdefault("entry_computation_layout", entry_layout(module))
    parts = [f"HloModule {module.name if options.print_ids else ''}"]
    for key in HEADER_ATTRIBUTES:
        value = values.get(key)
        if value is not None and value != _DEFAULTS.get(key):
            parts.append(f"{key}={value}")
    return ", ".join(parts)


def entry_layout(module: Module) -> str:
    """The value of `entry_computation_layout` that parameters and root of the entry imply."""
    parameters = [parameter.shape for parameter in module.entry.parameters]
    return format_entry_layout(parameters, module.entry.root.shape)


def format_entry_layout(parameters: list[Shape], result: Shape) -> str:
    """The value of `entry_computation_layout` for these shapes."""
    texts = [
        f"/*index={i}*/{format_shape(shape)}" if i and i % 5 == 0 else format_shape(shape)
        for i, shape in enumerate(parameters)
    ]
    return f"{{({', '.join(texts)})->{format_shape(result)}}}"
