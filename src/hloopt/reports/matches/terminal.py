"""The report on selected instructions as a terminal page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted, printable
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.query import values
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import columns, head, human_bytes, page_width
from hloopt.reports.matches.findings import Matches

if TYPE_CHECKING:
    from rich.console import Console

_NAME, _OPCODE = 36, 20
"""Names and opcodes that are longer are not aligned."""
_LEAST_SHAPE = 16
_OPCODES = 6
"""The opcodes whose numbers are named."""


def render_matches(found: Matches, console: Console) -> None:
    """Print a line for each instruction, and how many there are of each opcode.

    Names are whole; on a terminal shapes are cut to its width.
    """
    from rich.text import Text

    if not found.instructions:
        console.print("no instruction matches")
        return
    layout = _Layout.of(found.instructions, page_width(console) if console.is_terminal else None)
    for computation, instructions in groupby(found.instructions, key=lambda i: i.parent):
        console.print(Text(f"in %{computation.name}", style="bold"), soft_wrap=True)
        console.print(Text("\n".join(map(layout.line, instructions))), soft_wrap=True)
    count = counted(len(found.instructions), "instruction")
    rows = list(found.opcodes.items())
    opcodes = ", ".join(f"{number:,} {opcode}" for opcode, number in rows[:_OPCODES])
    if len(rows) > _OPCODES:
        opcodes += ", …"
    where = counted(found.computations, "computation")
    print_footnote(console, f"{count} in {where}: {opcodes}")
    if found.is_ambiguous:
        print_footnote(
            console, "the text has the name in each of them: name=NAME selects by a name above"
        )


def opcode_words(instruction: Instruction) -> str:
    """The opcode, of a custom call with its target."""
    target = custom_call_target(instruction)
    return f"{instruction.opcode} {printable(target)}" if target else instruction.opcode.value


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of all lines."""

    name: int
    opcode: int
    width: int | None
    """Of a line; None for any."""

    @classmethod
    def of(cls, instructions: Sequence[Instruction], width: int | None) -> _Layout:
        name = max(columns(printable(f"%{each.name}")) for each in instructions)
        opcode = max(len(opcode_words(each)) for each in instructions)
        return cls(min(name, _NAME), min(opcode, _OPCODE), width)

    def line(self, instruction: Instruction) -> str:
        """Name, opcode, bytes, shape and source of an instruction."""
        name = printable(f"%{instruction.name}")
        name += " " * (self.name - columns(name))
        size = human_bytes(values.size(instruction.shape)[0])
        start = f"{name}  {opcode_words(instruction):<{self.opcode}}  {size:>10}  "
        source = next(iter(values.source(instruction)), "")
        end = f"  {printable(source)}" if source else ""
        shape = instruction.shape.text
        if self.width is not None:
            shape = head(shape, max(self.width - columns(start) - columns(end), _LEAST_SHAPE))
        return f"{start}{shape}{end}"
