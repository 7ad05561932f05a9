"""Changes of expressions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

Change = tuple[ast.stmt | ast.expr, str, ast.AST]
"""A node, the kind of the change, and what stands there instead."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


def changes(node: ast.expr) -> Iterator[Change]:
    """The changes of an expression, not of expressions in it."""
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                new = copy.deepcopy(node)
                new.ops[place] = _COMPARISONS[type(operator)]()
                yield node, "comparison", new
        case ast.BoolOp():
            yield from _of_bool_op(node)
        case ast.UnaryOp(op=ast.Not()):
            yield node, "not", node.operand
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not _has_text(node):
            yield node, "arithmetic", ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
        case ast.IfExp():
            yield node, "condition", node.body
            yield node, "condition", node.orelse
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield node, "constant", ast.Constant(value + 1)
            yield node, "constant", ast.Constant(value - 1)
        case ast.Call():
            yield from _of_call(node)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for place, generator in enumerate(node.generators):
                if generator.ifs:
                    new_comprehension = copy.deepcopy(node)
                    new_comprehension.generators[place].ifs = []
                    yield node, "drop condition", new_comprehension


def _of_bool_op(node: ast.BoolOp) -> Iterator[Change]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield node, "and/or", ast.BoolOp(other, node.values)
    for place in range(len(node.values)):
        rest = node.values[:place] + node.values[place + 1 :]
        new = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield node, "drop condition", new


def _of_call(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        yield node.func, "function", ast.Name(_FUNCTIONS[node.func.id])
    if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "min", "max"):
        return  # fails at once, or does not matter
    for place, (one, other) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
            continue
        if ast.dump(one) == ast.dump(other):
            continue
        args = list(node.args)
        args[place : place + 2] = other, one
        yield node, "swap arguments", ast.Call(node.func, args, node.keywords)


def _has_text(node: ast.BinOp) -> bool:
    """Whether this is about texts, to which no other operator applies."""
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, (str, bytes)))
        for part in ast.walk(node)
    )
