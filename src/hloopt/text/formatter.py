"""A text in XLA's form, its comments kept and nothing moved that need not be."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import Source
from hloopt.split import split_source
from hloopt.text.comments import Comments, Element, Place, attach_comments
from hloopt.text.header import format_header
from hloopt.text.instruction_printer import InstructionPrinter
from hloopt.text.module_printer import printed_computations
from hloopt.text.parser import parse_module, rewrite_module
from hloopt.text.print_options import PrintOptions


def format_source(source: Source, options: PrintOptions) -> str:
    """The modules of `source`, which `// -----` lines may separate, in the style of `options`.

    Idempotent. Comments on lines of their own stay before what follows them, others behind what
    they stand behind; within an instruction they move before it. Linear. Raises HloSyntaxError.
    """
    file = split_source(source)
    return file.join([_format_module(chunk, options) for chunk in file.chunks])


def _format_module(source: Source, options: PrintOptions) -> str:
    places: list[Place] | None = [] if "//" in source.text or "/*" in source.text else None
    module = parse_module(source, places)
    comments = attach_comments(source.text, places or [])
    header = _with_comments(
        comments, module, format_header(module, options, rewrite_module).rstrip(), ""
    )
    blocks = ["\n".join(header)]
    printer = InstructionPrinter(options)
    for computation in printed_computations(module, options):
        lines = [*_with_comments(comments, computation, printer.head(computation), "")]
        for instruction, text in printer.lines(computation):
            lines += _with_comments(comments, instruction, text, "  ")
        lines += _with_comments(comments, (computation,), printer.tail(computation), "  ")
        blocks.append("\n".join(lines))
    if comments.last:
        blocks.append("\n".join(comments.last).rstrip("\n"))
    return "\n\n".join(blocks) + "\n"


def _with_comments(comments: Comments, element: Element, text: str, margin: str) -> Iterator[str]:
    for comment in comments.before.get(element, ()):
        yield margin + comment if comment else ""
    behind = comments.behind.get(element, ())
    first, *rest = text.split("\n", 1)
    yield "  ".join([first, *behind])
    yield from rest
