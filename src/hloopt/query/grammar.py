"""The grammar of selectors: from text to terms."""

from __future__ import annotations

import re

from hloopt.diagnostics import HloError, SelectorError, Source
from hloopt.patterns import pattern
from hloopt.query.keys import Key, opcode_names
from hloopt.query.kinds import FLAG, NEGATED, Word
from hloopt.query.terms import All, Any, Comparison, Not, Term
from hloopt.query.vocabulary import INSTRUCTIONS, Vocabulary
from hloopt.token_reader import TokenReader

_BARE = pattern(r"[\w.\-*%|]+")
_OPERATOR = pattern(r"!=|!~|<=|>=|<>|==|=~|[=~<>:]")
_MEANT = {"==": "=", "=~": "~", ":": "=", "<>": "!="}
_OR = pattern(r"or(?![\w.\-*%|=~<>!:])")
_NOT = pattern(r"not(?=\s*\()|not(?=\s+[\w*%])")
_QUOTED = pattern(r'"((?:[^"]|"")*)"|' + r"'((?:[^']|'')*)'", re.S)
_OPENING, _CLOSING = "([{", ")]}"


def parse_terms(source: Source) -> Term:
    """The terms that a text stands for.

        selector   := conditions ('or' conditions)*
        conditions := condition (',' condition)*
        condition  := 'not' condition | '(' selector ')' | comparison
        comparison := KEY OPERATOR VALUE ('|' VALUE)* | KEY | OPCODE ('|' OPCODE)*
                    | '%' NAME ('|' '%' NAME)*

    A value ends at a blank, a comma or `)`, unless it is quoted or within brackets of its own; the
    quote itself is written twice. Raises SelectorError with the place of the mistake.
    """
    reader = SelectorReader(source)
    term = reader.selector()
    if not reader.is_at_end:
        raise reader.unexpected()
    return term


