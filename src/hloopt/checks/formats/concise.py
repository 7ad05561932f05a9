"""A line for each finding, `FILE:LINE:COLUMN: KIND: MESSAGE`, as compilers write them."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.checks.formats.lines import entries_of, place_text, summary
from hloopt.checks.results import CheckedModule
from hloopt.diagnostics import printable


def write_concise(checked: Sequence[CheckedModule]) -> str:
    """The lines, and a summary."""
    lines = [
        f"{place_text(each.location)}: {each.kind}: {each.message}" for each in entries_of(checked)
    ]
    return "".join(f"{printable(line)}\n" for line in (*lines, summary(checked)))
