"""The line that begins a module, and the stack-frame tables behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.ir.module import Module
from hloopt.patterns import pattern
from hloopt.text.cursor import RESERVED_NAMES
from hloopt.text.print_options import PrintOptions

if TYPE_CHECKING:
    from hloopt.text.header_values import Rewrite

HEADER_ATTRIBUTES = (
    *("is_scheduled", "input_output_alias", "buffer_donor", "alias_passthrough_params"),
    *("entry_computation_layout", "allow_spmd_sharding_propagation_to_parameters"),
    *("allow_spmd_sharding_propagation_to_output", "replica_count", "num_partitions"),
    *("frontend_attributes", "origin_recovery_table", "debug_attributes"),
)
"""The attributes a module's header may have, in printing order."""


_ARRAY = r"[a-z][a-z0-9]*\[[\d,<=?]*\](?:\{[\d,]*(?::[A-Z(\d,)]*)?\})?"
_SHAPES = rf"(?:{_ARRAY}|[(), ]|/\*index=\d+\*/)*"
_INDEX = r"\{(?:\d{1,9}(?:,\d{1,9})*)?\}"
_USUAL = {
    "is_scheduled": pattern(r"true|false"),
    "buffer_donor": pattern(rf"\{{ (?:\(\d{{1,9}}, {_INDEX}\)(?:, (?=\()| (?=\}})))+\}}"),
    "entry_computation_layout": pattern(rf"\{{\({_SHAPES}\)->{_SHAPES}\}}"),
    "allow_spmd_sharding_propagation_to_parameters": pattern(r"\{(?:(?:true|false)[,}])+"),
    "allow_spmd_sharding_propagation_to_output": pattern(r"\{(?:(?:true|false)[,}])+"),
    "replica_count": pattern(r"\d{1,9}"),
    "num_partitions": pattern(r"\d{1,9}"),
}
"""Values as XLA prints them, which need no further look when they are read; shapes are taken on
trust."""


def check_header_value(key: str, text: str, rewrite: Rewrite) -> None:
    """Raise HloSyntaxError where `text` cannot be the value of attribute `key`.

    Fast for what XLA printed: a header may have ten thousand entries.
    """
    if key == "input_output_alias":
        from hloopt.ir.attributes.values.aliasing import printed_aliases

        if printed_aliases(text) is not None:
            return
    usual = _USUAL.get(key)
    if usual is None or usual.fullmatch(text) is None:
        from hloopt.text.header_values import canonical_header_value

        canonical_header_value(key, text, rewrite)


def format_header(module: Module, options: PrintOptions, rewrite: Rewrite) -> str:
    """The header and the tables, without a line end."""
    if options.keep_text:
        header = module.header_text or _as_written(module)
        tables = module.stack_frames
    else:
        header = _canonical(module, options, rewrite)
        tables = ""
        if module.stack_frames and options.print_metadata:
            from hloopt.ir.sources.canonical_frames import canonical_frames

            tables = canonical_frames(module).tables
    if tables and options.print_metadata:
        header += f"\n\n{tables}" if options.keep_text else f"\n\n{tables}\n"
    return header


def _as_written(module: Module) -> str:
    values = module.attributes
    parts = [f"{key}={values[key]}" for key in HEADER_ATTRIBUTES if key in values]
    return ", ".join((f"HloModule {_name(module)}", *parts))


def _name(module: Module) -> str:
    """The module's name; a reserved word with a sigil, which XLA reads but does not write."""
    return f"%{module.name}" if module.name in RESERVED_NAMES else module.name


def _canonical(module: Module, options: PrintOptions, rewrite: Rewrite) -> str:
    """The header as XLA writes it, its values looked into."""
    from hloopt.text.header_values import canonical_header_value

    values = dict(module.attributes)
    values.setdefault("entry_computation_layout", entry_layout(module))
    header = f"HloModule {_name(module) if options.print_ids else ''}"
    key_of_last = ""
    for key in HEADER_ATTRIBUTES:
        value = canonical_header_value(key, values[key], rewrite) if key in values else None
        if value is not None:
            key_of_last = key
            separator = ",\n" if key == "debug_attributes" else ", "
            header += f"{separator}{key}={value}"
    return f"{header}\n" if key_of_last == "origin_recovery_table" else header


def entry_layout(module: Module) -> str:
    """The value of `entry_computation_layout` that parameters and root of the entry imply."""
    from hloopt.ir.shapes.entry_layout import format_entry_layout

    parameters = [parameter.shape for parameter in module.entry.parameters]
    return format_entry_layout(parameters, module.entry.root.shape)
