"""HLO text to IR and back."""

from hloopt.text.parser import parse_module
from hloopt.text.print_options import PrintOptions
from hloopt.text.printer import format_computation, format_instruction, print_module


def roundtrip_text(text: str) -> str:
    """`text` read through and written anew, nothing of it kept. Raises HloSyntaxError."""
    from hloopt.text.syntax_check import check_syntax

    module = parse_module(text)
    check_syntax(module)
    return print_module(module, PrintOptions.formatted()._replace(keep_order=False))


__all__ = [
    "PrintOptions",
    "format_computation",
    "format_instruction",
    "parse_module",
    "print_module",
    "roundtrip_text",
]
