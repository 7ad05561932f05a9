"""Modules and computations as HLO text, in any style."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.ordering import computation_post_order, stable_computation_order, stable_order
from hloopt.text.header import format_header
from hloopt.text.instruction_printer import InstructionPrinter
from hloopt.text.kept_text import with_source_comments
from hloopt.text.print_options import PrintOptions

if TYPE_CHECKING:
    from hloopt.text.header_values import Rewrite


def write_module(module: Module, options: PrintOptions, rewrite: Rewrite) -> str:
    """The module as HLO text; `rewrite` is for modules in its header. O(length of the result).

    Raises HloVerifyError where `older_syntax` cannot say what the module holds.
    """
    if options.older_syntax:
        from hloopt.text.older_syntax import in_older_syntax

        module = in_older_syntax(module)
    printer = InstructionPrinter(options)
    if options.keep_text and module.is_pristine and module.source is not None:
        if not options.inline_source:
            return module.source.text
        text = module.source.text
        return with_source_comments(text, module.computations.values(), printer, (0, len(text)))
    parts = [format_header(module, options, rewrite), "\n\n"]
    for computation in printed_computations(module, options):
        parts += (write_computation(computation, printer), "\n\n")
    if options.keep_text:
        parts.pop()
        parts.append("\n")
    return "".join(parts)


def printed_computations(module: Module, options: PrintOptions) -> Iterable[Computation]:
    """The computations that have a text of their own, in printing order."""
    if options.keep_text:
        for computation in module.computations.values():
            if computation.is_sugar and not computation.is_pristine:
                for start in computation.callers:
                    start.parent.is_pristine = False  # its text is short for what changed
        return [c for c in stable_computation_order(module) if not _stands_in_its_caller(c)]
    if options.canonicalize_computations:
        order = list(module.computations.values())
    elif options.keep_order:
        order = stable_computation_order(module)
    else:
        order = computation_post_order(module)
    if not options.syntax_sugar_async_ops:
        return order
    from hloopt.text.async_printing import is_printed_in_its_start

    readable = options.always_readable
    return [c for c in order if not (c.callers and is_printed_in_its_start(c, readable=readable))]


def _stands_in_its_caller(computation: Computation) -> bool:
    """Whether the text of an `X-start` that is kept says all there is to this computation."""
    return computation.is_sugar and any(_keeps_text(caller) for caller in computation.callers)


def _keeps_text(instruction: Instruction) -> bool:
    """Whether the source text of an instruction, or of the chain of an async-start, still holds.

    Asynchronous chains keep or lose their text as a whole: a mix of sugar and general form cannot
    be parsed again. O(length of the chain).
    """
    if instruction.opcode is not Opcode.ASYNC_START:
        return instruction.text is not None
    return all(step.text is not None for step in _chain(instruction)) and all(
        not called.is_sugar or called.is_pristine for called in instruction.called
    )


def _chain(start: Instruction) -> list[Instruction]:
    from hloopt.ir.async_chains import async_followers

    return [start, *async_followers(start)]


def write_computation(computation: Computation, printer: InstructionPrinter) -> str:
    """A computation without a line end after its closing brace."""
    options = printer.options
    if not options.keep_text:
        body = [text for _, text in printer.lines(computation)]
    elif computation.is_pristine and computation.source_range:
        source = computation.module.source
        assert source is not None
        span = computation.source_range
        if not options.inline_source:
            return source.text[slice(*span)]
        return with_source_comments(source.text, (computation,), printer, span)
    else:
        order = stable_order(computation)
        for start in order:
            if start.opcode is Opcode.ASYNC_START and not _keeps_text(start):
                for step in _chain(start):
                    step.text = None  # before any of its chain is written
        body = [
            f"  ROOT {text}" if instruction.is_root else f"  {text}"
            for instruction in order
            for text in [_kept_text(instruction, printer) + printer.source_comment(instruction)]
        ]
    return "\n".join([printer.head(computation), *body, printer.tail(computation)])


def instruction_line(instruction: Instruction) -> str:
    """An instruction as `print_module` shows it, in one line, without `ROOT`.

    O(its text), of asynchronous operations O(their chain). Nothing is remembered.
    """
    text = instruction.text
    if instruction.opcode in ASYNC:
        from hloopt.ir.async_chains import find_async_start

        start = find_async_start(instruction)
        if start is not None and not _keeps_text(start):
            text = None
    if text is None:
        text = InstructionPrinter(PrintOptions.keep()).instruction(instruction)
    return " ".join(line.strip() for line in text.splitlines())


def _kept_text(instruction: Instruction, printer: InstructionPrinter) -> str:
    """The text it was read from, else one written once per change."""
    if instruction.text is not None:
        return instruction.text
    if instruction.opcode is Opcode.ASYNC_START:
        for called in instruction.called:
            called.is_sugar = False
    instruction.text = printer.instruction(instruction)
    return instruction.text
