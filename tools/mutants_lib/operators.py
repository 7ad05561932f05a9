"""The mutants of a source text: what is changed in its syntax tree, one thing at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from mutants_lib import expressions
from mutants_lib.expressions import Change

_LOOSE = (ast.BoolOp, ast.Compare, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Lambda)
"""Expressions that may bind less than what they replace."""


class Mutant(NamedTuple):
    """A source text with one piece replaced."""

    file: str
    """From the checkout."""
    line: int
    """The line of the first character that is replaced."""
    statement: int
    """The line where the statement begins; 0 for what runs when the module is imported."""
    kind: str
    start: int
    """Offset of the piece, in bytes."""
    end: int
    replacement: str

    def applied(self, source: bytes) -> bytes:
        """The text with the change."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]

    def change(self, source: bytes) -> str:
        """`kind: before -> after`, on one line."""
        before = " ".join(source[self.start : self.end].decode().split())
        return f"{self.kind}: {before} -> {self.replacement}"


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """All mutants of a file, in the order of its text. Each one compiles."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[tuple[int, int, str], Mutant] = {}
    for scope, (node, kind, new) in _changes(ast.parse(source)):
        end_line, end_column = node.end_lineno, node.end_col_offset
        assert end_line is not None
        assert end_column is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[end_line - 1] + end_column
        text = ast.unparse(new)
        if isinstance(new, _LOOSE) or text.startswith("-"):
            text = f"({text})"
        mutant = Mutant(file, node.lineno, scope.statement, kind, start, end, text)
        found.setdefault((start, end, text), mutant)
    return sorted(found.values(), key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


class _Scope(NamedTuple):
    """The surroundings of a node."""

    function: bool = False
    result: ast.expr | None = None
    """The type that the function returns."""
    statement: int = 0

    def of_field(self, node: ast.AST, name: str) -> _Scope:
        """The surroundings of what stands in a field of `node`."""
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and name == "body":
            result = node.returns if isinstance(node, ast.FunctionDef) else None
            return _Scope(True, result, node.lineno)
        if self.function and isinstance(node, ast.stmt):
            return self._replace(statement=node.lineno)
        return self


def _changes(tree: ast.Module) -> Iterator[tuple[_Scope, Change]]:
    waiting: list[tuple[ast.AST, _Scope]] = [(tree, _Scope())]
    while waiting:
        node, scope = waiting.pop()
        if _is_left_out(node):
            continue
        if isinstance(node, ast.expr):
            yield from ((scope, change) for change in expressions.changes(node))
        elif isinstance(node, ast.stmt):
            own = scope.of_field(node, "")
            yield from ((own, change) for change in _statement_changes(node, scope.result))
        elif isinstance(node, ast.match_case) and node.guard is not None:
            yield scope, (node.guard, "condition", ast.Constant(True))
        waiting += [
            (child, scope.of_field(node, name))
            for name, value in ast.iter_fields(node)
            if name not in ("annotation", "returns", "decorator_list")
            for child in _listed(value)
            if isinstance(child, ast.AST)
        ]


def _is_left_out(node: ast.AST) -> bool:
    """Whether this is text, only for type checkers, or fails anyhow."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, (ast.JoinedStr, ast.Assert, ast.Raise))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _statement_changes(node: ast.stmt, result: ast.expr | None) -> Iterator[Change]:
    match node:
        case ast.If():
            yield node.test, "condition", ast.Constant(False)
            yield node.test, "condition", ast.Constant(True)
        case ast.Return(value=ast.expr() as value):
            for constant in _other_results(value, result):
                yield value, "return", ast.Constant(constant)
        case ast.Continue():
            yield node, "jump", ast.Break()
            yield node, "drop statement", ast.Pass()
        case ast.Break():
            yield node, "jump", ast.Continue()
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            yield node, "drop statement", ast.Pass()
        case ast.Expr(value=ast.Yield(value=ast.expr()) | ast.YieldFrom()):
            # Still a generator.
            yield node, "drop statement", ast.parse("yield from ()").body[0]
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "drop statement", ast.Pass()


def _other_results(value: ast.expr, result: ast.expr | None) -> list[bool | None]:
    """Constants that a function might return instead of `value`."""
    if isinstance(value, ast.Constant):
        if isinstance(value.value, bool):
            return [not value.value]
        return [] if value.value is None else [None]
    return [True, False] if result is not None and ast.unparse(result) == "bool" else [None]
