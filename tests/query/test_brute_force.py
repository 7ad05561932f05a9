"""Selectors select what a filter of the printed lines finds, on modules of all opcodes."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.strategies.every_opcode import modules_of_all_opcodes
from tests.properties.strategies.modules import XLA_STYLE, module_texts
from tests.query.brute_force import Line, Lines

from hloopt.query import parse_selector
from hloopt.text import PrintOptions, parse_module, print_module

Holds = Callable[[Line, Lines], bool]
Draw = Callable[[st.SearchStrategy[Any]], Any]

_PRINTED = PrintOptions(
    keep_order=True,
    print_large_constants=True,
    print_operand_index_annotation=False,
    syntax_sugar_async_ops=False,
)
MODULES = st.one_of(module_texts(st.just(XLA_STYLE)), modules_of_all_opcodes())

TEXTS: dict[str, Callable[[Line, Lines], set[str]]] = {
    "opcode": lambda line, _: line.opcodes,
    "name": lambda line, _: {line.name},
    "computation": lambda line, _: {line.computation},
    "type": lambda line, _: line.types,
    "operand": lambda line, _: set(line.operands),
    "user": lambda line, _: set(line.users),
    "calls": lambda line, _: {name for names in line.calls.values() for name in names},
    "op_name": lambda line, _: set() if line.op_name is None else {line.op_name},
    "attr.dimensions": lambda line, _: set(re.findall(r" dimensions=(\{.*?\})", line.attributes)),
    "attr.direction": lambda line, _: set(re.findall(r" direction=(\w+)", line.attributes)),
}
VALUES = {
    "opcode": ("add", "negate", "a*", "*e*", "while", "async-*", "call-start", "*-done"),
    "name": ("a*", "x.*", "negate*", "p", "*.1"),
    "computation": ("*.1", "body*", "add*", "main"),
    "type": ("f32", "s*", "tuple", "pred", "u32"),
    "operand": ("a*", "p*", "*.0", "x.*"),
    "user": ("a*", "x.*", "*"),
    "calls": ("*", "add*", "body*"),
    "op_name": ("*g", "outer", "f/*"),
    "attr.dimensions": ("{0}", "{}", "{1*}"),
    "attr.direction": ("LT", "*"),
}
NUMBERS: dict[str, Callable[[Line], set[int]]] = {
    "rank": lambda line: {len(sizes) for _, sizes, _ in line.arrays},
    "dimension": lambda line: {size for _, sizes, _ in line.arrays for size in sizes},
    "elements": lambda line: {line.elements},
    "bytes": lambda line: {line.bytes},
    "operands": lambda line: {len(line.operands)},
    "users": lambda line: {len(line.users)},
    "memory_space": lambda line: {
        int((re.findall(r"S\((\d+)\)", layout) or [0])[0]) for _, _, layout in line.arrays
    },
}
FLAGS: dict[str, Holds] = {
    "is-root": lambda line, _: line.is_root,
    "in-entry": lambda line, lines: line.computation == lines.entry,
    "in-loop": lambda line, lines: line.computation in lines.within(("while", "body")),
    "in-fusion": lambda line, lines: line.computation in lines.within(("fusion", "calls")),
    "in-async": lambda line, lines: line.computation in lines.within(("async-start", "calls")),
}
COMPARE = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _glob(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def _texts(draw: Draw) -> tuple[str, Holds]:
    key = draw(st.sampled_from(sorted(TEXTS)))
    given = draw(st.lists(st.sampled_from(VALUES[key]), min_size=1, max_size=2, unique=True))
    of = TEXTS[key]
    match draw(st.sampled_from(("=", "!=", "~", "!~", ""))):
        case "":
            return key, lambda line, lines: bool(of(line, lines))
        case "~" | "!~" as sign:
            regex = given[0].strip("*{")
            wanted = sign == "~"
            return (
                f'{key}{sign}"{regex}"',
                lambda line, lines: (
                    any(re.search(regex, text) for text in of(line, lines)) is wanted
                ),
            )
        case sign:
            return (
                f"{key}{sign}{'|'.join(given)}",
                lambda line, lines: (
                    any(_glob(text, one) for text in of(line, lines) for one in given)
                    is (sign == "=")
                ),
            )


def _numbers(draw: Draw) -> tuple[str, Holds]:
    key = draw(st.sampled_from(sorted(NUMBERS)))
    number = draw(st.sampled_from((0, 1, 2, 3, 4, 5, 16, 20, 64)))
    sign = draw(st.sampled_from(("!=", *COMPARE)))
    of = NUMBERS[key]
    if sign == "!=":
        return f"{key}!={number}", lambda line, _: number not in of(line)
    return f"{key}{sign}{number}", lambda line, _: any(COMPARE[sign](n, number) for n in of(line))


@st.composite
def selectors(draw: Draw, depth: int = 2) -> tuple[str, Holds]:
    """The text of a selector, and what it means for a line."""
    kinds = ["flag", "numbers", "texts", "texts"] + ["all", "any", "not"] * bool(depth)
    kind = draw(st.sampled_from(kinds))
    if kind == "flag":
        name = draw(st.sampled_from(sorted(FLAGS)))
        return name, FLAGS[name]
    if kind in ("numbers", "texts"):
        return _numbers(draw) if kind == "numbers" else _texts(draw)
    if kind == "not":
        text, holds = draw(selectors(depth - 1))
        return f"not ({text})", lambda line, lines: not holds(line, lines)
    parts = draw(st.lists(selectors(depth - 1), min_size=2, max_size=3))
    together = all if kind == "all" else any
    joined = (", " if kind == "all" else " or ").join(f"({text})" for text, _ in parts)
    return joined, lambda line, lines: together([holds(line, lines) for _, holds in parts])


@settings(max_examples=150)
@given(MODULES, st.lists(selectors(), min_size=4, max_size=4))
def test_selection_is_what_a_filter_of_the_lines_finds(
    text: str, chosen: list[tuple[str, Holds]]
) -> None:
    module = parse_module(text)
    lines = Lines(print_module(module, _PRINTED))
    for selector, holds in chosen:
        wanted = sorted(line.name for line in lines.lines if holds(line, lines))
        parsed = parse_selector(selector)
        assert sorted(i.name for i in parsed.select(module)) == wanted, selector
        assert sorted(i.name for i in module.instructions() if parsed.matches(i)) == wanted
