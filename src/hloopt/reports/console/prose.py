"""Markdown as plain text: paragraphs wrapped, all else as it is."""

from __future__ import annotations

from textwrap import TextWrapper


def wrapped_prose(markdown: str, width: int) -> str:
    """Markdown whose paragraphs, headings and items of lists have lines of at most `width` columns.

    Lines of code and tables stay as they are, and so do words that are longer than a line.
    """
    lines: list[str] = []
    paragraph: list[str] = []
    is_code = False
    for line in [*markdown.splitlines(), ""]:
        is_fence = line.lstrip().startswith("```")
        is_indented_code = not paragraph and line.startswith("    ")
        is_kept = is_code or is_fence or is_indented_code or not line or line.startswith("|")
        if paragraph and (is_kept or line.startswith(_BEGINS)):
            lines += _lines_of(paragraph, width)
            paragraph = []
        if is_fence:
            is_code = not is_code
        if is_kept:
            lines.append(line)
        else:
            paragraph.append(line)
    return "\n".join(lines[:-1]) + "\n"


_BEGINS = ("- ", "# ")
"""Lines that begin a paragraph of their own, whatever is above."""


def _lines_of(paragraph: list[str], width: int) -> list[str]:
    indent = "  " if paragraph[0].startswith(_BEGINS) else ""
    wrapper = TextWrapper(
        width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(" ".join(line.strip() for line in paragraph))
