"""Recipes for conditional-code-motion: conditionals with work on both sides of their border."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from differential_lib.writer import ROWS, Scope

_UNARY = ("copy", "negate", "not")
_UNARY_OF_FLOATS = ("copy", "negate", "abs", "floor", "sign")
_BINARY = ("add", "subtract", "multiply", "maximum")
_KINDS = ("array", "tuple", "nested")
Step = Callable[[Scope, str], str]


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
    shapes = [shape] * width + [
        _shape(scope, "nested").partition("), ")[0][1:] + ")"
    ] * returns_tuple
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


def _shape(scope: Scope, kind: str) -> str:
    vector = scope.program.vector
    shapes = {"array": vector, "tuple": f"({vector}, {vector}, {vector})"}
    return shapes.get(kind, f"(({vector}, {vector}), {vector})")


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
        vector = scope.program.vector
        inner = scope.add(f"({vector}, {vector})", f"tuple({values[0]}, {values[1]})")
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
            opcodes = _UNARY_OF_FLOATS if program.is_float else _UNARY
            return scope.add(vector, f"{scope.pick(opcodes)}({value})")
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


def _tail(scope: Scope, is_narrow: bool, meets: bool) -> list[Step]:
    """The steps that all branches end with."""
    program = scope.program
    steps: list[Step] = []
    for _ in range(scope.pick((0, 1, 1, 2, 3))):
        opcode = scope.pick(_UNARY_OF_FLOATS if program.is_float else _UNARY)
        binary, number = scope.pick(_BINARY), scope.pick((1, 2))
        match scope.pick(("unary", "unary", "constant", "reshape", "twice", "met", "broadcast")):
            case "unary":
                steps.append(lambda s, v, o=opcode: s.add(program.vector, f"{o}({v})"))  # type: ignore[misc]
            case "constant":
                steps.append(
                    lambda s, v, o=binary, n=number: s.add(program.vector, f"{o}({v}, {s.full(n)})")  # type: ignore[misc]
                )
            case "reshape":
                steps.append(_reshaped)
            case "met" if meets:
                _, groups = program.devices.reducing()
                rest = f"{groups}, to_apply={program.reduction()}"
                steps.append(
                    lambda s, v, r=rest: s.add(program.vector, f"all-reduce({v}), {r}")  # type: ignore[misc]
                )
            case "broadcast":
                steps.append(_repeated)
            case _:
                steps.append(
                    lambda s, v, o=binary: s.add(program.vector, f"{o}({v}, {s.vector()})")  # type: ignore[misc]
                )
    if is_narrow:
        if scope.chance(0.5):
            steps.append(_reshaped)
        narrow = _narrow(scope)
        steps.append(lambda s, v: s.add(narrow, f"convert({v})"))
    return steps


def _reshaped(scope: Scope, value: str) -> str:
    column = scope.add(f"{scope.program.element}[{ROWS},1]", f"reshape({value})")
    return scope.add(scope.program.vector, f"reshape({column})")


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
        inner = _element(body, argument, f"({program.vector}, {program.vector})", 0)
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
            value = step(body, value)
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
