"""IR to HLO text."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.text.instruction_printer import InstructionPrinter
from hloopt.text.module_printer import write_computation, write_module
from hloopt.text.parser import rewrite_module
from hloopt.text.print_options import PrintOptions

_KEEP = PrintOptions.keep()


def print_module(module: Module, options: PrintOptions = _KEEP) -> str:
    """The module as HLO text. O(length of the result).

    Raises HloVerifyError where `older_syntax` cannot say what the module holds.
    """
    return write_module(module, options, rewrite_module)


def format_computation(computation: Computation, options: PrintOptions = _KEEP) -> str:
    """A computation as HLO text, without a line end after its closing brace."""
    return write_computation(computation, InstructionPrinter(options))


def format_instruction(instruction: Instruction, options: PrintOptions = _KEEP) -> str:
    """An instruction written anew, from its name to its last attribute.

    With canonical names all of its computation is looked at, O(instructions).
    """
    printer = InstructionPrinter(options)
    if not options.canonicalize_instruction_names:
        return printer.instruction(instruction)
    return next(text for i, text in printer.lines(instruction.parent, 0) if i is instruction)
