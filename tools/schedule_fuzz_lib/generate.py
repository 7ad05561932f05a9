"""Programs for the scheduler: the n-th program of a seed is always the same."""

from __future__ import annotations

from collections.abc import Collection

from schedule_fuzz_lib import operations, work
from schedule_fuzz_lib.writer import Array, Program, Scope, vector

_DEEPEST = 2


def program(seed: int, number: int, skipped: Collection[str] = ()) -> Program:
    """A program for eight devices, without the steps that are `skipped`."""
    made = Program(seed, number, skipped)
    entry = Scope(made, "e", depth=0)
    for index in range(entry.pick((2, 3, 5))):
        entry.add_array("p", entry.size(), f"parameter({index})")
    fill(entry, made.theme.steps)
    unread = entry.unread() if entry.chance(0.7) else []
    results = list(dict.fromkeys([*entry.arrays[-3:], entry.array(), *unread]))
    shape = ", ".join(array.shape for array in results)
    names = ", ".join(array.name for array in results)
    entry.close("main", f"({shape})", f"tuple({names})", is_entry=True)
    return made


def fill(scope: Scope, count: int) -> None:
    """Take `count` steps, with dones of asynchronous operations among them."""
    theme = scope.program.theme
    share = scope.pick((0.1, 0.25, 0.5))
    dice = scope.dice
    for number in range(count):
        step = f"{scope.path}:{number}"
        if step in scope.program.skipped:
            continue
        scope.program.steps.append(step)
        scope.dice = scope.program.dice(step)
        _step(scope, step, theme.loops if scope.depth < _DEEPEST else 0.0)
        scope.finish_some(share)
    scope.dice = dice
    scope.finish_some(1.0)
    while scope.pending:
        scope.finish_some(1.0)


def _step(scope: Scope, path: str, calls: float) -> None:
    theme = scope.program.theme
    if scope.chance(calls):
        scope.pick((_loop, _loop, _call, _branches))(scope, path)
    elif theme.grouped and scope.chance(0.15):
        operations.group(scope)
    elif theme.transfers and scope.chance(0.15):
        operations.transfer(scope)
    elif scope.chance(0.3):
        scope.pick(operations.STEPS)(scope)
    else:
        scope.pick(work.STEPS)(scope)


def _steps_inside(scope: Scope) -> int:
    return scope.pick((5, 8, 12))


def _loop(scope: Scope, path: str) -> None:
    """A loop of three trips around an array or two."""
    state = [scope.array() for _ in range(scope.pick((1, 2)))]
    own = [Array(scope.add("copy", a.shape, f"copy({a.name})"), a.size) for a in state]
    zero = scope.add("copy", "s32[]", f"copy({scope.integer(0)})")
    shape = f"(s32[], {', '.join(a.shape for a in own)})"
    condition = scope.computation(
        "condition",
        (
            f"s = {shape} parameter(0)",
            "i = s32[] get-tuple-element(s), index=0",
            "n = s32[] constant(3)",
            "ROOT l = pred[] compare(i, n), direction=LT",
        ),
    )
    body = Scope(scope.program, f"{path}/", scope.depth + 1)
    whole = body.add("state", shape, "parameter(0)")
    at = body.add("gte", "s32[]", f"get-tuple-element({whole}), index=0")
    for index, a in enumerate(own, 1):
        body.add_array("gte", a.size, f"get-tuple-element({whole}), index={index}")
    following = body.add("add", "s32[]", f"add({at}, {body.integer(1)})")
    fill(body, _steps_inside(scope))
    results = ", ".join(_own_result(body, a.size) for a in own)
    name = body.close("body", shape, f"tuple({following}, {results})")
    begin = scope.add("tuple", shape, f"tuple({zero}, {', '.join(a.name for a in own)})")
    rest = f"while({begin}), condition={condition}, body={name}"
    config = '{"known_trip_count":{"n":"3"}}' if scope.chance(0.5) else ""
    loop = scope.add("while", shape, rest, (), config)
    scope.others.append(loop)
    for index, a in enumerate(own, 1):
        scope.add_array("gte", a.size, f"get-tuple-element({loop}), index={index}")
    scope.program.features.add("loops" if scope.depth == 0 else "nested loops")


def _own_result(body: Scope, size: int) -> str:
    """A result that is in no other place of the state."""
    return body.add("copy", vector(size), f"copy({body.array(size).name})")


def _function(scope: Scope, path: str, a: Array, size: int) -> str:
    """A computation of one array; its name."""
    inside = Scope(scope.program, path, scope.depth + 1)
    inside.add_array("p", a.size, "parameter(0)")
    fill(inside, _steps_inside(scope))
    result = inside.array(size)
    return inside.close("function", vector(size), f"negate({result.name})")


def _call(scope: Scope, path: str) -> None:
    a, size = scope.array(), scope.size()
    function = _function(scope, f"{path}/", a, size)
    scope.add_array("call", size, f"call({a.name}), to_apply={function}")
    scope.program.features.add("calls")


def _branches(scope: Scope, path: str) -> None:
    a, b, size = scope.array(), scope.array(), scope.size()
    left = _function(scope, f"{path}/l", a, size)
    right = _function(scope, f"{path}/r", b, size)
    which = scope.integer(0)
    rest = f"conditional({which}, {a.name}, {b.name}), branch_computations={{{left}, {right}}}"
    scope.add_array("conditional", size, rest)
    scope.program.features.add("conditionals")
