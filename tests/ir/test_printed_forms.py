"""The fast readers of text as XLA prints it agree with the general readers on any text.

Each form is changed at random places: what the short way takes the general one takes, too, with
the same value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hloopt.diagnostics import HloError
from hloopt.ir.attributes import text as attribute_text
from hloopt.ir.attributes.values import aliasing, numbers, strings, tokens
from hloopt.ir.literals import literal, plain_literals
from hloopt.ir.shapes import shape_parser
from hloopt.ir.shapes.shape_parser import parse_shape

CHANGES = 1500
PIECES = (*"{}[]():,-01 9xT\"'\\/*.e+", ", ", ": ", "{}", "/*index=5*/", "nan", "inf", "9" * 19)


def changed(text: str, seed: int) -> Iterator[str]:
    """`text`, and copies of it with one to three changes."""
    yield text
    draw = random.Random(seed)
    for _ in range(CHANGES):
        copy = text
        for _ in range(draw.randint(1, 3)):
            start = draw.randrange(len(copy) + 1)
            end = min(len(copy), start + draw.choice((0, 0, 1, 2)))
            copy = copy[:start] + draw.choice(PIECES) + copy[end:]
        yield copy


def outcome(read: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `read`; HloError where it raises one."""
    try:
        return read(*arguments)
    except HloError:
        return HloError


def uncached(function: Any) -> Callable[..., Any]:
    """A remembering function that works its result out each time."""
    found: Callable[..., Any] = function.__wrapped__
    return found


@pytest.mark.parametrize(
    "text",
    [
        "f32[2,3]{1,0}",
        "s32[]",
        "bf16[10,0,2]{2,0,1}",
        "token[]",
        "(f32[2]{0}, s32[], (u8[3]{0}), pred[])",
        "(f32[2]{0}, s32[1]{0}, s32[2]{0}, s32[3]{0}, s32[4]{0}, /*index=5*/s32[5]{0})",
        "()",
    ],
)
def test_shapes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for copy in changed(text, 1):
        shape_parser.SHAPES.clear()
        short = outcome(parse_shape, copy)
        shape_parser.SHAPES.clear()
        with monkeypatch.context() as context:
            context.setattr(shape_parser, "_printed_array", lambda text: None)
            context.setattr(shape_parser, "_printed_tuple", lambda text: None)
            assert short is outcome(parse_shape, copy), copy


@pytest.mark.parametrize("text", ["f32[2,3]{1,0}", "f32[02]{0}", "s8[1,10]{00,1}", "f32[2]"])
def test_the_text_of_a_shape_is_what_xla_prints(text: str) -> None:
    for copy in changed(text, 2):
        shape = outcome(parse_shape, copy)
        if shape is not HloError and shape.is_array:
            kept = shape.text
            assert kept == shape_parser.scan_shape(kept, 0)[0].text
            numbers_in_it = kept.replace("]", ",").replace("[", ",").replace("{", ",").split(",")
            assert not any(n.isdecimal() and n != str(int(n)) for n in numbers_in_it), copy


@pytest.mark.parametrize(
    ("read", "short", "text"),
    [
        (
            aliasing.parse_aliasing,
            "hloopt.ir.attributes.values.aliasing.printed_aliases",
            "{ {0}: (0, {}, may-alias), {1,2}: (11, {3}, must-alias) }",
        ),
        (
            numbers.parse_slices,
            "hloopt.ir.attributes.values.numbers._printed_slices",
            "{[0:4:2], [10:11]}",
        ),
    ],
)
def test_attribute_values(
    read: Any, short: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for copy in changed(text, 3):
        found = outcome(uncached(read), copy)
        with monkeypatch.context() as context:
            context.setattr(short, lambda text: None)
            assert found == outcome(uncached(read), copy), copy


def test_blanks() -> None:
    for copy in changed('{ {0}: (0, {}, may-alias), a = "x, y" }', 4):
        slow = tokens._AFTER_EQUALS.sub("=", tokens._PIECE.sub(tokens._compact_piece, copy))
        assert tokens.compact(tokens.compact(copy)) == tokens.compact(copy)
        assert tokens.compact(copy) == slow.strip(" "), copy


@pytest.mark.parametrize("text", ['"a b"', '"\\"x"', "'a'"])
def test_strings(text: str) -> None:
    for copy in changed(text, 5):
        is_string = strings._IS_STRING.fullmatch(copy) is not None
        assert is_string or outcome(uncached(strings.parse_string), copy) is HloError, copy


@pytest.mark.parametrize("text", ['{"a":{"b":[{"c":"}"}],"d":1}}', "{{{{}}}}"])
def test_dictionaries(text: str) -> None:
    for copy in changed(text, 6):
        ends = copy.startswith("{") and strings.dictionary_end(copy, 0) == len(copy)
        assert strings.is_dictionary(copy) == ends, copy


@pytest.mark.parametrize("text", ["{{0,1},{2,3}}, a={}", '{a={b={c="}"}}, /*}*/ {}} x', "{}"])
def test_braces(text: str) -> None:
    for copy in changed(text, 7):
        if copy.startswith("{"):
            assert outcome(attribute_text.scan_braces, copy, 0) == plain_end(copy), copy


def plain_end(text: str) -> Any:
    """The end of the braces of `text`, found one character at a time."""
    depth = position = 0
    while position < len(text):
        character = text[position]
        if character == '"':
            string = attribute_text._STRING.match(text, position)
            if string is None:
                return HloError
            position = string.end()
            continue
        if text.startswith("/*", position):
            position = text.find("*/", position + 2) + 2
            if position < 2:
                return HloError
            continue
        if text.startswith("//", position):
            return HloError  # up to the end of the line, which is the end of these texts
        depth += {"{": 1, "}": -1}.get(character, 0)
        position += 1
        if not depth:
            return position
    return HloError


@pytest.mark.parametrize("shape", ["f32[]", "bf16[]", "f16[]", "s8[]", "u64[]", "pred[]", "s32[2]"])
@pytest.mark.parametrize("text", ["1", "-2.5e+38", "65504", "nan", "-inf", "true", "{1, 2}", "{}"])
def test_literals(shape: str, text: str) -> None:
    parsed = parse_shape(shape)
    for copy in changed(text, 8):
        if plain_literals.is_plain_scalar(copy, parsed) or plain_literals.is_plain(copy, parsed):
            assert outcome(literal.canonical_literal, copy, parsed) is not HloError, copy
        short = outcome(literal.check_literal, copy, parsed)
        assert short == (
            None if outcome(literal.canonical_literal, copy, parsed) is not HloError else HloError
        ), copy
