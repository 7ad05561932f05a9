"""Text that is kept as it was read, with comments put into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter

from hloopt.ir.computation import Computation
from hloopt.ir.ordering import stable_order
from hloopt.text.instruction_printer import InstructionPrinter


def with_source_comments(
    text: str,
    computations: Iterable[Computation],
    printer: InstructionPrinter,
    span: tuple[int, int],
) -> str:
    """A span of the text with the source line behind each instruction, in place of an older one.

    `computations` stand in the span as they were read. O(length of the span).
    """
    from hloopt.text.comments import SOURCE_COMMENT

    parts: list[str] = []
    done, last = span
    for end, comment in sorted(_comments(text, computations, printer), key=itemgetter(0)):
        parts += (text[done:end], comment)
        old = SOURCE_COMMENT.match(text, end)
        done = end if old is None else old.end()
    return "".join([*parts, text[done:last]])


def _comments(
    text: str, computations: Iterable[Computation], printer: InstructionPrinter
) -> Iterator[tuple[int, str]]:
    """The ends of instructions in the text, with what is to stand there."""
    for computation in computations:
        if computation.source_range is None:
            continue
        place = computation.source_range[0]
        for instruction in stable_order(computation):
            if instruction.text is None:  # it stands within another one
                continue
            place = text.index(instruction.text, place) + len(instruction.text.rstrip())
            yield place, printer.source_comment(instruction)
