"""Errors a user can cause, where they are in the source, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Self


class Source:
    """A text and what to call it in messages.

    `first_line` is the number of the text's first line, so that a chunk of a split file reports
    the lines of that chunk.
    """

    __slots__ = ("first_line", "name", "text")

    def __init__(self, name: str, text: str, first_line: int = 1) -> None:
        self.name = name
        self.text = text
        self.first_line = first_line

    def location(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both counted from 1. O(offset)."""
        start = self.text.rfind("\n", 0, offset) + 1
        return self.text.count("\n", 0, offset) + self.first_line, offset - start + 1

    def line_at(self, offset: int) -> str:
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")


class Span(NamedTuple):
    """A half-open range of a source; lines and columns are worked out only when shown."""

    source: Source
    start: int
    end: int

    @classmethod
    def in_line(cls, source: Source, start: int, end: int) -> Self:
        """The range up to the end of the line that it begins in, one character at least."""
        line_end = source.text.find("\n", start)
        end = min(end, line_end if line_end >= 0 else end)
        return cls(source, start, max(end, start + 1))

    @property
    def location(self) -> tuple[int, int]:
        return self.source.location(self.start)


class HloError(Exception):
    """Something the user can mend: malformed text, a wrong option, an invalid module.

    Message, position, hint and code are kept apart; text is made by `render_error`. `code` names
    the kind of mistake, which `hloopt explain` describes (see `explanations`); without one of its
    own an error has that of its class.
    """

    code: str | None = None
    file: str | None = None
    """The name of its place where there is no span."""
    note: str | None = None
    """Notes about it."""

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        help: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.help = help
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        own = (self.message, self.span, self.help, self.code)
        return _rebuild, (type(self), *own, self.file, self.note)

    def at(self, span: Span | None) -> Self:
        """This error, now with a place; one that it has already is better known and stays."""
        self.span = self.span or span
        return self

    def in_file(self, path: str) -> Self:
        """This error, now with the file that it is about; one that it has already stays."""
        self.file = self.file or path
        return self

    def noted(self, note: str | None) -> Self:
        """This error, now with a note."""
        self.note = note
        return self

    def coded(self, code: str) -> Self:
        """This error under `code`, unless it has a code of its own already."""
        if self.code == type(self).code:
            self.code = code
        return self

    @property
    def location(self) -> tuple[int, int] | None:
        """Line and column of the mistake, where there is one."""
        return self.span.location if self.span else None


def _rebuild(
    kind: type[HloError],
    message: str,
    span: Span | None,
    help: str | None,
    code: str | None,
    file: str | None,
    note: str | None,
) -> HloError:
    error = kind(message, span=span, help=help, code=code)
    error.file, error.note = file, note
    return error


class HloSyntaxError(HloError):
    """The text is not HLO."""

    code = "HLO100"


class ShapeError(HloSyntaxError):
    """The text of a shape is malformed."""

    code = "HLO109"


class LiteralError(HloSyntaxError):
    """The text of a literal is malformed, or does not fit its shape."""

    code = "HLO110"


class HloVerifyError(HloError):
    """The module breaks a rule of HLO."""

    code = "HLO200"


class PipelineError(HloError):
    """A pipeline, a pass name or a pass option is wrong."""

    code = "HLO600"


class SelectorError(HloError):
    """The text of a selector of instructions is not one."""

    code = "HLO609"


class PassFailure(HloError):
    """A pass failed; the module is as it was before the pass. `__cause__` is the exception."""

    code = "HLO700"


class PassRefused(PassFailure):
    """A pass cannot do what a module and its options ask for; the pass itself is all right."""

    code = "HLO703"


class Defect(HloError):
    """A defect of hloopt itself, whatever the input was."""

    code = "HLO900"


class Miscompiled(HloError):
    """A module computes something else than before."""

    code = "HLO702"


def out_of_memory(what: str = "") -> HloError:
    """In place of a MemoryError; `what` was being worked on."""
    return HloError(
        f"{what}: memory ran out" if what else "memory ran out",
        help="is the input what it should be? A packed file can be far larger than it looks",
        code="HLO015",
    )


