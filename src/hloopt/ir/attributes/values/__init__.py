"""Attribute text as typed values: numbers, windows, labels, replica groups, aliasing, metadata.

Every parsing function is pure and remembers its result per distinct text, so the values are
shared: they are immutable. White space and comments may stand between any two tokens. A malformed
text raises HloSyntaxError with a message that names it; the caller knows the source and adds the
span. Linear in the length of the text.

A kind of value is imported when it is first asked for: most modules have few kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hloopt.ir.attributes.values.aliasing import Alias as Alias
    from hloopt.ir.attributes.values.aliasing import parse_aliasing as parse_aliasing
    from hloopt.ir.attributes.values.aliasing import parse_buffer_donor as parse_buffer_donor
    from hloopt.ir.attributes.values.aliasing import (
        parse_output_to_operand_aliasing as parse_output_to_operand_aliasing,
    )
    from hloopt.ir.attributes.values.metadata import OpMetadata as OpMetadata
    from hloopt.ir.attributes.values.metadata import format_metadata as format_metadata
    from hloopt.ir.attributes.values.metadata import parse_metadata as parse_metadata
    from hloopt.ir.attributes.values.numbers import Slice as Slice
    from hloopt.ir.attributes.values.numbers import format_int_lists as format_int_lists
    from hloopt.ir.attributes.values.numbers import format_ints as format_ints
    from hloopt.ir.attributes.values.numbers import parse_bool as parse_bool
    from hloopt.ir.attributes.values.numbers import parse_int as parse_int
    from hloopt.ir.attributes.values.numbers import parse_int_lists as parse_int_lists
    from hloopt.ir.attributes.values.numbers import parse_ints as parse_ints
    from hloopt.ir.attributes.values.numbers import parse_names as parse_names
    from hloopt.ir.attributes.values.numbers import parse_slices as parse_slices
    from hloopt.ir.attributes.values.padding import PaddingDimension as PaddingDimension
    from hloopt.ir.attributes.values.padding import parse_padding as parse_padding
    from hloopt.ir.attributes.values.replica_groups import ReplicaGroups as ReplicaGroups
    from hloopt.ir.attributes.values.replica_groups import (
        parse_replica_groups as parse_replica_groups,
    )
    from hloopt.ir.attributes.values.strings import (
        format_frontend_attributes as format_frontend_attributes,
    )
    from hloopt.ir.attributes.values.strings import (
        parse_frontend_attributes as parse_frontend_attributes,
    )
    from hloopt.ir.attributes.values.strings import parse_string as parse_string
    from hloopt.ir.attributes.values.strings import quote_string as quote_string
    from hloopt.ir.attributes.values.windows import ConvolutionLabels as ConvolutionLabels
    from hloopt.ir.attributes.values.windows import Window as Window
    from hloopt.ir.attributes.values.windows import WindowDimension as WindowDimension
    from hloopt.ir.attributes.values.windows import parse_dim_labels as parse_dim_labels
    from hloopt.ir.attributes.values.windows import parse_window as parse_window

_HOMES = {
    "Alias": "aliasing",
    "ConvolutionLabels": "windows",
    "OpMetadata": "metadata",
    "PaddingDimension": "padding",
    "ReplicaGroups": "replica_groups",
    "Slice": "numbers",
    "Window": "windows",
    "WindowDimension": "windows",
    "format_frontend_attributes": "strings",
    "format_int_lists": "numbers",
    "format_ints": "numbers",
    "format_metadata": "metadata",
    "parse_aliasing": "aliasing",
    "parse_bool": "numbers",
    "parse_buffer_donor": "aliasing",
    "parse_dim_labels": "windows",
    "parse_frontend_attributes": "strings",
    "parse_int": "numbers",
    "parse_int_lists": "numbers",
    "parse_ints": "numbers",
    "parse_metadata": "metadata",
    "parse_names": "numbers",
    "parse_output_to_operand_aliasing": "aliasing",
    "parse_padding": "padding",
    "parse_replica_groups": "replica_groups",
    "parse_slices": "numbers",
    "parse_string": "strings",
    "parse_window": "windows",
    "quote_string": "strings",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
