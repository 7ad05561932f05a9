"""Broken and odd HLO texts, made from good ones: the n-th text of a seed is always the same."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

LONGEST = 400_000  # characters of a text that is mutated

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_][\w.\-]*|\d+|\s+|/\*.*?\*/|<=|->|.', re.S)
_VALUE = re.compile(r"(?<=[\w\-]=)(?:\{[^{}\n]*\}|\[[^\n ]*|\"[^\"\n]*\"|[\w.\-%]+)")

NUMBERS = (
    *("0", "-1", "1", "-0", "7", "00", "01", "2147483648", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "18446744073709551616", "-9223372036854775809", "1e999", "1e-999"),
    *("9" * 40, "9" * 5000, "1" + "0" * 400, "1.5", "1e3", ".5", "inf", "-inf", "nan", "0x10"),
    *("nan(0x7)", "1_0", "+1", "999999999999", "1000000000", "65536", "3", "4", "64"),
)
CHARACTERS = (
    *("\0", "\x01", "\x1b", "\x7f", "\x85", "\xa0", "é", "ß", "İ", "\u017f", "²", "٣", "१", "Ⅷ"),
    *("\u2028", "\u200b", "\ufeff", "\ufffd", "\U0001f600", "日", "\r", "\t", "\v", "\f", "\\"),
    *('"', "'", "{", "}", "(", ")", "[", "]", "<", ">", "=", ",", ":", "*", "#", "%", "?", "~"),
    *("+", "-", ".", "_", "/", "//", "/*", "*/", "\n", " ", "...", "{...}", "ENTRY ", "ROOT "),
)
VALUES = (
    *("{}", "{{}}", "{,}", "{0}", "{0,1}", "{1,0}", "{0,0}", "{-1}", "{{0,1},{1,0}}", "{{{}}}"),
    *('""', '"x"', "''", '"\\"', "true", "false", "x", "%x", "{...}", "{[0:1]}", "{[0:4:0]}"),
    *("[2,2]<=[4]", "[1,1]<=[1]", "[0,0]<=[0]", "[4,2]<=[2,4]T(1,0)", "[-1]<=[2]", "[2]<=[2,]"),
    *("{devices=[2,2]<=[4]}", "{replicated}", "{maximal device=0}", "{manual}", "{devices=[]0}"),
    *("{size=3x3 pad=1_1x1_1}", "{size=0}", "{size=3 stride=0}", "{size=3 pad=9_-9}", "{size=}"),
    *("b01f_01io->b01f", "bf_io->bf", "_->", "0_0x0_0", "0_0_1", "1_1_-1", "mesh['a'=2] {'a'}"),
    *("{(0, {})}", "{ {}: (0, {}, may-alias) }", "(f32[], s32[] 1)", "s32[2]{0} {1, 2}"),
    *('{op_name="a" source_line=1}', "{stack_frame_id=7}", '{"a":{"b":[1]}}', "{(s32[])->s32[]}"),
)


class Texts:
    """The texts to start from, in a fixed order."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """All HLO below `folders`. Raises OSError where there is none."""
        self.folders = [
            [
                path
                for path in sorted(folder.rglob("*"))
                if path.name.endswith((".hlo", ".hlo.gz", ".txt")) and path.is_file()
            ]
            for folder in folders
        ]
        if not all(self.folders):
            raise OSError(f"no HLO texts below {', '.join(map(str, folders))}")

    def choose(self, dice: random.Random) -> str:
        """A text; of the first folder, which has few, one time in ten."""
        while True:
            rare = len(self.folders) == 1 or dice.random() < 0.1
            paths = self.folders[0] if rare else dice.choice(self.folders[1:])
            text = _read(dice.choice(paths))
            # Long texts take their time, and a mutation hits the same things in a short one.
            if len(text) < 20_000 or (len(text) <= LONGEST and dice.random() < 0.05):
                return text


@lru_cache(maxsize=2000)
def _read(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data.decode("utf-8")


def mutated(texts: Texts, seed: int, number: int) -> str:
    """The `number`-th text of `seed`: a text with one to some ten mutations."""
    dice = random.Random(f"{seed}/{number}")
    text = texts.choose(dice)
    for _ in range(min(10, 1 + int(dice.expovariate(0.8)))):
        text = dice.choice(_MUTATIONS)(dice, text, texts)
    return text


def break_text(dice: random.Random, text: str) -> str:
    """One mutation of a text that is no HLO."""
    one = _Alone(text)
    return dice.choice(_OF_ANY_TEXT)(dice, text, one)


class _Alone(NamedTuple):
    """A text to take pieces from: itself."""

    text: str

    def choose(self, dice: random.Random) -> str:
        return self.text


class _Source(Protocol):
    """Other texts, of which mutations take pieces."""

    def choose(self, dice: random.Random) -> str: ...


# -- mutations --------------------------------------------------------------------------------


def _change_characters(dice: random.Random, text: str, texts: _Source) -> str:
    start = dice.randrange(len(text) + 1)
    end = min(len(text), start + dice.choice((0, 0, 1, 1, 1, 2, 5, 40)))
    piece = text[start:end]
    new = dice.choice(
        (
            "",
            piece * 2,
            piece[::-1],
            dice.choice(CHARACTERS),
            dice.choice(CHARACTERS),
            dice.choice(CHARACTERS) * dice.choice((2, 3, 300)),
            chr(dice.randrange(32, 127)),
            "".join(chr(ord(c) ^ (1 << dice.randrange(5)) & 31) for c in piece),
        )
    )
    return text[:start] + new + text[end:]


def _truncate(dice: random.Random, text: str, texts: _Source) -> str:
    return text[: dice.randrange(len(text) + 1)]


def _change_token(dice: random.Random, text: str, texts: _Source) -> str:
    tokens = _TOKEN.findall(text)
    if len(tokens) < 2:
        return text
    at, other = dice.randrange(len(tokens)), dice.randrange(len(tokens))
    match dice.randrange(6):
        case 0:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 1:
            del tokens[at]
        case 2:
            tokens.insert(at, tokens[at])
        case 3:
            tokens[at] = tokens[other]
        case 4:
            tokens[at] = dice.choice(_TOKEN.findall(texts.choose(dice)) or [""])
        case 5:
            tokens.insert(at, tokens[other])
    return "".join(tokens)


def _change_number(dice: random.Random, text: str, texts: _Source) -> str:
    return _replace_one(dice, text, re.compile(r"\d+"), lambda _: dice.choice(NUMBERS))


def _change_word(dice: random.Random, text: str, texts: _Source) -> str:
    """A word becomes another word of the text: another operand, opcode, type, key."""
    words = re.findall(r"[A-Za-z_][\w.\-]*", text)
    if not words:
        return text
    return _replace_one(dice, text, re.compile(r"[A-Za-z_][\w.\-]*"), lambda _: dice.choice(words))


def _change_value(dice: random.Random, text: str, texts: _Source) -> str:
    values = (*VALUES, *NUMBERS)
    if dice.random() < 0.5:
        values = tuple(_VALUE.findall(texts.choose(dice))) or values
    return _replace_one(dice, text, _VALUE, lambda _: dice.choice(values))


def _add_attribute(dice: random.Random, text: str, texts: _Source) -> str:
    pairs = re.findall(r", ([\w\-]+=[^\n]*?)(?=, [\w\-]+=|$)", texts.choose(dice), re.M)
    if not pairs:
        return text
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    lines[at] += f", {dice.choice(pairs)}"
    return "\n".join(lines)


def _drop_attribute(dice: random.Random, text: str, texts: _Source) -> str:
    return _replace_one(dice, text, re.compile(r", [\w\-]+=[^\n,]*"), lambda _: "")


def _change_line(dice: random.Random, text: str, texts: _Source) -> str:
    lines = text.split("\n")
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(6):
        case 0:
            lines[at], lines[other] = lines[other], lines[at]
        case 1:
            del lines[at : at + dice.choice((1, 1, 1, 3, 10))]
        case 2:
            lines.insert(other, lines[at])
        case 3:
            lines.insert(at, dice.choice(texts.choose(dice).split("\n")))
        case 4:
            donor = texts.choose(dice).split("\n")
            begin = dice.randrange(len(donor))
            lines[at:at] = donor[begin : begin + dice.randrange(1, 12)]
        case 5:
            lines = lines[:at] + texts.choose(dice).split("\n")[at:]
    return "\n".join(lines)


def _normalize_space(dice: random.Random, text: str, texts: _Source) -> str:
    """Another way of writing the same, so that the other lane of the reader gets it."""
    old, new = dice.choice(
        (("\n", " "), ("\n", "\r\n"), ("  ", "\t"), (", ", ","), ("%", ""), (" = ", " =/**/ "))
    )
    return text.replace(old, new) if len(text) < 20_000 else text


_OF_ANY_TEXT: tuple[Callable[[random.Random, str, _Source], str], ...] = (
    *(_change_characters, _change_token, _change_number, _change_word, _change_line, _truncate),
)
_MUTATIONS: tuple[Callable[[random.Random, str, _Source], str], ...] = (
    *(_change_characters, _change_characters, _change_token, _change_token, _change_number),
    *(_change_number, _change_word, _change_word, _change_value, _change_value, _add_attribute),
    *(_drop_attribute, _change_line, _change_line, _truncate, _normalize_space),
)


def _replace_one(
    dice: random.Random, text: str, what: re.Pattern[str], by: Callable[[str], str]
) -> str:
    found = list(what.finditer(text))
    if not found:
        return text
    match = dice.choice(found)
    return text[: match.start()] + by(match[0]) + text[match.end() :]
