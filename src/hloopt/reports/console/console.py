"""A console for reports: lines end with text, break between words, and hold what can be seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.text import Text

from hloopt.reports.console.styled_text import as_it_is, escaped, fitting, wrapped


class PageConsole(Console):
    """A console whose lines have no blanks at their ends.

    A text that is too wide is broken between words, and a word that is wider than the page, such as
    the name of an instruction, is cut with `…`. With `soft_wrap` lines stay as they are: that is
    for paths. What is not printable is escaped, and no text is taken for rich's markup: names of a
    module may have brackets and colons.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)
        self.push_render_hook(_Hook())

    def on_broken_pipe(self) -> None:
        """Leave the exit code to `cli.main`; the base class exits with 1."""
        raise BrokenPipeError


class _Hook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Tidy(renderable) for renderable in renderables]


class _Tidy:
    """The printed text, in lines as a `PageConsole` has them."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self.renderable = renderable

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text | Segment]:
        if isinstance(self.renderable, Text):
            yield from _text_lines(self.renderable, console, options)
            return
        for line in Segment.split_lines(console.render(self.renderable, options)):
            yield from _without_blanks(line)
            yield Segment.line()


def _text_lines(text: Text, console: Console, options: ConsoleOptions) -> Iterator[Text]:
    for line in text.split(allow_blank=True):
        shown = escaped(line)
        if options.overflow == "ignore":
            yield as_it_is(shown)
        elif text.no_wrap or options.no_wrap:
            yield fitting(shown, options.max_width)
        else:
            yield from map(as_it_is, wrapped(shown, options.max_width, console))


def _without_blanks(line: list[Segment]) -> list[Segment]:
    """`line` up to the last thing in it that can be seen."""
    kept = list(line)
    while kept:
        last = kept.pop()
        has_background = last.style is not None and last.style.bgcolor is not None
        shown = last.text if has_background else last.text.rstrip()
        if shown or last.control:
            return [*kept, last if shown == last.text else Segment(shown, last.style)]
    return []
