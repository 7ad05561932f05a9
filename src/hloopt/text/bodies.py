"""Bodies of computations in the general lane, and computations written in place of a name."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.patterns import pattern
from hloopt.text.instruction_parser import InstructionParser
from hloopt.text.reading import Reading

_THREAD = pattern(r",\s*execution_thread=")
_MAXIMUM_NESTING = 64  # computations written inside each other


def read_body(reading: Reading, computation: Computation) -> None:
    """Read `{ … }` at the cursor, and what may follow the brace. Raises HloSyntaxError."""
    cursor = reading.cursor
    cursor.skip()
    open_brace = cursor.position
    cursor.expect("{")
    parser = InstructionParser(reading, computation, read_inline)
    cursor.skip()
    while not cursor.looking_at("}"):
        if cursor.at_end():
            raise cursor.error(
                f"the body of computation '%{computation.name}' is never closed",
                open_brace,
                code="HLO115",
            )
        parser.parse()
        cursor.skip()
    if parser.is_empty:
        raise cursor.error(
            f"computation '%{computation.name}' has no instruction", open_brace, code="HLO114"
        )
    cursor.position += 1
    end = cursor.position
    reading.note_place(end - 1, end, (computation,))
    cursor.skip()
    if _THREAD.match(cursor.text, cursor.position):
        cursor.expect(",")
        cursor.attribute_name()
        if not cursor.looking_at('"') and not cursor.looking_at("'"):
            raise cursor.error(f"expected a string, found {cursor.found()}")
        computation.execution_thread = cursor.string()
    else:
        cursor.position = end
    parser.finish(is_pristine=True)


def read_inline(reading: Reading) -> Computation:
    """A computation written in place, at the cursor: `{ … }`. Raises HloSyntaxError."""
    start = reading.cursor.position
    reading.depth += 1
    if reading.depth > _MAXIMUM_NESTING:
        raise reading.cursor.error(
            f"computations are nested more than {_MAXIMUM_NESTING} deep", start, code="HLO116"
        )
    computation = Computation(reading.module, "_")
    read_body(reading, computation)
    reading.depth -= 1
    computation.source_range = (start, reading.cursor.position)
    reading.add_nameless(computation)
    computation.is_pristine = False  # its text is part of the enclosing computation's
    return computation
