"""Recipes for conditional-code-motion: conditionals with work on both sides of their border."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from differential_lib.writer import ROWS, Scope

_UNARY = ("copy", "negate", "not")
_UNARY_OF_FLOATS = ("copy", "negate", "abs", "floor", "sign")
_BINARY = ("add", "subtract", "multiply", "maximum")
_KINDS = ("array", "tuple", "nested")


def moving_conditional(scope: Scope) -> None:
    """Branches with a common end, arguments that few use, and users behind the conditional."""
    is_alike = scope.may_meet and scope.chance(0.5)
    count, width = scope.pick((2, 2, 2, 3)), scope.pick((0, 1, 1, 2, 3))
    returns_tuple = width > 0 and scope.chance(0.15)
    kinds = [scope.pick(_KINDS) for _ in range(count)]
    if returns_tuple or scope.chance(0.3):
        kinds = ["nested" if returns_tuple else kinds[0]] * count
    is_narrow = scope.chance(0.4)
    tails = [_tail(scope, is_narrow, is_alike) for _ in range(max(width, 1))]
    shape = _narrow(scope) if is_narrow else scope.program.vector
    shapes = [shape] * width + [_pair(scope)] * returns_tuple
    result_shape = f"({', '.join(shapes)})" if width else shape
    branches: list[str] = []
    for number, kind in enumerate(kinds):
        if number and kind == kinds[number - 1] and scope.chance(0.3):
            branches.append(branches[-1])
        else:
            branches.append(_branch(scope, kind, tails, width, result_shape, returns_tuple))
    operands: list[str] = []
    for number, kind in enumerate(kinds):
        is_same = number > 0 and kind == kinds[number - 1] and scope.chance(0.3)
        operands.append(operands[-1] if is_same else _argument(scope, kind))
    index = scope.device_index()
    if is_alike:
        index = scope.pick(scope.counters) if scope.counters else scope.integer(1)
    if count == 2 and scope.chance(0.7):
        index = scope.add("pred[]", f"compare({index}, {scope.integer(1)}), direction=LT")
        called = f"true_computation={branches[0]}, false_computation={branches[1]}"
    else:
        called = f"branch_computations={{{', '.join(branches)}}}"
    result = scope.add(result_shape, f"conditional({', '.join([index, *operands])}), {called}")
    _use(scope, result, shape, width)
    if returns_tuple and scope.chance(0.7):
        whole = scope.add(shapes[-1], f"get-tuple-element({result}), index={width}")
        scope.vectors.append(_element(scope, whole, scope.program.vector, 1))


def _narrow(scope: Scope) -> str:
    return f"{'bf16' if scope.program.element != 'bf16' else 'f32'}[{ROWS}]"


def _pair(scope: Scope) -> str:
    return f"({scope.program.vector}, {scope.program.vector})"


def _shape(scope: Scope, kind: str) -> str:
    vector = scope.program.vector
    shapes = {"array": vector, "tuple": f"({vector}, {vector}, {vector})"}
    return shapes.get(kind, f"({_pair(scope)}, {vector})")


def _element(scope: Scope, value: str, shape: str, index: int) -> str:
    return scope.add(shape, f"get-tuple-element({value}), index={index}")


# -- what is around it ------------------------------------------------------------------------


def _argument(scope: Scope, kind: str) -> str:
    """Something computed for one branch."""
    if kind == "array":
        return _worked(scope)
    values = [_worked(scope) for _ in range(3)]
    if scope.chance(0.3):
        values[1] = values[0]
    if scope.chance(0.2):
        values[2] = scope.add(scope.program.vector, f"add({values[0]}, {values[1]})")
    if scope.chance(0.15):
        scope.vectors.append(scope.pick(values))
    if kind == "nested":
        inner = scope.add(_pair(scope), f"tuple({values[0]}, {values[1]})")
        return scope.add(_shape(scope, kind), f"tuple({inner}, {values[2]})")
    return scope.add(_shape(scope, kind), f"tuple({', '.join(values)})")


def _worked(scope: Scope) -> str:
    value = scope.vector()
    for _ in range(scope.pick((0, 1, 2, 3))):
        value = _operation(scope, value)
    return value


def _operation(scope: Scope, value: str) -> str:
    """One operation that may cross the border, or one that may not."""
    program = scope.program
    vector = program.vector
    match scope.pick(("unary", "constant", "binary", "binary", "reduce", "slice", "reverse")):
        case "unary":
            return scope.add(vector, f"{scope.pick(_unary(scope))}({value})")
        case "constant":
            return scope.add(vector, f"{scope.pick(_BINARY)}({value}, {scope.full(3)})")
        case "binary":
            return scope.add(vector, f"{scope.pick(_BINARY)}({value}, {scope.vector()})")
        case "reduce":
            total = scope.add(
                program.scalar,
                f"reduce({value}, {scope.number(0)}), dimensions={{0}}, "
                f"to_apply={program.reduction('maximum')}",
            )
            return scope.add(vector, f"broadcast({total}), dimensions={{}}")
        case "slice":
            at = scope.integer(scope.pick((0, 1)))
            return scope.add(
                vector, f"dynamic-slice({value}, {at}), dynamic_slice_sizes={{{ROWS}}}"
            )
        case _:
            return scope.add(vector, f"reverse({value}), dimensions={{0}}")


def _use(scope: Scope, result: str, shape: str, width: int) -> None:
    """Users of what the conditional gives."""
    is_narrow = shape != scope.program.vector
    values = []
    for index in range(max(width, 1)):
        if width and scope.chance(0.1):
            continue
        value = _element(scope, result, shape, index) if width else result
        if is_narrow:
            if scope.chance(0.5):
                value = scope.add(shape, f"negate({value})")
            value = scope.add(scope.program.vector, f"convert({value})")
        for _ in range(scope.pick((0, 1, 2, 3))):
            value = _operation(scope, value)
        values.append(value)
        if width and scope.chance(0.2) and not is_narrow:
            values.append(_element(scope, result, shape, index))
    if len(values) > 1 and scope.chance(0.6):
        combined = scope.add(scope.program.vector, f"add({values[0]}, {values[1]})")
        values.append(_operation(scope, combined))
        values = values[scope.pick((0, 2)) :]
    scope.vectors += values


# -- the branches -----------------------------------------------------------------------------


class Step(NamedTuple):
    """One operation that all branches end with."""

    kind: str
    rest: str
    number: int = 0


def _tail(scope: Scope, is_narrow: bool, meets: bool) -> list[Step]:
    """The steps that all branches end with, for one result."""
    program = scope.program
    steps: list[Step] = []
    for _ in range(scope.pick((0, 1, 1, 2, 3))):
        match scope.pick(("unary", "unary", "constant", "reshape", "binary", "met", "repeated")):
            case "unary" | "met" if not meets:
                steps.append(Step("unary", scope.pick(_unary(scope))))
            case "met":
                _, groups = program.devices.reducing()
                steps.append(Step("met", f"{groups}, to_apply={program.reduction()}"))
            case kind:
                rest = scope.pick(_unary(scope) if kind == "unary" else _BINARY)
                steps.append(Step(kind, rest, scope.pick((1, 2))))
    if is_narrow:
        if scope.chance(0.5):
            steps.append(Step("reshape", ""))
        steps.append(Step("narrow", _narrow(scope)))
    return steps


def _unary(scope: Scope) -> Sequence[str]:
    return _UNARY_OF_FLOATS if scope.program.is_float else _UNARY


def _follow(scope: Scope, value: str, step: Step) -> str:
    """Follow one step from a value."""
    vector = scope.program.vector
    match step.kind:
        case "unary":
            return scope.add(vector, f"{step.rest}({value})")
        case "constant":
            return scope.add(vector, f"{step.rest}({value}, {scope.full(step.number)})")
        case "binary":
            return scope.add(vector, f"{step.rest}({value}, {scope.vector()})")
        case "met":
            return scope.add(vector, f"all-reduce({value}), {step.rest}")
        case "narrow":
            return scope.add(step.rest, f"convert({value})")
        case "repeated":
            return _repeated(scope, value)
    column = scope.add(f"{scope.program.element}[{ROWS},1]", f"reshape({value})")
    return scope.add(vector, f"reshape({column})")


def _repeated(scope: Scope, value: str) -> str:
    """A broadcast of something that may be the same in all branches."""
    first = scope.vectors[0] if scope.chance(0.7) else value
    one = scope.add(f"{scope.program.element}[1]", f"slice({first}), slice={{[0:1]}}")
    scalar = scope.add(scope.program.scalar, f"reshape({one})")
    wide = scope.add(scope.program.vector, f"broadcast({scalar}), dimensions={{}}")
    return scope.add(scope.program.vector, f"add({value}, {wide})")


def _branch(
    scope: Scope,
    kind: str,
    tails: Sequence[list[Step]],
    width: int,
    result_shape: str,
    returns_tuple: bool,
) -> str:
    program = scope.program
    body = Scope(program, scope.depth + 1, may_meet=False, may_tell=False)
    argument = body.add(_shape(scope, kind), "parameter(0)")
    inner = ""
    if kind == "array":
        body.vectors = [argument]
    elif kind == "tuple":
        body.vectors = [
            _element(body, argument, program.vector, i) for i in range(3) if body.chance(0.7)
        ]
    else:
        inner = _element(body, argument, _pair(scope), 0)
        body.vectors = [
            *(_element(body, inner, program.vector, i) for i in (0, 1) if body.chance(0.6)),
            *(_element(body, argument, program.vector, 1) for _ in "1" if body.chance(0.6)),
        ]
    if not body.vectors:
        body.vectors = [body.full(5)]
    for _ in range(body.pick((0, 0, 1, 2))):
        body.vectors.append(_operation(body, body.vector()))
    results: list[str] = []
    for steps in tails:
        if results and body.chance(0.1):
            results.append(results[-1])
            continue
        value = body.vector()
        for step in steps:
            if body.chance(0.06) and step is not steps[-1]:
                value = body.add(program.vector, f"copy({value})")
            value = _follow(body, value, step)
        if not steps:
            value = _operation(body, value)
        results.append(value)
    if returns_tuple:
        results.append(inner)
    name = program.name("moving")
    if width:
        body.close(name, result_shape, f"tuple({', '.join(results)})")
    else:
        body.close(name, result_shape, f"copy({results[-1]})")
    return name


RECIPES: tuple[Callable[[Scope], object], ...] = (moving_conditional,)