def lost_process(path: str) -> HloError:
    """The error for a file whose process was ended from outside."""
    return HloError(
        f"{path}: the process that worked on it was ended from outside",
        help="if memory ran out, use fewer processes (-j)",
        code="HLO008",
    )


def raised_at(error: BaseException, package: str) -> str | None:
    """`FILE:LINE` in the code of a Python package where an exception comes from; None if nowhere.

    Of the calls on the way to it, the last in that package; a mistake of syntax is where it is.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    found: str | None = None
    traceback = error.__traceback__
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        if module == package or module.startswith(f"{package}."):
            found = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


def counted(number: int, what: str, many: str | None = None) -> str:
    """`1 file`, `1,200 files`; `many` where an s is not enough: `1 value is`, `2 values are`."""
    return f"{number:,} {what if number == 1 else many or f'{what}s'}"


def part_of(number: int, total: int, what: str, many: str | None = None) -> str:
    """`1 of 2 inputs is`, `2 of 3 inputs are`; `many` as in `counted`."""
    return f"{number:,} of {counted(total, what, many)} {'is' if number == 1 else 'are'}"


def with_article(noun: str) -> str:
    """`a sort`, `an add`, by the first letter."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


_LONGEST_NAME = 500  # the comparison takes time


def did_you_mean(name: str, candidates: Iterable[str], *, prefix: str = "") -> str | None:
    """A hint naming the candidate nearest to `name`, or None where nothing is near.

    `prefix` is what names have in front of them in the text: `%`.
    """
    from difflib import get_close_matches

    if len(name) > _LONGEST_NAME:
        return None
    near = get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return f"did you mean '{prefix}{near[0]}'?" if near else None


# -- shown to people ------------------------------------------------------------------------------


def printable(text: str) -> str:
    r"""`text` with an escape, such as `\x1b` or `\u202e`, for each character that no eye sees."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or _is_space(c) else _escaped(c) for c in text)


def printable_line(line: str) -> str:
    """A line of a file without control characters; tabulators stay."""
    return "\t".join(map(printable, line.split("\t")))


def _is_space(character: str) -> bool:
    """Whether it is a blank of a width of its own, as between CJK words."""
    import unicodedata

    return unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def render_error(error: HloError, severity: str = "error") -> str:
    """`error` as text: message, place, source line and caret, hint. It may quote any input."""
    code = f"[{error.code}]" if error.code else ""
    lines = [f"{severity}{code}: {_shown(error.message)}"]
    if error.span:
        lines += _excerpt(error.span)
    elif error.file and error.file not in error.message:
        lines.append(f"  --> {printable(error.file)}")
    if error.note:
        lines.append(f"   = note: {_shown(error.note)}")
    if error.help:
        lines.append(f"   = help: {_shown(error.help)}")
    return "\n".join(lines)


def _shown(text: str) -> str:
    """A text of one line, cut where words of the input have no end."""
    text = re.sub(r"\S{300,}", lambda match: f"{match[0][:100]}…{match[0][-20:]}", text)
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[: _LONGEST_MESSAGE - 100]}…{text[-20:]}"
    return printable(text)


_LONGEST_MESSAGE = 2000
_WIDTH = 96  # characters of a source line shown around the caret


def _excerpt(span: Span) -> list[str]:
    line, column = span.location
    text = span.source.line_at(span.start)
    length = max(1, min(span.end - span.start, len(text) - column + 1))
    place = min(column - 1, len(text))  # carriage returns behind it are not shown
    first = max(0, min(place - _WIDTH // 3, len(text) - _WIDTH))
    shown = text[first : first + _WIDTH].expandtabs(1)
    caret = place - first
    marked = shown[caret : caret + length]
    before, under = printable(shown[:caret]), printable(marked)
    margin = " " * len(str(line))
    return [
        f"{margin}--> {printable(span.source.name)}:{line}:{column}",
        f"{margin} |",
        f"{line} | {printable(shown)}",
        f"{margin} | {' ' * len(before)}{'^' * max(1, len(under))}",
    ]
