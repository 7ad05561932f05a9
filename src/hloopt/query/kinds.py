"""Kinds of values that selectors compare: which operators each takes, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import eq, ge, gt, le, lt
from typing import Any

from hloopt.amounts import parse_size
from hloopt.diagnostics import SelectorError, ShapeError, Span, did_you_mean, with_article
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.shapes.shape import Shape, format_shape, without_layout
from hloopt.ir.shapes.shape_parser import parse_shape

Accepts = Callable[[Any], object]
"""Something true for the values that a comparison holds for."""

NEGATED = {"!=": "=", "!~": "~"}
"""The operators that select what another one does not."""
_TEXT_OPERATORS = ("=", "!=", "~", "!~")
_NUMBER_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_COMPARE = {"=": eq, "<": gt, "<=": ge, ">": lt, ">=": le}  # number given, then value
_COMMENT = "/*"


@dataclass(frozen=True, slots=True)
class Word:
    """A value in the text of a selector; `*` stands for any text unless it is quoted."""

    text: str
    is_quoted: bool
    span: Span

    def error(self, message: str, help: str | None = None) -> SelectorError:
        return SelectorError(message, span=self.span, help=help)

    @property
    def is_glob(self) -> bool:
        return "*" in self.text and not self.is_quoted

    @property
    def regex(self) -> str:
        """The regular expression of what it stands for."""
        if self.is_quoted:
            return re.escape(self.text)
        return ".*".join(map(re.escape, self.text.split("*")))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its name for people, its operators, and what they accept.

    `accepting` takes one of the operators, none of `NEGATED`, with the words behind it: one for
    all but `=`. It raises SelectorError.
    """

    title: str
    operators: tuple[str, ...]
    accepting: Callable[[str, Sequence[Word]], Accepts]


def _matching(word: Word) -> Accepts:
    """Accept texts in which a regular expression finds something."""
    try:
        return re.compile(word.text).search
    except re.error as error:
        source, start, end = word.span
        place = start + word.is_quoted + (error.pos or 0)
        span = Span(source, min(place, end - 1), end)
        raise SelectorError(f"not a regular expression: {error.msg}", span=span) from None


def _one_of(words: Sequence[Word]) -> Accepts:
    """Accept texts that are one of the words, or what a glob stands for."""
    texts = frozenset(word.text for word in words if not word.is_glob)
    globs = "|".join(word.regex for word in words if word.is_glob)
    if not globs:
        return texts.__contains__
    matches = re.compile(globs, re.S).fullmatch
    return lambda text: text in texts or matches(text)


def _text(operator: str, words: Sequence[Word]) -> Accepts:
    return _one_of(words) if operator == "=" else _matching(words[0])


def _instruction_name(operator: str, words: Sequence[Word]) -> Accepts:
    """Accept names; the `%` before one may be there or not."""
    if operator == "=":
        words = [Word(w.text.removeprefix("%"), w.is_quoted, w.span) for w in words]
    return _text(operator, words)


def _attribute_text(operator: str, words: Sequence[Word]) -> Accepts:
    """Accept texts of attributes, in which blanks do not count."""
    if operator == "=":
        words = [
            word if word.is_quoted else Word(compact(word.text), False, word.span) for word in words
        ]
    return _text(operator, words)


def _line(operator: str, words: Sequence[Word]) -> Accepts:
    """Accept lines `FILE:LINE` that end in a word, which begins a part of the path.

    The line may be left out.
    """
    if operator != "=":
        return _matching(words[0])
    lines = "|".join(word.regex for word in words)
    return re.compile(rf"(?:.*[/\\])?(?:{lines})(?::\d+)?", re.S).fullmatch


def _shape(operator: str, words: Sequence[Word]) -> Accepts:
    """Accept shapes: with a layout in the text only those of that layout."""
    if operator != "=":
        matches = _matching(words[0])
        return lambda shape: matches(_shape_text(shape, layout=True))
    tests = [_shape_glob(word) if word.is_glob else _exact_shape(word) for word in words]
    return lambda shape: any(test(shape) for test in tests)


def _exact_shape(word: Word) -> Callable[[Shape], object]:
    try:
        wanted = parse_shape(word.text)
    except ShapeError as error:
        raise word.error(error.message, error.help or "for example f32[8,128]{1,0}") from None
    if "{" in word.text:
        return lambda shape: shape is wanted
    return lambda shape: without_layout(shape) is wanted


def _shape_glob(word: Word) -> Callable[[Shape], object]:
    has_layout = "{" in word.text
    glob = Word("".join(word.text.split()), False, word.span)
    matches = re.compile(glob.regex).fullmatch
    return lambda shape: matches(_shape_text(shape, layout=has_layout).replace(" ", ""))


def _shape_text(shape: Shape, *, layout: bool) -> str:
    """The shape as XLA prints it, without the comments that count the elements of tuples."""
    text = format_shape(shape, layout=layout)
    return re.sub(r"/\*.*?\*/", "", text) if _COMMENT in text else text


def _numbers(read: Callable[[str], int | None], what: str) -> Kind:
    def number(word: Word) -> int:
        found = read(word.text)
        if found is None:
            raise word.error(f"expected {what}, not '{word.text}'")
        return found

    def accepting(operator: str, words: Sequence[Word]) -> Accepts:
        if operator == "=":
            return frozenset(map(number, words)).__contains__
        return partial(_COMPARE[operator], number(words[0]))

    return Kind(what, _NUMBER_OPERATORS, accepting)


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text, re.A) else None


def choice(
    what: str,
    names: Callable[[], Collection[str]],
    classes: Mapping[str, Collection[str]] | None = None,
) -> Kind:
    """Texts of which there are only some; others are errors. A class stands for its members."""
    classes = classes or {}

    def members(word: Word) -> list[Word]:
        if word.text in classes:
            return [Word(name, True, word.span) for name in classes[word.text]]
        _check_choice(word, what, [*names(), *classes])
        return [word]

    def accepting(operator: str, words: Sequence[Word]) -> Accepts:
        if operator == "=":
            words = [member for word in words for member in members(word)]
        return _text(operator, words)

    return Kind(with_article(what), _TEXT_OPERATORS, accepting)


def _check_choice(word: Word, what: str, names: Collection[str]) -> None:
    """Raise SelectorError for a word that is, and stands for, none of some names."""
    if word.is_glob:
        matches = re.compile(word.regex).fullmatch
        if not any(map(matches, names)):
            raise word.error(f"no {what} matches '{word.text}'")
    elif word.text not in names:
        raise word.error(
            f"'{word.text}' is not {with_article(what)}", did_you_mean(word.text, names)
        )


def _flag(operator: str, words: Sequence[Word]) -> Accepts:
    raise AssertionError("a flag takes no operator")


TEXT = Kind("text", _TEXT_OPERATORS, _text)
NAME = Kind("a name", _TEXT_OPERATORS, _instruction_name)
ATTRIBUTE = Kind("text", _TEXT_OPERATORS, _attribute_text)
LINE = Kind("FILE:LINE", _TEXT_OPERATORS, _line)
SHAPE = Kind("a shape", _TEXT_OPERATORS, _shape)
NUMBER = _numbers(_integer, "an integer")
SIZE = _numbers(parse_size, "a size such as 1MiB")
FLAG = Kind("", (), _flag)
