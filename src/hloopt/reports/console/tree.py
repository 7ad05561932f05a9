"""Trees drawn with lines: the text before each branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

_Node = TypeVar("_Node")
_LAST, _OTHER = "└─ ", "├─ "


def branches(
    top: Sequence[_Node], below: Callable[[_Node], Sequence[_Node]]
) -> Iterator[tuple[str, _Node]]:
    """Each node below `top`, depth first, with the lines that are drawn before it."""
    waiting = [("", branch, node) for branch, node in _with_branch(top)]
    while waiting:
        prefix, branch, node = waiting.pop()
        yield prefix + branch, node
        inner = prefix + ("   " if branch == _LAST else "│  ")
        waiting += [(inner, other, child) for other, child in _with_branch(below(node))]


def _with_branch(nodes: Sequence[_Node]) -> list[tuple[str, _Node]]:
    """The nodes with their branches, the last one first."""
    return [(_OTHER if number else _LAST, node) for number, node in enumerate(reversed(nodes))]
