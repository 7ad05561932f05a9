"""Steps that call computations: loops, branches, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory_fuzz_lib.writer import NUMBERS, Scope, Value, names, tuple_text

Filler = Callable[[Scope, int], None]
"""Takes some steps in a computation."""


def _inside(scope: Scope) -> Scope:
    return Scope(scope.program, scope.depth + 1)


def _steps(scope: Scope) -> int:
    return scope.pick((2, 5, 9))


def _result(inside: Scope, like: Value) -> Value:
    """Something of the shape, one of the latest of that shape or a new one."""
    found = inside.find(lambda value: value[1:] == like[1:])
    return found or inside.filled(*like[1:])


def loop(scope: Scope, fill: Filler) -> None:
    """A loop that counts to a number of the text, or to one that is an argument."""
    state = [scope.array() for _ in range(scope.pick((1, 2, 3)))]
    bound = scope.find(lambda v: v.type == "s32" and not v.dimensions)
    if bound is None or scope.chance(0.5):
        bound = scope.scalar("s32", scope.pick((1, 3, 7, 100)))
    parts = [scope.scalar("s32"), bound, *state]
    shape = tuple_text(parts)
    condition = scope.program.computation(
        "condition",
        f"s = {shape} parameter(0)",
        *(f"g{i} = s32[] get-tuple-element(s), index={i}" for i in range(2)),
        "ROOT l = pred[] compare(g0, g1), direction=LT",
    )
    body = _inside(scope)
    whole = body.write("state", shape, "parameter(0)")
    own = body.elements("own", whole, parts)
    one = body.scalar("s32", 1)
    following = body.add("s32", (), f"add({own[0].name}, {one.name})", own[0])
    fill(body, _steps(scope))
    results = [own[i] if scope.chance(0.15) else _result(body, v) for i, v in enumerate(state, 2)]
    after = [following, own[1], *results]
    name = body.close("body", shape, f"tuple({names(after)})")
    begin = scope.write("begin", shape, f"tuple({names(parts)})", *parts)
    done = scope.write("while", shape, f"while({begin}), condition={condition}, body={name}")
    scope.elements("after", done, parts)
    scope.program.features.add("loops" if scope.depth == 0 else "nested loops")


def _function(scope: Scope, fill: Filler, given: Sequence[Value], wanted: Sequence[Value]) -> str:
    """A computation of a tuple that gives another tuple; its name."""
    inside = _inside(scope)
    whole = inside.write("given", tuple_text(given), "parameter(0)")
    inside.elements("part", whole, given)
    fill(inside, _steps(scope))
    results = [_result(inside, value) for value in wanted]
    return inside.close("function", tuple_text(wanted), f"tuple({names(results)})")


def branches(scope: Scope, fill: Filler) -> None:
    """A conditional of two branches or more, each with operands of its own."""
    wanted = [scope.array() for _ in range(scope.pick((1, 2)))]
    is_binary = scope.chance(0.5)
    number = scope.find(lambda v: v.type == "s32" and not v.dimensions) or scope.scalar("s32", 1)
    callees, operands = [], []
    for _ in range(2 if is_binary else scope.pick((2, 3))):
        given = [scope.array() for _ in range(scope.pick((1, 2, 3)))]
        callees.append(_function(scope, fill, given, wanted))
        operands.append(scope.write("given", tuple_text(given), f"tuple({names(given)})", *given))
    if is_binary:
        zero = scope.scalar("s32")
        rest = f"compare({names((number, zero))}), direction=LT"
        which = scope.write("which", "pred[]", rest, number)
        called = f"true_computation={callees[0]}, false_computation={callees[1]}"
    else:
        which = number.name
        called = f"branch_computations={{{', '.join(callees)}}}"
    rest = f"conditional({', '.join((which, *operands))}), {called}"
    done = scope.write("conditional", tuple_text(wanted), rest, number)
    scope.elements("after", done, wanted)
    scope.program.features.add("conditionals")


def call(scope: Scope, fill: Filler) -> None:
    given = [scope.array() for _ in range(scope.pick((1, 2)))]
    wanted = [scope.array(types=NUMBERS)]
    function = _function(scope, fill, given, wanted)
    whole = scope.write("given", tuple_text(given), f"tuple({names(given)})", *given)
    done = scope.write("call", tuple_text(wanted), f"call({whole}), to_apply={function}")
    scope.elements("after", done, wanted)
    scope.program.features.add("calls")


CALLS = (loop, loop, branches, branches, call)