class SelectorReader(TokenReader):
    """A reader of selectors of what a vocabulary is for."""

    error_class = SelectorError

    def __init__(self, source: Source, vocabulary: Vocabulary = INSTRUCTIONS) -> None:
        super().__init__(source)
        self.vocabulary = vocabulary

    def unexpected(self) -> HloError:
        """The error of something that stands where a condition has ended."""
        start = self.position
        if self.text[start] == ")":
            return self.error("this parenthesis was never opened", start, start + 1)
        word = _BARE.match(self.text, start)
        return self.error(
            "expected ',' or 'or' before the next condition",
            start,
            word.end() if word else start + 1,
            "',' means and; a value with blanks needs quotes",
        )

    # -- terms ----------------------------------------------------------------------------------

    def selector(self) -> Term:
        self.skip()
        terms = [self.conditions()]
        while self.accept(_OR):
            terms.append(self.conditions())
        return terms[0] if len(terms) == 1 else Any(terms)

    def conditions(self) -> Term:
        terms = [self.condition()]
        while self.accept(","):
            terms.append(self.condition())
        return terms[0] if len(terms) == 1 else All(terms)

    def condition(self) -> Term:
        start = self.position
        with self.deeper("the selector is nested too deeply", start, start + 1):
            if self.accept(_NOT):
                return Not(self.condition())
            if not self.accept("("):
                return self.comparison()
            term = self.selector()
            if not self.accept(")"):
                raise self.error("this parenthesis is never closed", start, start + 1)
            return term

    def comparison(self) -> Term:
        start = self.position
        word = self.read(_BARE)
        if word is None:
            raise self.error("expected a condition", start, start + 1, self.vocabulary.example)
        self.skip()
        operator = self.read(_OPERATOR)
        if operator is None:
            return self.bare(word[0], start)
        key = self.key(word[0], start)
        if operator[0] not in key.kind.operators:
            raise self.wrong_operator(key, operator)
        self.skip()
        base = NEGATED.get(operator[0], operator[0])
        comparison = Comparison(key, key.kind.accepting(base, self.words(base)))
        return comparison if base == operator[0] else Not(comparison)

    def key(self, name: str, start: int) -> Key:
        span = self.span(start, start + len(name))
        try:
            key = self.vocabulary.find(name)
        except SelectorError as error:
            raise error.at(span) from None
        if key is None:
            help = self.vocabulary.suggestion(name) or f"keys: {', '.join(self.vocabulary.names)}"
            raise SelectorError(f"unknown key '{name}'", span=span, help=help)
        return key

    def wrong_operator(self, key: Key, operator: re.Match[str]) -> HloError:
        if key.kind is FLAG:
            message = f"'{key.name}' takes no value"
            help = f"write '{key.name}' or 'not {key.name}'"
        else:
            message = f"'{key.name}' does not take '{operator[0]}'"
            help = f"it takes {', '.join(key.kind.operators)}"
            if operator[0] in _MEANT:
                help = f"write '{_MEANT[operator[0]]}'"
        return self.error(message, *operator.span(), help)

    def bare(self, text: str, start: int) -> Term:
        """A word alone: a name behind `%`, a key that has a value, or an opcode."""
        words: list[Word] = []
        place = start
        for part in text.split("|"):
            words.append(Word(part, False, self.span(place, place + len(part))))
            place += len(part) + 1
        if all(word.text.startswith("%") for word in words):
            by_name = self.key("name", start)
            return Comparison(by_name, by_name.kind.accepting("=", words))
        try:
            key = self.vocabulary.find(text)
        except SelectorError as error:
            raise error.at(words[0].span) from None
        if key is not None:
            return Comparison(key)
        opcode = self.vocabulary.find("opcode")
        if opcode is None:
            return Comparison(self.key(text, start))  # raises
        names = opcode_names()
        for word in words:
            if not word.is_glob and word.text not in names:
                raise self.unknown(word)
        return Comparison(opcode, opcode.kind.accepting("=", words))

    def unknown(self, word: Word) -> SelectorError:
        if re.search(r"\.\d+$", word.text):
            help: str | None = f"'%{word.text}' selects by name"
        else:
            help = self.vocabulary.suggestion(word.text, sorted(opcode_names()))
        return word.error(f"'{word.text}' is neither an opcode nor a key", help)

    # -- values ---------------------------------------------------------------------------------

    def words(self, operator: str) -> list[Word]:
        """The values behind an operator, blanks behind them read."""
        if operator == "~":
            words = [self.word("")]
        else:
            words = [self.word("|")]
            while self.text.startswith("|", self.position):
                if operator != "=":
                    place = self.position
                    raise self.error(f"'{operator}' takes one value", place, place + 1)
                self.position += 1
                words.append(self.word("|"))
        end = self.position
        self.skip()
        if self.position == end and not self.is_at_end and self.text[end] not in ",)":
            raise self.error(
                "expected ',' behind the closing quote", end, end + 1,
                "within quotes, write the quote twice",
            )  # fmt: skip
        return words

    def word(self, separator: str) -> Word:
        start = self.position
        if quoted := self.read(_QUOTED):
            double, single = quoted.groups()
            text = single.replace("''", "'") if double is None else double.replace('""', '"')
            return Word(text, True, self.span(start, self.position))
        if self.text[start : start + 1] in ('"', "'"):
            raise self.error("this quote is never closed", start, start + 1)
        self.position = self.end_of_word(start, separator)
        if self.position == start:
            raise self.error("expected a value", start, start + 1)
        return Word(self.text[start : self.position], False, self.span(start, self.position))

    def end_of_word(self, start: int, separator: str) -> int:
        """The end of a value without quotes: brackets in it are closed."""
        opened: list[int] = []
        ends = f",){separator}"
        position = start
        while position < len(self.text):
            character = self.text[position]
            if character == "\\":
                position += 1
            elif character in _OPENING:
                opened.append(position)
            elif not opened and (character in ends or character.isspace()):
                break
            elif character in _CLOSING and opened:
                opened.pop()
            position += 1
        if opened:
            raise self.error(
                f"'{self.text[opened[0]]}' is never closed", opened[0], opened[0] + 1,
                "put the value in quotes",
            )  # fmt: skip
        return min(position, len(self.text))
