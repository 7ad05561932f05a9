"""The messages of a package, and whether a test asserts them: by the text of sources and tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_SHORT = 10
"""Characters. Shorter parts of a message do not tell it from others on their own."""
_NOT_MESSAGES = frozenset(
    ("option", "count", "compile", "_on_progress")  # help, counters, expressions, progress
)
"""Functions whose texts are not messages."""
_HELP_TEXTS = frozenset(
    (
        *("OPTION_DOCS", "OPTION_GROUPS", "LATENCY_HIDING_SCHEDULER"),
        *("_ALIAS_INFO", "_REGIONS", "_SKIP", "_THREADS"),
    )
)
"""Names of help texts."""
_NO_MESSAGE_KEYWORDS = frozenset(("help", "has", "attributes"))
_SAYS = frozenset(("missed", "applied", "analysis"))
_PROSE = re.compile(r"[^\\\\]*([a-z]{2,}[,;:]? | [a-z]{2,})[^\\\\]*")
"""Several words. A backslash is one of a regular expression."""


class Message(NamedTuple):
    """A message at one place of the sources."""

    path: Path
    line: int
    parts: tuple[str, ...]
    """Its text around what is filled in."""

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}: {'{}'.join(self.parts)}"


def messages(root: Path) -> Iterator[Message]:
    """All messages of a package: texts of several words, and what remarks and errors are made of.

    Docstrings, help texts, assertions and counters are none.
    """
    for path in sorted(root.rglob("*.py")):
        for node in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            yield Message(path, node.lineno, _parts(node))


def _texts(node: ast.AST, *, is_said: bool = False) -> Iterator[ast.Constant | ast.JoinedStr]:
    match node:
        case ast.Constant(value=str(text)):
            if is_said or _PROSE.fullmatch(text):
                yield node
        case ast.JoinedStr():
            if is_said or _PROSE.fullmatch("{}".join(_parts(node))):
                yield node
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    yield from _texts(value.value)
        case ast.Expr(value=ast.Constant()):
            pass  # a docstring
        case ast.Assert(test=test):
            yield from _texts(test)
        case ast.Call():
            yield from _texts_of_call(node)
        case ast.Assign(targets=[ast.Name(id=name)]) if name in _HELP_TEXTS:
            pass
        case ast.IfExp():
            yield from _texts(node.test)
            for branch in (node.body, node.orelse):
                yield from _texts(branch, is_said=is_said)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _texts(child)


def _texts_of_call(call: ast.Call) -> Iterator[ast.Constant | ast.JoinedStr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _NOT_MESSAGES:
        return
    says = name in _SAYS or name.endswith(("Error", "Refused"))
    yield from _texts(call.func)
    for argument in call.args:
        yield from _texts(argument, is_said=says)
    for keyword in call.keywords:
        if keyword.arg not in _NO_MESSAGE_KEYWORDS:
            yield from _texts(keyword.value)


def _parts(node: ast.Constant | ast.JoinedStr) -> tuple[str, ...]:
    if isinstance(node, ast.Constant):
        return tuple(str(node.value).split("{}"))  # for `format`
    parts = [""]
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts[-1] += str(value.value)
        else:
            parts.append("")
    return tuple(parts)


class Expectations:
    """The texts that tests expect: CHECK lines of golden tests, strings of those in Python."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._texts = "\n".join(text for path in paths for text in _expected(path))

    def have(self, message: Message) -> bool:
        """Whether a test expects the message.

        Its longest part; where that is short, all parts in order.
        """
        longest = max((part.strip() for part in message.parts), key=len)
        if len(longest) >= _SHORT:
            return longest in self._texts
        parts = [re.escape(part) for part in message.parts if part.strip()]
        return re.search(".*".join(parts), self._texts) is not None


@cache
def _expected(path: Path) -> tuple[str, ...]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".hlo":
        return tuple(re.findall(r"^\s*// (?!RUN)[A-Z-]+(?:\{LITERAL\})?: (.*)", text, re.MULTILINE))
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return tuple(
        node.value.replace("\\", "")  # of regular expressions
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    )
