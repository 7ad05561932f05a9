"""HLO text to IR and back."""

from hloopt.text.parser import parse_module
from hloopt.text.print_options import PrintOptions
from hloopt.text.printer import format_computation, format_instruction, print_module


def roundtrip_text(text: str) -> str:
    """`text` read and written anew, nothing of it kept. Raises HloSyntaxError."""
    return print_module(parse_module(text), PrintOptions.formatted()._replace(keep_order=False))


__all__ = [
    "PrintOptions",
    "format_computation",
    "format_instruction",
    "parse_module",
    "print_module",
    "roundtrip_text",
]
