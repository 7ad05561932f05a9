"""Notes below the tables of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.diagnostics import printable

if TYPE_CHECKING:
    from rich.console import Console


def print_footnote(console: Console, note: str, *, width: int | None = None) -> None:
    """Print a note; unprintable characters, as in names that it quotes, are escaped."""
    from rich.text import Text

    console.print(Text(f"* {printable(note)}", style="dim"), width=width)
